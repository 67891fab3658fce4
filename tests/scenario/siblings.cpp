// Siblings as clients and operators see them: what one holds all serve, and whatever a sibling
// does, no request fails for it.

#include "tests/scenario/liar.hpp"
#include "tests/support/certificates.hpp"

#include <algorithm>
#include <functional>
#include <sys/stat.h>

TEST_SUITE("scenario/siblings") {

    using namespace reprise::tests;

    TEST_CASE("what one stores all serve, without the origin") {
        fleet f{2};
        f.serve_everything();
        constexpr int objects = 300;
        for (int i = 0; i < objects; ++i) {
            CHECK(f[0].get(f.origin.url("/" + std::to_string(i))).status == 200);
        }
        REQUIRE(f.holds(1, "n0", objects - 1));
        f.origin.stop();
        int served = 0;
        for (int i = 0; i < objects; ++i) {
            const auto path = "/" + std::to_string(i);
            const auto got = f[1].get(f.origin.url(path));
            if (got.status == 200 && got.body == "body of " + path) {
                ++served;
            } else {
                CHECK(got.status == 502);
            }
        }
        CHECK(served >= objects * 0.99);
        const auto told = json::parse(
            f[1].admin("/explain?url=" + f.origin.url("/never-asked")).body);
        CHECK(told["siblings"]["claims"].is_array());
        const auto line = f[1].logged("/7");
        CHECK(line.at("outcome") == "sibling");
        CHECK(line.at("peer") == "n0");
        // A request is counted behind the last byte of its answer.
        CHECK(eventually([&] { return figure(f[1].stats(), "/requests/sibling") == served; }));
        CHECK(f.asked(1, "n0", "true-hit") == served);
        CHECK(figure(f[1].stats(), "/summary/spared/requests_by_siblings") == served);
        CHECK(figure(f[1].stats(), "/summary/spared/requests") == served);
        CHECK(figure(f[1].stats(), "/summary/spared/bytes_by_siblings") ==
              figure(f[1].stats(), "/siblings/bytes/n0"));
        CHECK(figure(f[1].stats(), "/summary/last_day/requests_spared") == served);
        CHECK(f[1].get(f.origin.url("/never-asked")).status == 502);
    }

    TEST_CASE("what comes from a sibling is stored like any other, unless proxy_only") {
        for (const bool proxy_only : {false, true}) {
            CAPTURE(proxy_only);
            fleet f{2};
            auto peer = peer_at("zero", f[0].port());  // no name of before: it tells when it holds
            peer["proxy_only"] = proxy_only;
            f.tell(1, json::array({peer}));
            f.serve_everything();
            CHECK(f[0].get(f.origin.url("/a")).status == 200);
            REQUIRE(f.holds(1, "zero", 1));
            INFO(f[1].stats().dump());  // failed once, and nothing told why
            const auto first = f[1].get(f.origin.url("/a"));
            CHECK(first.status == 200);
            CHECK(f.asked(1, "zero", "true-hit") == 1);
            const auto second = f[1].get(f.origin.url("/a"));
            CHECK(is_hit(second) == !proxy_only);
            CHECK(f.asked(1, "zero", "true-hit") == (proxy_only ? 2 : 1));
            CHECK(f.origin.count("/a") == 1);
        }
    }

    TEST_CASE("what was purged, or is stale, is not asked for after one exchange") {
        fleet f{2};
        f.serve_everything();
        f.origin.on("/short", ok("Cache-Control: max-age=24\r\n", "short"));
        CHECK(f[0].get(f.origin.url("/a")).status == 200);
        CHECK(f[0].get(f.origin.url("/b")).status == 200);
        CHECK(f[0].get(f.origin.url("/short")).status == 200);
        REQUIRE(f.holds(1, "n0", 3));
        CHECK(f[0].ask("PURGE", f.origin.url("/a")).status == 200);
        // Ten seconds before its end it is of no use to others any more.
        REQUIRE(eventually([&] { return f.estimate(1, "n0") < 1.5; }, 3 * patience));
        CHECK(f[1].get(f.origin.url("/a")).status == 200);
        CHECK(f[1].get(f.origin.url("/short")).status == 200);
        CHECK(f.asked(1, "n0", "false-hit") == 0);
        CHECK(f.asked(1, "n0", "true-hit") == 0);
        CHECK(f[1].get(f.origin.url("/b")).status == 200);
        CHECK(f.asked(1, "n0", "true-hit") == 1);
    }

    TEST_CASE("requests that are one client's own never go to a sibling") {
        fleet f{2};
        f.serve_everything();
        CHECK(f[0].get(f.origin.url("/a")).status == 200);
        REQUIRE(f.holds(1, "n0", 1));
        CHECK(f[1].get(f.origin.url("/a"), "Cookie: a=b\r\n").status == 200);
        CHECK(f[1].ask("HEAD", f.origin.url("/a")).status == 200);
        CHECK(f.asked(1, "n0", "true-hit") + f.asked(1, "n0", "false-hit") == 0);
        fleet g{2};
        g.serve_everything();
        CHECK(g[0].get(g.origin.url("/a")).status == 200);
        REQUIRE(g.holds(1, "n0", 1));
        CHECK(g[1].get(g.origin.url("/a"), "Authorization: Basic YTpi\r\n").status == 200);
        CHECK(g[1].get(g.origin.url("/a"), "Cache-Control: no-cache\r\n").status == 200);
        CHECK(g.asked(1, "n0", "true-hit") + g.asked(1, "n0", "false-hit") == 0);
    }

    TEST_CASE("a range is had from a sibling as a range") {
        fleet f{2};
        f.origin.on("/a", ok("Cache-Control: max-age=600\r\nETag: \"1\"\r\n", "0123456789"));
        CHECK(f[0].get(f.origin.url("/a")).status == 200);
        REQUIRE(f.holds(1, "n0", 1));
        const auto told = json::parse(f[1].admin("/explain?url=" + f.origin.url("/a")).body);
        CHECK(told["siblings"]["claims"] == json::array({"n0"}));
        const auto part = f[1].get(f.origin.url("/a"), "Range: bytes=2-4\r\n");
        CHECK(part.status == 206);
        CHECK(part.body == "234");
        CHECK(f.asked(1, "n0", "true-hit") == 1);
        CHECK(f.origin.count("/a") == 1);
    }

    TEST_CASE("a sibling's 206 and 304 answer who asked for that part, or by that validator") {
        struct exchange {
            std::string asked, status, fields, body;
            bool taken;
        };
        const std::vector<exchange> all{
            {"Range: bytes=2-4\r\n", "206 P", "Content-Range: bytes 2-4/10\r\n", "xyz", true},
            {"Range: bytes=-3\r\n", "206 P", "Content-Range: bytes 7-9/10\r\n", "xyz", true},
            {"Range: bytes=2-4\r\n", "206 P", "Content-Range: bytes 3-5/10\r\n", "xyz", false},
            {"Range: bytes=2-4\r\n", "206 P", "Content-Range: bytes 2-4/*\r\n", "xyz", false},
            {"Range: bytes=2-4\r\n", "206 P", "", "xyz", false},
            {"If-None-Match: \"1\"\r\n", "304 N", "ETag: \"1\"\r\n", "", true},
            {"If-None-Match: \"1\"\r\n", "206 P", "Content-Range: bytes 2-4/10\r\n", "xyz", false},
            {"Range: bytes=2-4\r\n", "304 N", "ETag: \"1\"\r\n", "", false},
        };
        for (const auto& one : all) {
            CAPTURE(one.asked);
            CAPTURE(one.status);
            CAPTURE(one.fields);
            fleet f{2};
            f.origin.on("/a", ok("Cache-Control: max-age=600\r\n", "0123456789"));
            liar as{f, 0, [&](auto&, auto& c) {
                        const auto fields = "Age: 1\r\n" + one.fields;
                        c.send(one.body.empty() ? raw_head(one.status, fields)
                                                : answer(one.status, fields, one.body));
                    }};
            store_and_meet_liar(f, as);
            const auto got = f[1].get(f.origin.url("/a"), one.asked);
            CHECK(std::to_string(got.status) == (one.taken ? one.status.substr(0, 3) : "200"));
            CHECK(got.body == (one.taken ? one.body : "0123456789"));
            CHECK(f.asked(1, "liar", one.taken ? "true-hit" : "false-hit") == 1);
        }
    }

    TEST_CASE("whatever a sibling does instead of answering, the origin answers") {
        struct deed {
            const char* name;
            const char* counted;
            origin_handler asked;
        };
        const std::string page(64, '*');
        const std::vector<deed> deeds{
            {"504", "false-hit", [](auto&, auto& c) { c.send(answer("504 Not Here", "", "no")); }},
            {"500", "false-hit", [](auto&, auto& c) { c.send(answer("500 Broken", "", "no")); }},
            {"403", "false-hit", [](auto&, auto& c) { c.send(answer("403 No", "", "no")); }},
            {"304 to a plain GET",
             "false-hit",
             [](auto&, auto& c) { c.send(raw_head("304 Not Modified", "Age: 1\r\n")); }},
            {"a part for the whole",
             "false-hit",
             [](auto&, auto& c) {
                 c.send(answer(
                     "206 Partial Content", "Age: 1\r\nContent-Range: bytes 0-1/9\r\n", "bo"));
             }},
            {"a page without an end",
             "false-hit",
             [](auto&, auto& c) {
                 c.send(raw_head("200 OK", "Age: 1\r\nCache-Control: max-age=60\r\n") + "half");
                 c.close();
             }},
            {"an Age that is none",
             "false-hit",
             [](auto&, auto& c) { c.send(ok("Age: old\r\n", "lie")); }},
            {"a page without Age", "false-hit", [](auto&, auto& c) { c.send(ok("", "lie")); }},
            {"garbage", "failed", [page](auto&, auto& c) { c.send(page + "\r\n\r\n"); }},
            {"an end", "failed", [](auto&, auto& c) { c.close(); }},
            {"a reset", "failed", [](auto&, auto& c) { c.reset(); }},
            {"half a head",
             "failed",
             [](auto&, auto& c) {
                 c.send("HTTP/1.1 200 OK\r\nAge: 1\r\nCont");
                 c.close();
             }},
            {"silence", "late", [](auto&, auto& c) { (void)c.is_closed_by_proxy(); }},
            {"a head that never ends",
             "late",
             [](auto&, auto& c) {
                 c.send("HTTP/1.1 200 OK\r\nAge: 1\r\n");
                 // Of 200 lines a head is too much.
                 while (c.send("X: y\r\n") && c.pause(std::chrono::milliseconds{100})) {
                 }
             }},
        };
        for (const auto& one : deeds) {
            CAPTURE(one.name);
            fleet f{2};
            f.serve_everything();
            liar as{f, 0, one.asked};
            const bool is_late = std::string_view{one.counted} == "late";
            store_and_meet_liar(f, as, is_late ? "2s" : sibling_timeout);
            const auto got = f[1].get(f.origin.url("/a"));
            CHECK(got.status == 200);
            CHECK(got.body == "body of /a");
            CHECK(f.origin.count("/a") == 2);
            CHECK(eventually([&] { return f.asked(1, "liar", one.counted) == 1; }));
        }
    }

    TEST_CASE("a sibling that breaks off in the middle of a body is replaced behind it") {
        std::string body(600'000, ' ');
        for (std::size_t i = 0; i < body.size(); ++i) {
            body[i] = static_cast<char>('a' + (i / 3 + i / 4096) % 26);
        }
        const auto half = std::string_view{body}.substr(0, 300'000);
        const std::string head = "HTTP/1.1 200 OK\r\nAge: 1\r\nCache-Control: max-age=60\r\n"
                                 "Content-Length: " +
                                 std::to_string(body.size()) + "\r\n\r\n";
        const std::vector<std::pair<const char*, origin_handler>> deeds{
            {"an end",
             [&](auto&, auto& c) {
                 c.send(head + std::string{half});
                 c.close();
             }},
            {"a reset",
             [&](auto&, auto& c) {
                 c.send(head + std::string{half});
                 c.reset();
             }},
            {"silence",
             [&](auto&, auto& c) {
                 c.send(head + std::string{half});
                 (void)c.is_closed_by_proxy();
             }},
            {"a drip", [&](auto&, auto& c) {
                 c.send(head + std::string{half});
                 auto at = half.size();
                 while (c.send(body.substr(at++, 1)) && c.pause(std::chrono::milliseconds{20})) {
                 }
             }}};
        for (const auto& [name, asked] : deeds) {
            CAPTURE(name);
            fleet f{2};
            f.origin.on("/a", ok("Cache-Control: max-age=600\r\n", body));
            liar as{f, 0, asked};
            store_and_meet_liar(f, as, "2s");
            const auto got = f[1].get(f.origin.url("/a"));
            CHECK(got.complete());
            CHECK((got.body == body));
            CHECK(f.origin.count("/a") == 2);
            CHECK(f.asked(1, "liar", "failed") == 1);
            CHECK((f[1].get(f.origin.url("/a")).body == body));
        }
    }

    TEST_CASE("when the other source has another object, what was begun is not completed with it") {
        const std::string body(300'000, 'a');
        const std::string other(300'000, 'b');
        fleet f{2};
        f.origin.on("/a", ok("Cache-Control: max-age=600\r\n", other));
        liar as{f, 0, [&](auto&, auto& c) {
                    c.send("HTTP/1.1 200 OK\r\nAge: 1\r\nCache-Control: max-age=60\r\n"
                           "Content-Length: 300000\r\n\r\n" +
                           body.substr(0, 200'000));
                    c.close();
                }};
        store_and_meet_liar(f, as);
        const auto got = f[1].get(f.origin.url("/a"));
        CHECK_FALSE(got.complete());
        CHECK(got.body.find('b') == std::string::npos);
    }

    TEST_CASE("a sibling that answers late wins over an origin that is later") {
        auto settings = node_settings();
        settings["peering"]["budget"] = "50ms";
        fleet f{2, settings};
        auto& late = f.origin.make_gate();
        bool first = true;
        f.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            if (!std::exchange(first, false)) {
                (void)late.wait();
            }
            connection.send(ok("Cache-Control: max-age=600\r\n", "of the origin"));
        });
        liar as{f, 0, [&](auto&, auto& c) {
                    (void)eventually([&] { return f.origin.count("/a") == 2; });
                    c.send(ok("Age: 1\r\nCache-Control: max-age=600\r\n", "of the sibling"));
                }};
        store_and_meet_liar(f, as, "1m");
        CHECK(f[1].get(f.origin.url("/a")).body == "of the sibling");
        CHECK(f.origin.count("/a") == 2);  // it was asked too
        CHECK(f[1].logged("/a").at("outcome") == "sibling");
    }

    TEST_CASE("what a sibling was asked for before a purge is not taken after it") {
        auto settings = node_settings();
        settings["peering"]["budget"] = "1s";
        fleet f{2, settings};
        auto& origin_waits = f.origin.make_gate();
        auto& sibling_waits = f.origin.make_gate();
        std::atomic<bool> first{true};
        f.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            if (!first.exchange(false)) {
                (void)origin_waits.wait();
            }
            connection.send(ok("Cache-Control: max-age=600\r\n", "new"));
        });
        liar as{f, 0, [&](auto&, auto& c) {
                    (void)sibling_waits.wait();
                    c.send(ok("Age: 1\r\nCache-Control: max-age=600\r\n", "old"));
                }};
        store_and_meet_liar(f, as, "1m");  // it answers when the origin was asked, too
        client asking{f[1].port()};
        asking.send(absolute_request("GET", f.origin.url("/a")));
        const auto path = f.origin.url("/a");
        REQUIRE(eventually([&] {
            const auto all = as.as.requests();
            return std::any_of(all.begin(), all.end(), [&](const origin_request& one) {
                return one.target == path;
            });
        }));
        CHECK(f[1].ask("PURGE", path).status == 404);
        // Its budget is over: the origin is asked too, after the purge.
        REQUIRE(eventually([&] { return f.origin.count("/a") == 2; }));
        sibling_waits.open();
        CHECK(eventually([&] { return f.asked(1, "liar", "false-hit") == 1; }));
        f[0].kill();
        origin_waits.open();
        CHECK(asking.read().body == "new");
        as.as.stop();
        CHECK(f[1].get(f.origin.url("/a")).body == "new");
    }

    TEST_CASE(
        "what was purged by URL before a restart does not come back from a sibling after it") {
        const temp_dir disk;
        fleet f{1};
        auto settings = node_settings();
        settings["disk"] = disk_of_all_admitted(disk.file("store"), "64MiB");
        f.serve_everything();
        const auto url = f.origin.url("/a"), other = f.origin.url("/b");
        {
            const proxy_process purging{settings};
            CHECK(f[0].get(url).status == 200);
            CHECK(f[0].get(other).status == 200);
            const auto answer = purging.ask("PURGE", url).status;
            CHECK((answer == 404 || answer == 200));
        }
        f.add(settings);
        f.meet();
        REQUIRE(f.holds(1, "n0", 2));
        CHECK(f[1].get(url).status == 200);
        CHECK(f.origin.count("/a") == 2);
        CHECK(f.asked(1, "n0", "true-hit") == 0);
        CHECK(f[1].get(other).status == 200);
        CHECK(f.origin.count("/b") == 1);
    }

    TEST_CASE("a sibling that never pays is asked less") {
        fleet f{2};
        f.serve_everything();
        liar as{f, 0, [](auto&, auto& c) { c.send(answer("504 Not Here", "", "no")); }};
        for (int i = 0; i < 100; ++i) {
            CHECK(f[0].get(f.origin.url("/" + std::to_string(i))).status == 200);
        }
        meet_liar(f, as);
        REQUIRE(f.holds(1, "liar", 99));
        for (int i = 0; i < 100; ++i) {
            CHECK(f[1].get(f.origin.url("/" + std::to_string(i))).status == 200);
        }
        CHECK(f.asked(1, "liar", "false-hit") < 60);
        CHECK(figure(f[1].stats(), "/siblings/held_back/liar") > 40);
    }

    TEST_CASE("no request travels between siblings twice") {
        fleet f{2};
        f.serve_everything();
        const auto got = f[0].get(f.origin.url("/a"), "Cache-Control: only-if-cached\r\n");
        CHECK(got.status == 504);
        CHECK(f.origin.count("/a") == 0);
        CHECK(f[0].get(f.origin.url("/a")).status == 200);
        REQUIRE(f.holds(1, "n0", 1));
        // Node 1 has it not, and does not ask node 0 for who wants it stored.
        CHECK(f[1].get(f.origin.url("/a"), "Cache-Control: only-if-cached\r\n").status == 504);
        CHECK(f.asked(1, "n0", "true-hit") == 0);
    }

    TEST_CASE("only-if-cached sends nothing on, whatever is asked for") {
        world w;
        w.origin.otherwise(
            [](auto&, auto& c) { c.send(ok("Cache-Control: max-age=60\r\n", "a")); });
        const std::string here = "Cache-Control: only-if-cached\r\n";
        for (const auto* method : {"GET", "HEAD", "POST", "PUT", "DELETE", "FOO"}) {
            CAPTURE(std::string{method});
            CHECK(w.ask(method, "/a", here).status == 504);
            CHECK(w.ask(method, "/a", here + "Content-Length: 0\r\n").status == 504);
            CHECK(w.ask(method, "/a", here + "Range: bytes=0-0\r\n").status == 504);
        }
        client asking{w.proxy.port()};
        CHECK(asking.ask(absolute_request("GET", w.origin.url("/a"), here, "body")).status == 504);
        CHECK(asking.ask(absolute_request("GET", w.origin.url("/b"))).status == 200);
        CHECK(w.origin.count("/a") == 0);
    }

    TEST_CASE("a sibling behind TLS is asked like any other, and one of another name is not") {
        const temp_dir files;
        const test_authority authority;
        for (const bool rightful : {true, false}) {
            CAPTURE(rightful);
            const auto made = authority.issue(rightful ? "IP:127.0.0.1" : "DNS:else.example");
            files.write("authority.pem", authority.certificate());
            auto behind = node_settings();
            behind["listeners"] = json::array(
                {json{{"address", "127.0.0.1:0"}}, tls_listener(files, made)});
            behind["peers"] = json::array({peer_at("asker", 1)});
            fake_origin origin;
            const proxy_process first{behind};
            auto asking = node_settings();
            auto peer = peer_at("n0", first.port(1));
            peer["url"] = "https://127.0.0.1:" + std::to_string(first.port(1));
            asking["peers"] = json::array({peer});
            const proxy_process second{asking, {"SSL_CERT_FILE=" + files.file("authority.pem")}};
            origin.on("/a", ok("Cache-Control: max-age=600\r\n", "hello"));
            CHECK(first.get(origin.url("/a")).status == 200);
            const json::json_pointer estimated{"/siblings/estimated_objects/n0"};
            const json::json_pointer trouble{"/siblings/trouble/n0"};
            if (rightful) {
                REQUIRE(eventually([&] {
                    const auto stats = second.stats();
                    return stats.contains(estimated) && stats.at(estimated).get<double>() > 0.5;
                }));
            } else {
                REQUIRE(eventually(
                    [&] { return second.stats().value(trouble, std::string{}) == "unreachable"; }));
            }
            CHECK(second.get(origin.url("/a")).body == "hello");
            CHECK(origin.count("/a") == (rightful ? 1 : 2));
        }
    }

    TEST_CASE("an https URL is asked of siblings behind TLS alone, under a secret") {
        const temp_dir files;
        const test_authority authority;
        const auto made = authority.issue("IP:127.0.0.1");
        const auto secret = files.write("secret", std::string(40, 's'));
        REQUIRE(::chmod(secret.c_str(), 0600) == 0);
        fake_origin origin{{.identity = made}};
        origin.on("/a", ok("Cache-Control: max-age=600\r\n", "hello"));
        const auto url = "https://" + origin.authority() + "/a";
        auto settings = node_settings();
        settings["digest"]["secret_file"] = secret;
        settings["origins"]["ca_file"] = files.write("authority.pem", authority.certificate());
        settings["peers"] = json::array({peer_at("asker", 1)});
        auto behind = settings;
        behind["listeners"] = json::array(
            {json{{"address", "127.0.0.1:0"}}, tls_listener(files, made)});
        const proxy_process first{behind};
        CHECK(first.get(url).body == "hello");
        auto secure = peer_at("secure", first.port(1));
        secure["url"] = "https://127.0.0.1:" + std::to_string(first.port(1));
        settings["peers"] = json::array({peer_at("plain", first.port()), secure});
        const proxy_process second{settings};
        const auto explained = [&] {
            return json::parse(second.admin("/explain?url=" + url).body)["siblings"]["claims"];
        };
        REQUIRE(eventually([&] { return !explained().empty(); }));
        REQUIRE(eventually([&] {
            return second.stats()["siblings"]["estimated_objects"].value("plain", 0.0) > 0.5;
        }));
        CHECK(explained() == json::array({"secure"}));
        CHECK(second.get(url).body == "hello");
        CHECK(origin.count("/a") == 1);
        CHECK(second.logged("/a").at("peer") == "secure");
        CHECK(figure(second.stats(), "/siblings/named/plain") == 0);
    }
}
