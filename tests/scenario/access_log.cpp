// One line of JSON for each request: what was asked, what was answered, why, how long it took.

#include "tests/scenario/world.hpp"

#include <algorithm>
#include <vector>

TEST_SUITE("scenario/access_log") {

    using namespace reprise::tests;

    TEST_CASE("each request is one line that says what happened") {
        world w{basic_settings()};
        w.origin.on("/page", ok("Cache-Control: max-age=60\r\n", "hello"));
        for (int i = 0; i < 3; ++i) {
            CHECK(w.get("/page", "User-Agent: tester/1\r\n").status == 200);
        }
        REQUIRE(eventually([&] { return w.proxy.access_log().size() == 3; }));
        const auto lines = w.proxy.access_log();
        const char* outcomes[] = {"miss", "miss", "hit"};
        std::vector<std::string> seen;
        for (const auto& line : lines) {
            CAPTURE(line.dump());
            for (const std::string name :
                 {"time", "client", "method", "url", "status", "outcome", "bytes_out", "ms"}) {
                CAPTURE(name);
                CHECK(line.contains(name));
            }
            CHECK(line["method"] == "GET");
            CHECK(line["status"] == 200);
            CHECK(line["url"] == w.origin.url("/page"));
            CHECK(line["user_agent"] == "tester/1");
            CHECK(line["bytes_out"].get<int>() > 5);
            seen.push_back(line["outcome"]);
        }
        // Between threads lines may change places.
        std::sort(seen.begin(), seen.end());
        CHECK(seen == std::vector<std::string>{outcomes[2], outcomes[0], outcomes[1]});
        const auto first = std::find_if(lines.begin(), lines.end(), [](const json& line) {
            return line.value("reason", "") == "first-request";
        });
        REQUIRE(first != lines.end());
        CHECK((*first)["origin"] == w.origin.authority());
    }

    TEST_CASE("in Squid's format a line has the code that Squid would have for it") {
        auto settings = storing_settings();
        settings["log"]["format"] = "squid";
        settings["access"]["deny_destinations"] = json::array({"denied.example"});
        world w{settings};
        w.origin.on("/kept",
                    ok("Cache-Control: max-age=60\r\nETag: \"1\"\r\n"
                       "Content-Type: text/plain; charset=utf-8\r\n",
                       "hello"));
        w.origin.on("/held", [](origin_request& request, origin_connection& to) {
            const std::string own = "ETag: \"1\"\r\nCache-Control: max-age=0\r\n";
            to.send(request.has("If-None-Match") ? raw_head("304 Not Modified", own)
                                                 : ok(own, "hello"));
        });
        w.origin.on("/gone", ok("", "a"));
        CHECK(w.get("/kept").status == 200);
        CHECK(w.get("/kept").status == 200);
        CHECK(w.get("/kept", "If-None-Match: \"1\"\r\n").status == 304);
        CHECK(w.get("/kept", "Cache-Control: no-cache\r\n").status == 200);
        CHECK(w.get("/held").status == 200);
        CHECK(w.get("/held").status == 200);
        CHECK(w.proxy.get("http://denied.example/").status == 403);
        const auto has = [&](const std::string& text) {
            CAPTURE(text);
            CHECK(eventually([&] { return w.proxy.output().find(text) != std::string::npos; }));
        };
        const auto kept = w.origin.url("/kept"), held = w.origin.url("/held");
        const std::string direct = " - HIER_DIRECT/127.0.0.1 ";
        has(" GET " + kept + direct + "text/plain\n");
        has(" 127.0.0.1 TCP_MISS/200 ");
        has(" TCP_MEM_HIT/200 ");
        has(" GET " + kept + " - HIER_NONE/- text/plain\n");
        has(" TCP_INM_HIT/304 ");
        has(" TCP_CLIENT_REFRESH_MISS/200 ");
        // Each line whole, since what stands in one of them stands for the others.
        const auto line_with = [&](const std::string& text) {
            has(text);
            const auto all = w.proxy.output();
            const auto at = all.find(text);
            const auto begin = all.rfind('\n', at) + 1;
            return all.substr(begin, all.find('\n', at) - begin);
        };
        const auto confirmed = line_with(" TCP_REFRESH_UNMODIFIED/200 ");
        CHECK(confirmed.find(direct) != std::string::npos);
        CHECK(line_with(held).find(direct) != std::string::npos);
        has(" TCP_DENIED/403 ");
    }

    TEST_CASE("a line says who confirmed what was stored") {
        world w;
        w.origin.on("/held", [](origin_request& request, origin_connection& to) {
            const std::string own = "ETag: \"1\"\r\nCache-Control: max-age=0\r\n";
            to.send(request.has("If-None-Match") ? raw_head("304 Not Modified", own)
                                                 : ok(own, "hello"));
        });
        CHECK(w.get("/held").status == 200);
        CHECK(w.get("/held").status == 200);
        REQUIRE(eventually([&] { return w.proxy.access_log().size() == 2; }));
        for (const auto& line : w.proxy.access_log()) {
            CAPTURE(line.dump());
            CHECK(line["origin"] == w.origin.authority());
            CHECK(line.contains("origin_ms"));
        }
    }

    TEST_CASE("a trace's parent goes to the origin as it came, and into the line") {
        world w{basic_settings()};
        const std::string parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        w.origin.on("/traced", ok("", "a"));
        CHECK(w.get("/traced", "traceparent: " + parent + "\r\ntracestate: a=1\r\n").status == 200);
        const auto asked = w.origin.requests("/traced");
        REQUIRE(asked.size() == 1);
        CHECK(asked[0].get("traceparent") == parent);
        CHECK(asked[0].get("tracestate") == "a=1");
        const auto line = w.proxy.logged("/traced");
        REQUIRE(line.is_object());
        CHECK(line["traceparent"] == parent);
    }

    TEST_CASE("a refused request is logged as it was asked, whatever its body brings later") {
        auto settings = basic_settings();
        settings["access"]["deny_destinations"] = json::array({"denied.example"});
        world w{settings};
        auto one = w.proxy.connect(absolute_request(
            "POST", "http://denied.example/asked", "User-Agent: asker\r\nContent-Length: 400\r\n"));
        CHECK(one.read().status == 403);
        one.send(std::string(400, 'x'));
        const auto line = w.proxy.logged("denied.example/asked");
        REQUIRE(line.is_object());
        CHECK(line["method"] == "POST");
        CHECK(line["user_agent"] == "asker");
        CHECK(line["bytes_in"].get<int>() > 400);
    }

    TEST_CASE("query values are redacted, names stay") {
        world w{basic_settings()};
        w.origin.on("/signed", ok("", "hello"));
        CHECK(w.get("/signed?X-Signature=sesame&user=me&flag").status == 200);
        const auto line = w.proxy.logged("/signed");
        REQUIRE(line.is_object());
        const auto url = line["url"].get<std::string>();
        CHECK(url.find("X-Signature") != std::string::npos);
        CHECK(url.find("sesame") == std::string::npos);
        CHECK(w.proxy.output().find("sesame") == std::string::npos);
        CHECK(w.proxy.errors().find("sesame") == std::string::npos);
    }

    TEST_CASE("what stands in a path's parameters is redacted as query values are") {
        world w{basic_settings()};
        w.origin.otherwise(sends(ok("", "hello")));
        CHECK(w.get("/shop;jsessionid=sesame/cart;user=me?x=sesame").status == 200);
        const auto line = w.proxy.logged("/shop");
        REQUIRE(line.is_object());
        CHECK(line["url"] == w.origin.url("/shop;jsessionid=*/cart;user=*?x=*"));
        CHECK(w.proxy.get("http://user;word=sesame:sesame@" + w.origin.authority() + "/named")
                  .status == 400);
        CHECK(w.proxy.logged("/named")["url"] == w.origin.url("/named"));
        // Not in any field of any line: not in the words for people either.
        CHECK(w.get("/a;b=sesame", "Expect: sesame=sesame\r\n").status == 417);
        CHECK(w.get("/last").status == 200);
        CHECK(w.proxy.logged("/last").is_object());
        CHECK(w.proxy.output().find("sesame") == std::string::npos);
        CHECK(w.proxy.errors().find("sesame") == std::string::npos);
    }

    TEST_CASE("query values are logged when log.query_values says so") {
        auto settings = basic_settings();
        settings["log"]["query_values"] = true;
        world w{settings};
        w.origin.on("/page", ok("", "hello"));
        CHECK(w.get("/page?a=b").status == 200);
        CHECK(w.proxy.logged("/page")["url"] == w.origin.url("/page?a=b"));
    }

    TEST_CASE("whatever a client sends, a line is a line of JSON") {
        world w{basic_settings()};
        w.origin.otherwise(sends(ok("", "hello")));
        CHECK(w.get("/odd-\xff\xfe\"\\<>", "User-Agent: \xff\"\\ x\r\n").status == 200);
        CHECK(w.proxy.logged("/odd-").is_object());
        auto one = w.proxy.connect("\x16\x03\x01\"\\\r\n\r\n");
        CHECK(one.read_to_end().end != read_end::timed_out);
        CHECK(w.get("/last").status == 200);
        CHECK(w.proxy.logged("/last").is_object());
    }

    TEST_CASE("credentials are never logged") {
        world w{basic_settings()};
        w.origin.on("/a", ok("", "hello"));
        CHECK(w.get("/a",
                    "Authorization: Bearer topsecret\r\nCookie: id=topsecret\r\n"
                    "Proxy-Authorization: Basic topsecret\r\n")
                  .status == 200);
        auto one = w.proxy.connect();
        (void)one.ask("GET http://user:topsecret@127.0.0.1:1/ HTTP/1.1\r\nHost: x\r\n\r\n");
        CHECK(w.proxy.logged("/a").is_object());
        w.proxy.stop();
        CHECK(w.proxy.output().find("topsecret") == std::string::npos);
        CHECK(w.proxy.errors().find("topsecret") == std::string::npos);
    }

    TEST_CASE("errors say what failed, tunnels that they were tunnels") {
        fake_origin origin;
        auto settings = basic_settings();
        acceptor server;
        settings["access"]["connect_ports"] = json::array({server.port()});
        proxy_process proxy{settings};
        origin.on("/reset",
                  [](origin_request&, origin_connection& connection) { connection.reset(); });
        CHECK(proxy.get(origin.url("/reset")).status == 502);
        const auto failed = proxy.logged("/reset");
        REQUIRE(failed.is_object());
        CHECK(failed["status"] == 502);
        CHECK(failed["outcome"] == "error");
        CHECK_FALSE(failed.value("reason", "").empty());

        const auto authority = "127.0.0.1:" + std::to_string(server.port());
        {  // both sides end it, so that it is over
            auto one = proxy.connect();
            CHECK(one.ask("CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n")
                      .status == 200);
            CHECK(server.accept(patience).is_open());
        }
        const auto tunnel = proxy.logged(authority);
        REQUIRE(tunnel.is_object());
        CHECK(tunnel["method"] == "CONNECT");
        CHECK(tunnel["outcome"] == "tunnel");
    }

    TEST_CASE("what refuses the lines is named where the operator looks") {
        auto settings = storing_settings();
        settings["log"]["access"] = "/dev/full";
        world w{settings};
        w.origin.on("/a", ok("", "hello"));
        CHECK(w.get("/a").status == 200);
        CHECK(w.proxy.says(
            "log.access: lines are lost, since they can't be written: No space left on device"));
        CHECK(w.proxy.admin("/log").body.find("No space left on device") != std::string::npos);
        const auto not_well = [&] { return w.proxy.stats()["summary"]["not_well"].dump(); };
        CHECK(eventually([&] {
            return not_well().find("log.access can't be written: No space left on device.") !=
                   std::string::npos;
        }));
        CHECK(not_well().find("too slow") == std::string::npos);
    }

    TEST_CASE("\"off\" logs nothing") {
        auto settings = basic_settings();
        settings["log"]["access"] = "off";
        world w{settings};
        w.origin.on("/a", ok("", "hello"));
        CHECK(w.get("/a").status == 200);
        w.proxy.stop();
        CHECK(w.proxy.output().empty());
    }

    TEST_CASE("what was logged is there after the program has ended") {
        world w{basic_settings()};
        w.origin.on("/a", ok("", "hello"));
        for (int i = 0; i < 100; ++i) {
            CHECK(w.get("/a").status == 200);
        }
        w.proxy.stop();
        CHECK(w.proxy.access_log().size() == 100);
    }

}  // TEST_SUITE
