// The reason for this proxy: an object enters the store at its second request, not its first.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"
#include "tests/support/counted_allocations.hpp"
#include "tests/support/under_test.hpp"

#include <atomic>
#include <vector>

TEST_SUITE("scenario/first_hit") {

    using namespace reprise::tests;

    TEST_CASE("the first request stores nothing, the second stores, the third is a hit") {
        world w{basic_settings()};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));

        const auto first = w.get("/a");
        CHECK(first.status == 200);
        CHECK(first.body == "hello");
        CHECK(cache_status_of(first).present);
        CHECK(cache_status_of(first).fwd == "uri-miss");
        CHECK(cache_status_of(first).detail == "first-request");
        CHECK_FALSE(cache_status_of(first).stored);
        CHECK_FALSE(cache_status_of(first).hit);

        const auto second = w.get("/a");
        CHECK(second.body == "hello");
        CHECK(cache_status_of(second).fwd == "uri-miss");
        CHECK(cache_status_of(second).stored);
        CHECK(cache_status_of(second).detail.empty());

        const auto third = w.get("/a");
        CHECK(third.body == "hello");
        CHECK(is_hit(third));
        REQUIRE_FALSE(cache_status_of(third).ttl.empty());
        CHECK(std::stoi(cache_status_of(third).ttl) <= 60);
        CHECK(std::stoi(cache_status_of(third).ttl) > 30);
        CHECK(w.origin.count("/a") == 2);
    }

    TEST_CASE("a hit allocates nothing") {
        if (sanitized) {
            return;
        }
        for (const auto* log : {"off", "file"}) {
            CAPTURE(log);
            const temp_dir files;
            auto settings = storing_settings();
            settings["threads"] = 1;
            settings["log"]["access"] = std::string{log} == "off" ? log : files.file("access.log");
            const counted_allocations counted;
            fake_origin origin;
            origin.on("/a", ok("Cache-Control: max-age=600\r\n", std::string(2'000, 'a')));
            proxy_process proxy{settings, counted.environment()};
            auto one = proxy.connect();
            const auto request = absolute_request("GET", origin.url("/a"));
            const auto ask = [&](unsigned times) {
                const auto before = counted.now();
                for (unsigned i = 0; i < times; ++i) {
                    CHECK(one.ask(request).status == 200);
                }
                return counted.now() - before;
            };
            CHECK(ask(1) > 10);  // a miss does
            (void)ask(50);
            // What the program does beside it, each second, is not a hit's.
            CHECK(ask(2'000) < 500);
        }
    }

    // What proxy/DESIGN.md lists. The ghosts note each URL too, as long as requests are few.
    TEST_CASE("a first request on kept connections allocates a handful of times") {
        if (sanitized) {
            return;
        }
        for (const unsigned at_once : {1u, 32u}) {
            CAPTURE(at_once);
            auto settings = basic_settings();
            settings["threads"] = 1;
            settings["log"]["access"] = "off";
            const counted_allocations counted;
            std::atomic<unsigned> asked{0};
            fake_origin origin;
            // Nobody is answered before all have asked.
            origin.otherwise([&](origin_request&, origin_connection& connection) {
                const auto all = (asked++ / at_once + 1) * at_once;
                CHECK(eventually([&] { return asked >= all; }));
                connection.send(ok("Cache-Control: max-age=600\r\nETag: \"a-validator\"\r\n",
                                   std::string(1'000, 'a')));
            });
            proxy_process proxy{settings, counted.environment()};
            std::vector<client> clients;
            for (unsigned i = 0; i < at_once; ++i) {
                clients.push_back(proxy.connect());
            }
            unsigned number = 0;
            const auto ask = [&](unsigned times) {
                const auto before = counted.now();
                for (unsigned i = 0; i < times; ++i) {
                    for (auto& one : clients) {
                        const auto url = origin.url("/asked/for/once/" + std::to_string(++number));
                        one.send(absolute_request("GET", url));
                    }
                    for (auto& one : clients) {
                        CHECK(one.read().status == 200);
                    }
                }
                return static_cast<double>(counted.now() - before) / times / at_once;
            };
            (void)ask(10);
            CHECK(ask(640 / at_once) < 10);
        }
    }

    TEST_CASE("a hit has the origin's body and fields, and an Age") {
        world w;
        const auto body = patterned(300 * kib);
        w.origin.on("/a",
                    ok("Cache-Control: max-age=60\r\nContent-Type: image/png\r\nETag: \"v1\"\r\n"
                       "X-Twice: one\r\nX-Twice: two\r\n",
                       body));
        CHECK(w.get("/a").body == body);
        const auto hit = w.get("/a");
        CHECK(is_hit(hit));
        CHECK(hit.body == body);
        CHECK(hit.framed_by == framing::length);
        CHECK(hit.get("Content-Type") == "image/png");
        CHECK(hit.get("ETag") == "\"v1\"");
        CHECK(hit.fields.all("X-Twice") == "one, two");
        CHECK(hit.has("Date"));
        CHECK(hit.has("Via"));
        REQUIRE(hit.has("Age"));
        CHECK(std::stoi(hit.get("Age")) < 30);
    }

    TEST_CASE("a hundred different URLs asked once store nothing") {
        world w{basic_settings()};
        w.origin.otherwise([](origin_request& request, origin_connection& connection) {
            connection.send(ok("Cache-Control: max-age=60\r\n", "body of " + request.target));
        });
        auto one = w.proxy.connect();
        for (int i = 0; i < 100; ++i) {
            const auto answer = one.ask(w.request("/page/" + std::to_string(i)));
            CHECK(cache_status_of(answer).detail == "first-request");
        }
        CHECK(w.origin.requests().size() == 100);
        const auto figures = w.proxy.stats();
        CHECK(figure(figures, figure_name::store_objects) == 0);
        CHECK(figure(figures, figure_name::store_bytes) == 0);
        CHECK(figure(figures, figure_name::admission_refused) == 100);
    }

    TEST_CASE("a hit is anybody's: every connection on every thread has it") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(w.get("/a").status == 200);
        for (int i = 0; i < 16; ++i) {
            CHECK(is_hit(w.get("/a")));
        }
        CHECK(w.origin.count("/a") == 1);
    }

    TEST_CASE("one URL written in two ways is one object") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(w.get("/a").status == 200);
        auto one = w.proxy.connect();
        const auto again = one.ask("GET HTTP://" + w.origin.authority() +
                                   "/a HTTP/1.1\r\nhost: " + w.origin.authority() + "\r\n\r\n");
        CHECK(is_hit(again));
    }

    TEST_CASE("another query is another object") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK_FALSE(is_hit(w.get("/a?x=1")));
        CHECK_FALSE(is_hit(w.get("/a?x=2")));
        CHECK_FALSE(is_hit(w.get("/a")));
        CHECK(is_hit(w.get("/a?x=1")));
    }

    TEST_CASE("HEAD of a stored object is a hit without a body") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(w.get("/a").status == 200);
        auto one = w.proxy.connect();
        const auto head = one.ask(absolute_request("HEAD", w.origin.url("/a")));
        CHECK(is_hit(head));
        CHECK(head.get("Content-Length") == "5");
        const auto after = one.ask(w.request("/a"));  // no body bytes are left in between
        CHECK(after.body == "hello");
        CHECK(w.origin.count("/a") == 1);
    }

    TEST_CASE("HEAD is no sight and stores nothing") {
        world w{basic_settings()};
        w.origin.on("/a", [](origin_request& request, origin_connection& connection) {
            connection.send(
                request.method == "HEAD"
                    ? raw_head("200 OK", "Cache-Control: max-age=60\r\nContent-Length: 5\r\n")
                    : ok("Cache-Control: max-age=60\r\n", "hello"));
        });
        CHECK(w.ask("HEAD", "/a").status == 200);
        CHECK(w.ask("HEAD", "/a").status == 200);
        CHECK(cache_status_of(w.get("/a")).detail == "first-request");
        CHECK(cache_status_of(w.get("/a")).stored);
    }

    TEST_CASE("only-if-cached without a stored object is 504, and no sight") {
        world w{basic_settings()};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(w.get("/a", "Cache-Control: only-if-cached\r\n").status == 504);
        CHECK(w.origin.count("/a") == 0);
        CHECK(cache_status_of(w.get("/a")).detail == "first-request");
    }

    TEST_CASE("a fetch that failed is no sight") {
        world w{basic_settings()};
        w.origin.on("/a",
                    [](origin_request&, origin_connection& connection) { connection.reset(); });
        CHECK(w.get("/a").status == 502);
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(cache_status_of(w.get("/a")).detail == "first-request");
    }

    TEST_CASE("a response that may not be stored is no sight") {
        world w{basic_settings()};
        w.origin.on("/a", ok("Cache-Control: no-store\r\n", "hello"));
        CHECK(cache_status_of(w.get("/a")).detail == "no-store");
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(cache_status_of(w.get("/a")).detail == "first-request");
    }

    TEST_CASE("a range is a sight, and what it gave is not taken for the whole") {
        world w{basic_settings()};
        w.origin.on("/a", [](origin_request& request, origin_connection& connection) {
            if (request.has("Range")) {
                connection.send(
                    answer("206 Partial Content",
                           "Cache-Control: max-age=60\r\nContent-Range: bytes 0-1/5\r\n",
                           "he"));
            } else {
                connection.send(ok("Cache-Control: max-age=60\r\n", "hello"));
            }
        });
        const auto part = w.get("/a", "Range: bytes=0-1\r\n");
        CHECK(part.status == 206);
        CHECK(part.body == "he");
        const auto whole = w.get("/a");
        CHECK(whole.status == 200);
        CHECK(whole.body == "hello");
        CHECK(cache_status_of(whole).stored);
    }

    TEST_CASE("a conditional request that the origin answers with 304 is a sight") {
        world w{basic_settings()};
        w.origin.on("/a", [](origin_request& request, origin_connection& connection) {
            if (request.get("If-None-Match") == "\"v1\"") {
                connection.send(
                    raw_head("304 Not Modified", "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n"));
            } else {
                connection.send(ok("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", "hello"));
            }
        });
        CHECK(w.get("/a", "If-None-Match: \"v1\"\r\n").status == 304);
        CHECK(cache_status_of(w.get("/a")).stored);
        CHECK(is_hit(w.get("/a")));
    }

    namespace {

    struct copied_page {
        std::string fields = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\nLast-Modified: "
                             "Sat, 01 Jan 2022 00:00:00 GMT\r\n";
        std::string body = "hello";

        void put_on(fake_origin& origin, const std::string& path) const {
            origin.on(path, [page = *this](origin_request& request, origin_connection& to) {
                const bool same = request.get("If-None-Match") == "\"v1\"" ||
                                  request.has("If-Modified-Since");
                to.send(same ? raw_head("304 Not Modified", page.fields)
                             : ok(page.fields, page.body));
            });
        }
    };

    }  // namespace

    TEST_CASE("what clients ask for that have a copy is stored all the same, at the second sight") {
        for (const std::string condition :
             {"If-None-Match: \"v1\"\r\n",
              "If-Modified-Since: Sat, 01 Jan 2022 00:00:00 GMT\r\n"}) {
            for (const bool large : {false, true}) {
                CAPTURE(condition);
                CAPTURE(large);
                world w{basic_settings()};
                const copied_page page{.body = large ? patterned(3 * mib) : "hello"};
                page.put_on(w.origin, "/a");
                CHECK(w.get("/a", condition).status == 304);
                // The first costs the origin what it would without us.
                CHECK(w.origin.requests("/a").at(0).has(condition.substr(0, condition.find(':'))));
                const auto second = w.get("/a", condition);
                CHECK(second.status == 304);
                CHECK(second.body.empty());
                CHECK(second.get("ETag") == "\"v1\"");
                CHECK(cache_status_of(second).stored);
                const auto asked = w.origin.requests("/a").at(1);
                CHECK_FALSE(asked.has("If-None-Match"));
                CHECK_FALSE(asked.has("If-Modified-Since"));
                CHECK(eventually([&] {
                    const auto hit = w.get("/a", "Cache-Control: only-if-cached\r\n");
                    return is_hit(hit) && hit.body == page.body;
                }));
                CHECK(is_hit(w.get("/a", condition)));
                CHECK(w.origin.count("/a") == 2);
            }
        }
    }

    TEST_CASE("a copy that no longer holds is answered with all of the new one") {
        world w{basic_settings()};
        copied_page{}.put_on(w.origin, "/a");
        CHECK(w.get("/a", "If-None-Match: \"v1\"\r\n").status == 304);
        const auto second = w.get("/a", "If-None-Match: \"v0\"\r\n");
        CHECK(second.status == 200);
        CHECK(second.body == "hello");
        CHECK(is_hit(w.get("/a")));
    }

    TEST_CASE("conditions stay on what will not be stored, and those that are the origin's") {
        struct row {
            std::string fields, asked;
        };
        for (const auto& [fields, asked] :
             {row{"Cache-Control: no-store\r\nETag: \"v1\"\r\n", "If-None-Match: \"v1\"\r\n"},
              row{copied_page{}.fields, "If-Match: \"v1\"\r\nIf-None-Match: \"v1\"\r\n"},
              row{copied_page{}.fields, "If-None-Match: \"v1\"\r\nCache-Control: no-store\r\n"}}) {
            CAPTURE(fields);
            CAPTURE(asked);
            world w{basic_settings()};
            copied_page{.fields = fields}.put_on(w.origin, "/a");
            for (unsigned i = 0; i < 4; ++i) {
                CHECK(w.get("/a", asked).status == 304);
                CHECK(w.origin.requests("/a").at(i).get("If-None-Match") == "\"v1\"");
            }
        }
    }

}  // TEST_SUITE
