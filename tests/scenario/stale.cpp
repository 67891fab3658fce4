// A stale response sent without the origin's word: while it is validated behind the client's back
// (RFC 5861 3), because the origin failed (RFC 5861 4), because nobody answers (RFC 9111 4.2.4).
// Nothing waits for time to pass: a response whose Age is above its lifetime is stale at once.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"

#include <atomic>

TEST_SUITE("scenario/stale") {

    using namespace reprise::tests;

    namespace {

    std::string aged(const std::string& directives, const std::string& body) {
        return ok("Age: 100\r\nETag: \"1\"\r\nCache-Control: max-age=60" + directives + "\r\n",
                  body);
    }

    /// The origin was asked, and answered so; what is stored stands in for that.
    bool stands_in_for(unsigned status, const response& answer) {
        const auto said = answer.get("Cache-Status");
        return answer.status == 200 && said.find("; hit") == std::string::npos &&
               said.find("; fwd=stale; fwd-status=" + std::to_string(status)) !=
                   std::string::npos &&
               said.find("ttl=-") != std::string::npos &&
               said.find("detail=origin-error") != std::string::npos;
    }

    bool is_stale_hit(const response& answer) {
        const auto status = answer.get("Cache-Status");
        return answer.status == 200 && status.find("; hit") != std::string::npos &&
               status.find("ttl=-") != std::string::npos;
    }

    /// The origin's first answer is `first`; each later request gets what `later` sends.
    void answer_then(world& w, const std::string& first, const origin_handler& later) {
        auto asked = std::make_shared<std::atomic<int>>(0);
        w.origin.on("/a", [=](origin_request& request, origin_connection& connection) {
            if (asked->fetch_add(1) == 0) {
                connection.send(first);
            } else {
                later(request, connection);
            }
        });
    }

    }  // namespace

    TEST_CASE("stale-while-revalidate: the client does not wait, and the next one has the new") {
        world w;
        answer_then(w,
                    aged(", stale-while-revalidate=300", "old"),
                    [](origin_request& request, origin_connection& connection) {
                        CHECK(request.get("If-None-Match") == "\"1\"");
                        CHECK(request.get("X-Who") == "second");  // of the request that caused it
                        connection.send(ok("Cache-Control: max-age=60\r\n", "new"));
                    });
        CHECK(w.get("/a").body == "old");
        const auto second = w.get("/a", "X-Who: second\r\n");
        CHECK(second.body == "old");
        CHECK(is_stale_hit(second));
        CHECK(second.get("Cache-Status").find("detail=stale-while-revalidate") !=
              std::string::npos);
        CHECK(eventually([&] { return w.get("/a", "X-Who: second\r\n").body == "new"; }));
        CHECK(w.origin.count("/a") == 2);
    }

    TEST_CASE("stale-while-revalidate: many stale answers cost one validation") {
        world w;
        auto& go = w.origin.make_gate();
        answer_then(w,
                    aged(", stale-while-revalidate=300", "old"),
                    [&](origin_request&, origin_connection& connection) {
                        go.wait();
                        connection.send("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n"
                                        "Cache-Control: max-age=60\r\n\r\n");
                    });
        CHECK(w.get("/a").body == "old");
        for (int i = 0; i < 10; ++i) {
            CHECK(is_stale_hit(w.get("/a")));
        }
        CHECK(eventually([&] { return w.origin.count("/a") == 2; }));
        go.open();
        CHECK(eventually([&] {
            const auto answer = w.get("/a");
            return is_hit(answer) && !is_stale_hit(answer);
        }));
        CHECK(w.origin.count("/a") == 2);
    }

    TEST_CASE("stale-while-revalidate: a large new body enters the store with nobody waiting") {
        const auto body = patterned(3 * mib);
        world w;
        answer_then(w,
                    aged(", stale-while-revalidate=300", "old"),
                    sends(ok("Cache-Control: max-age=60\r\n", body)));
        CHECK(w.get("/a").body == "old");
        CHECK(w.get("/a").body == "old");
        CHECK(eventually([&] { return w.get("/a").body == body; }));
        CHECK(w.origin.count("/a") == 2);
    }

    TEST_CASE("stale-while-revalidate: an error behind the client's back changes nothing") {
        world w;
        answer_then(w,
                    aged(", stale-while-revalidate=300", "old"),
                    [](origin_request&, origin_connection& connection) { connection.close(); });
        CHECK(w.get("/a").body == "old");
        // One that comes while a validation is still ending begins none, so it is asked again.
        CHECK(eventually([&] {
            CHECK(is_stale_hit(w.get("/a")));
            return w.origin.count("/a") >= 4;
        }));
        CHECK(w.proxy.is_running());
    }

    TEST_CASE("stale-while-revalidate: what may not be kept ends what it replaces") {
        world w;
        answer_then(w,
                    aged(", stale-while-revalidate=300", "old"),
                    sends(ok("Cache-Control: no-store\r\n", "new")));
        CHECK(w.get("/a").body == "old");
        CHECK(w.get("/a").body == "old");
        CHECK(eventually([&] { return w.get("/a").body == "new"; }));
    }

    TEST_CASE("stale-while-revalidate: what no store takes ends what it replaces, too") {
        const auto body = patterned(3 * mib);
        const std::string fields = "Cache-Control: max-age=60\r\n";
        auto settings = storing_settings();
        settings["memory"] = {{"size", "8MiB"}, {"max_object", "1MiB"}};
        for (const bool says_length : {true, false}) {
            CAPTURE(says_length);
            world w{settings};
            answer_then(w,
                        aged(", stale-while-revalidate=300", "old"),
                        sends(says_length
                                  ? ok(fields, body)
                                  : raw_head("200 OK", fields + "Transfer-Encoding: chunked\r\n") +
                                        "300000\r\n" + body + "\r\n0\r\n\r\n"));
            CHECK(w.get("/a").body == "old");
            CHECK(w.get("/a").body == "old");
            CHECK(eventually([&] { return w.get("/a").body == body; }));
        }
    }

    TEST_CASE(
        "stale-while-revalidate: a refusal or an error leaves what is stored, storable or not") {
        for (const std::string status : {"403 Forbidden",
                                         "401 Unauthorized",
                                         "429 Too Many Requests",
                                         "400 Bad Request",
                                         "302 Found",
                                         "500 Internal Server Error",
                                         "503 Service Unavailable"}) {
            for (const std::string fields : {"", "Cache-Control: max-age=60\r\n"}) {
                CAPTURE(status);
                CAPTURE(fields);
                world w;
                answer_then(w,
                            aged(", stale-while-revalidate=300", "old"),
                            sends(answer(status, fields, "not for everybody")));
                CHECK(w.get("/a").body == "old");
                // Each validation begins when the one before it has ended.
                CHECK(eventually([&] {
                    CHECK(is_stale_hit(w.get("/a")));
                    return w.origin.count("/a") >= 4;
                }));
            }
        }
    }

    TEST_CASE("404 and 410 end what they are said of, whether a client waits for them or not") {
        for (const std::string status : {"404 Not Found", "410 Gone"}) {
            for (const bool waits : {false, true}) {
                CAPTURE(status);
                CAPTURE(waits);
                world w;
                answer_then(w,
                            aged(", stale-while-revalidate=300", "old"),
                            sends(answer(status, "Cache-Control: no-store\r\n", "none")));
                CHECK(w.get("/a").body == "old");
                if (waits) {
                    CHECK(w.get("/a", "Cache-Control: max-stale=0\r\n").body == "none");
                    CHECK(w.get("/a").body == "none");
                } else {
                    CHECK(w.get("/a").body == "old");
                    CHECK(eventually([&] { return w.get("/a").body == "none"; }));
                }
            }
        }
    }

    TEST_CASE("stale-while-revalidate: not past its window, and not where staleness is forbidden") {
        for (const std::string directives : {", stale-while-revalidate=30",
                                             ", stale-while-revalidate=300, must-revalidate",
                                             ", stale-while-revalidate=300, proxy-revalidate",
                                             ", stale-while-revalidate=300, s-maxage=60"}) {
            CAPTURE(directives);
            world w;
            answer_then(
                w, aged(directives, "old"), sends(ok("Cache-Control: max-age=60\r\n", "new")));
            CHECK(w.get("/a").body == "old");
            CHECK(w.get("/a").body == "new");
        }
    }

    TEST_CASE("stale-while-revalidate: a client that wants the origin gets it") {
        world w;
        answer_then(w,
                    aged(", stale-while-revalidate=300", "old"),
                    sends(ok("Cache-Control: max-age=60\r\n", "new")));
        CHECK(w.get("/a").body == "old");
        CHECK(w.get("/a", "Cache-Control: no-cache\r\n").body == "new");
    }

    TEST_CASE("stale-if-error: a server error or none is answered with what is stored") {
        for (const std::string status : {"500 Internal Server Error",
                                         "502 Bad Gateway",
                                         "503 Service Unavailable",
                                         "504 Gateway Timeout"}) {
            CAPTURE(status);
            world w;
            answer_then(
                w, aged(", stale-if-error=300", "old"), sends(answer(status, "", "broken")));
            CHECK(w.get("/a").body == "old");
            const auto second = w.get("/a");
            CHECK(second.body == "old");
            CHECK(stands_in_for(static_cast<unsigned>(std::stoul(status)), second));
        }
    }

    TEST_CASE(
        "stale-if-error: other errors, past its window and must-revalidate are the origin's") {
        struct row {
            std::string directives;
            std::string status;
        };
        for (const auto& [directives, status] :
             {row{", stale-if-error=300", "404 Not Found"},
              row{", stale-if-error=30", "503 Service Unavailable"},
              row{", stale-if-error=300, must-revalidate", "503 Service Unavailable"},
              row{"", "503 Service Unavailable"}}) {
            CAPTURE(directives);
            CAPTURE(status);
            world w;
            answer_then(w, aged(directives, "old"), sends(answer(status, "", "broken")));
            CHECK(w.get("/a").body == "old");
            CHECK(w.get("/a").body == "broken");
        }
    }

    TEST_CASE(
        "what stands in for an error is not replaced by it, though it says how long it lasts") {
        world w;
        answer_then(
            w,
            aged(", stale-if-error=300", "old"),
            sends(answer("503 Service Unavailable", "Cache-Control: max-age=600\r\n", "broken")));
        CHECK(w.get("/a").body == "old");
        for (int i = 0; i < 3; ++i) {
            CHECK(stands_in_for(503, w.get("/a")));
        }
        CHECK(w.origin.count("/a") == 4);
    }

    TEST_CASE("nor is it where it is on disk alone, and nothing to validate it by") {
        const auto body = patterned(2 * mib);
        const temp_dir at;
        auto settings = storing_settings();
        settings["memory"] = {{"size", "8MiB"}, {"max_object", "1MiB"}};
        settings["disk"] = disk_of_all_admitted(at.file("store"), "64MiB");
        world w{settings};
        REQUIRE(eventually([&] { return w.proxy.stats().at("disk").at("state") == "ready"; }));
        answer_then(
            w,
            ok("Age: 100\r\nCache-Control: max-age=60, stale-if-error=300\r\n", body),
            sends(answer("503 Service Unavailable", "Cache-Control: max-age=600\r\n", "broken")));
        CHECK((w.get("/a").body == body));
        REQUIRE(eventually([&] { return figure(w.proxy.stats(), "/disk/objects") >= 1; }));
        for (int i = 0; i < 3; ++i) {
            const auto answer = w.get("/a");
            CHECK(stands_in_for(503, answer));
            CHECK((answer.body == body));
        }
        CHECK(w.origin.count("/a") == 4);
    }

    TEST_CASE("nor is it by whoever joins that error while it comes") {
        const temp_dir at;
        auto settings = storing_settings();
        settings["disk"] = {{"path", at.file("store")}, {"size", "16MiB"}};
        world w{settings};
        auto& goes_on = w.origin.make_gate();
        answer_then(
            w, aged(", stale-if-error=300", "old"), [&](origin_request&, origin_connection& to) {
                to.send(raw_head("503 Service Unavailable",
                                 "Cache-Control: max-age=600\r\nContent-Length: 6\r\n") +
                        "bro");
                goes_on.wait();
                to.send("ken");
            });
        CHECK(w.get("/a").body == "old");
        const auto reload = w.request("/a", "Cache-Control: max-age=0\r\n");
        auto one = w.proxy.connect(reload);
        auto first = one.read_head();
        CHECK(first.status == 503);
        auto two = w.proxy.connect(reload);
        REQUIRE(eventually([&] { return figure(w.proxy.stats(), figure_name::joined) == 1; }));
        goes_on.open();
        CHECK(two.read().body == "broken");
        CHECK(stands_in_for(503, w.get("/a")));
    }

    TEST_CASE("stale_on_error_status: an error status is stood in for without the origin's leave") {
        auto settings = storing_settings();
        for (const bool wanted : {true, false}) {
            for (const std::string status : {"500 Internal Server Error",
                                             "502 Bad Gateway",
                                             "503 Service Unavailable",
                                             "504 Gateway Timeout",
                                             "501 Not Implemented",
                                             "404 Not Found"}) {
                CAPTURE(wanted);
                CAPTURE(status);
                settings["freshness"] = {{"stale_on_error_status", wanted}};
                world w{settings};
                answer_then(w, aged("", "old"), sends(answer(status, "", "broken")));
                CHECK(w.get("/a").body == "old");
                const auto second = w.get("/a");
                const bool stands_in = wanted && status[0] == '5' && !status.starts_with("501");
                CHECK(stands_in_for(static_cast<unsigned>(std::stoul(status)), second) ==
                      stands_in);
                CHECK(second.body == (stands_in ? "old" : "broken"));
            }
        }
        settings["freshness"] = {{"stale_on_error_status", true}, {"stale_on_error", "30s"}};
        for (const std::string directives : {"", ", must-revalidate"}) {
            CAPTURE(directives);
            world w{settings};
            answer_then(
                w, aged(directives, "old"), sends(answer("503 Service Unavailable", "", "broken")));
            CHECK(w.get("/a").body == "old");
            CHECK(w.get("/a").body == "broken");
        }
    }

    TEST_CASE("an origin that does not answer is stood in for, as long as the setting says") {
        auto settings = storing_settings();
        for (const std::string most : {"1h", "30s", "0s"}) {
            CAPTURE(most);
            settings["freshness"] = {{"stale_on_error", most}};
            world w{settings};
            answer_then(w, aged("", "old"), [](origin_request&, origin_connection& connection) {
                connection.close();
            });
            CHECK(w.get("/a").body == "old");
            const auto second = w.get("/a");
            if (most == "1h") {
                CHECK(is_stale_hit(second));
                CHECK(second.get("Cache-Status").find("detail=origin-failed") != std::string::npos);
            } else {
                CHECK(second.status == 502);
            }
        }
    }

    TEST_CASE("what forbids staleness is not stood in for") {
        for (const std::string directives :
             {", must-revalidate", ", proxy-revalidate", ", s-maxage=60", ", no-cache"}) {
            CAPTURE(directives);
            world w;
            answer_then(w,
                        aged(directives, "old"),
                        [](origin_request&, origin_connection& connection) { connection.close(); });
            CHECK(w.get("/a").body == "old");
            CHECK(w.get("/a").status == 502);
        }
    }

    TEST_CASE("a URL that could not be stored is not waited for by the next who come") {
        world w;
        auto& go = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
            if (request.has("X-Hold")) {
                go.wait();
            }
            connection.send(ok("Cache-Control: no-store\r\n", "hello"));
        });
        CHECK(w.get("/a").body == "hello");
        auto slow = w.proxy.connect(w.request("/a", "X-Hold: 1\r\n"));
        REQUIRE(eventually([&] { return w.origin.count("/a") == 2; }));
        // The first one's head has not come, and nobody joins it.
        CHECK(w.get("/a").body == "hello");
        CHECK(figure(w.proxy.stats(), figure_name::joined) == 0);
        go.open();
        CHECK(slow.read().body == "hello");
    }

}  // TEST_SUITE
