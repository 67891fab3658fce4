// What goes on to the origin, and what ends at this hop (RFC 9110 7.6).

#include "tests/scenario/world.hpp"

TEST_SUITE("scenario/forwarding") {

    using namespace reprise::tests;

    namespace {

    json with_pseudonym(const char* name) {
        auto settings = basic_settings();
        settings["forwarding"] = {{"pseudonym", name}};
        return settings;
    }

    }  // namespace

    TEST_CASE("the origin gets origin-form, Host from the target, HTTP/1.1 and a Via") {
        world w{with_pseudonym("here")};
        w.origin.on("/a", ok("", "hello"));
        auto one = w.proxy.connect();
        CHECK(one.ask("GET " + w.origin.url("/a?q=1") +
                      " HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n")
                  .body == "hello");
        const auto got = w.origin.requests("/a").at(0);
        CHECK(got.target == "/a?q=1");
        CHECK(got.version == "HTTP/1.1");
        CHECK(got.fields.count("Host") == 1);
        CHECK(got.get("Host") == w.origin.authority());
        CHECK(got.get("Via") == "1.1 here");

        auto old = w.proxy.connect();
        const auto answer = old.ask("GET " + w.origin.url("/a") + " HTTP/1.0\r\n\r\n");
        CHECK(answer.get("Via") == "1.1 here");
        CHECK(w.origin.requests("/a").at(1).get("Via") == "1.0 here");
        CHECK(w.origin.requests("/a").at(1).get("Host") == w.origin.authority());
    }

    TEST_CASE("Via is added behind those that are there") {
        world w{with_pseudonym("here")};
        w.origin.on("/a", ok("Via: 1.0 behind\r\n", "hello"));
        const auto answer = w.get("/a", "Via: 1.0 before, 1.1 another\r\n");
        CHECK(w.origin.requests("/a").at(0).fields.all("Via") ==
              "1.0 before, 1.1 another, 1.1 here");
        CHECK(answer.fields.all("Via") == "1.0 behind, 1.1 here");
    }

    TEST_CASE("a pseudonym names the cache in Cache-Status too, whoever the answer is of") {
        auto settings = storing_settings();
        settings["forwarding"] = {{"pseudonym", "here"}};
        world w{settings};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(w.get("/a").get("Cache-Status").starts_with("here; fwd=uri-miss"));
        CHECK(w.get("/a").get("Cache-Status").starts_with("here; hit"));
        CHECK(w.get("/b", "Cache-Control: only-if-cached\r\n")
                  .get("Cache-Status")
                  .starts_with("here; fwd=uri-miss; detail="));
    }

    TEST_CASE("without a pseudonym each instance has a name of its own") {
        world one{basic_settings()};
        world two{basic_settings()};
        one.origin.on("/a", ok("", "hello"));
        two.origin.on("/a", ok("", "hello"));
        const auto first = one.get("/a").get("Via");
        const auto second = two.get("/a").get("Via");
        CHECK_FALSE(first.empty());
        CHECK(first != second);
    }

    TEST_CASE("a loop is 508") {
        world w{with_pseudonym("here")};
        w.origin.on("/a", ok("", "hello"));
        CHECK(w.get("/a", "Via: 1.1 other, 1.1 here\r\n").status == 508);
        CHECK(w.get("/a", "Via: 1.1 other\r\nVia: 1.0 HERE (comment)\r\n").status == 508);
        CHECK(w.origin.requests().empty());
        CHECK(w.get("/a", "Via: 1.1 hereabouts, 1.1 x (here)\r\n").status == 200);
    }

    TEST_CASE("a request that comes back to the proxy itself is 508, not an endless chain") {
        fake_origin origin;
        auto settings = with_pseudonym("here");
        settings["listeners"].push_back({{"address", "127.0.0.1:0"},
                                         {"mode", "accelerator"},
                                         {"upstream", "http://" + origin.authority()}});
        const proxy_process proxy{settings};
        const auto ask_itself = [&](std::size_t listener) {
            const auto accepted = [&] { return figure(proxy.stats(), "/clients/accepted"); };
            const auto before = accepted();
            const auto url = "http://127.0.0.1:" + std::to_string(proxy.port(listener)) + "/a";
            const auto answer = proxy.get(url);
            CHECK(answer.complete());
            CHECK(accepted() - before == 2);  // the client, and once the proxy itself
            return answer.status;
        };
        CHECK(ask_itself(1) == 508);
        // To its forward listener it comes as a path, which is refused before Via is looked at.
        CHECK(ask_itself(0) == 400);
        CHECK(origin.connections() == 0);
    }

    TEST_CASE("hop-by-hop fields and what Connection names end here, on the way out") {
        world w{basic_settings()};
        w.origin.on("/a", ok("", "hello"));
        CHECK(w.get("/a",
                    "Connection: keep-alive, X-Named, x-other\r\nConnection: X-Third\r\n"
                    "X-Named: 1\r\nX-OTHER: 2\r\nX-Third: 3\r\nX-Kept: 4\r\n"
                    "Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n"
                    "Proxy-Authorization: Basic eDp5\r\nTE: gzip\r\nTrailer: X\r\nUpgrade: h2c\r\n"
                    "HTTP2-Settings: x\r\n")
                  .body == "hello");
        const auto got = w.origin.requests("/a").at(0);
        for (const std::string name : {"X-Named",
                                       "X-Other",
                                       "X-Third",
                                       "Keep-Alive",
                                       "Proxy-Connection",
                                       "Proxy-Authorization",
                                       "Trailer",
                                       "Upgrade",
                                       "HTTP2-Settings"}) {
            CAPTURE(name);
            CHECK_FALSE(got.has(name));
        }
        CHECK(got.get("TE").find("gzip") == std::string::npos);
        CHECK(lower(got.fields.all("Connection")).find("x-") == std::string::npos);
        CHECK(got.get("X-Kept") == "4");
    }

    TEST_CASE("hop-by-hop fields and what Connection names end here, on the way back") {
        world w;
        w.origin.on("/a",
                    ok("Cache-Control: max-age=60\r\nConnection: X-Named\r\nX-Named: 1\r\n"
                       "Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n"
                       "Proxy-Authenticate: Basic\r\nUpgrade: h2c\r\nX-Kept: 4\r\n",
                       "hello"));
        for (int i = 0; i < 2; ++i) {  // a miss and a hit
            const auto answer = w.get("/a");
            CHECK(answer.body == "hello");
            for (const std::string name :
                 {"X-Named", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Upgrade"}) {
                CAPTURE(name);
                CHECK_FALSE(answer.has(name));
            }
            CHECK(answer.get("X-Kept") == "4");
        }
    }

    TEST_CASE("Connection cannot take away what a message means") {
        world w{basic_settings()};
        w.origin.on("/a", [](origin_request& request, origin_connection& connection) {
            connection.send(ok("", request.body));
        });
        auto one = w.proxy.connect();
        const auto answer = one.ask(
            absolute_request("POST",
                             w.origin.url("/a"),
                             "Connection: Host, Content-Length, Cache-Control\r\n",
                             "hello"));
        if (answer.status == 200) {
            CHECK(answer.body == "hello");
            CHECK(w.origin.requests("/a").at(0).get("Host") == w.origin.authority());
        } else {
            CHECK(answer.status == 400);
        }
    }

    TEST_CASE("fields keep their order, their case and their bytes") {
        world w{basic_settings()};
        w.origin.on("/a", ok("", "hello"));
        const std::string odd = "X-Bytes: caf\xc3\xa9 \xff \"a, b\"\t c\r\n";
        CHECK(w.get("/a", "x-Two: 1\r\n" + odd + "X-tWO: 2\r\nX-Empty:\r\n").body == "hello");
        const auto raw = w.origin.requests("/a").at(0).head.raw;
        CHECK(raw.find(odd) != std::string::npos);
        CHECK(raw.find("x-Two: 1") < raw.find("X-tWO: 2"));
        CHECK(raw.find("X-tWO: 2") != std::string::npos);
        CHECK(w.origin.requests("/a").at(0).has("X-Empty"));
    }

    TEST_CASE("what browsers really send in a path or query passes unchanged") {
        world w;
        w.origin.otherwise([](origin_request& request, origin_connection& connection) {
            connection.send(ok("Cache-Control: max-age=60\r\n", request.target));
        });
        for (const std::string target : {"/a|b",
                                         "/[a]/{b}",
                                         "/a\"b'c`d",
                                         "/%zz%",
                                         "/caf\xc3\xa9",
                                         "/\xff\xfe",
                                         "/a?b=[1]|{2}&c=\\^",
                                         "/a//b/../c/./d",
                                         "/?",
                                         "/a?b?c??",
                                         "/%2e%2E/%41",
                                         "/a;b=c@d:e,f!$&'()*+~",
                                         "/<script>"}) {
            CAPTURE(target);
            CHECK(w.get(target).body == target);
            CHECK(hit_body(w.get(target)) == target);
        }
    }

    TEST_CASE("an absolute URL without a path is asked for as /") {
        world w{basic_settings()};
        w.origin.otherwise([](origin_request& request, origin_connection& connection) {
            connection.send(ok("", request.target));
        });
        CHECK(w.proxy.get(w.origin.url("")).body == "/");
        CHECK(w.proxy.get(w.origin.url("?q=1")).body == "/?q=1");
    }

    TEST_CASE("an unknown method passes and is not cached") {
        world w;
        w.origin.on("/a", [](origin_request& request, origin_connection& connection) {
            connection.send(ok("Cache-Control: max-age=60\r\n", request.method));
        });
        for (int i = 0; i < 2; ++i) {
            CHECK(w.ask("X-FROBNICATE", "/a").body == "X-FROBNICATE");
            CHECK(w.ask("PROPFIND", "/a").body == "PROPFIND");
        }
        CHECK(w.origin.count("/a") == 4);
        CHECK(w.ask("patch", "/a").body == "patch");  // methods have a case
    }

    TEST_CASE("a method that is acted upon here is refused in another case, and reaches nobody") {
        // A next hop may take it for that one, and carry out what is refused here.
        world w;
        w.origin.on("/a", ok("", "hello"));
        for (const std::string method : {"purge", "Purge", "trace", "head", "get", "options"}) {
            CAPTURE(method);
            auto to = w.proxy.connect();
            const auto refused = to.ask(absolute_request(method, w.origin.url("/a")));
            CHECK(refused.status == 400);
            CHECK(refused.body.find("methods have a case") != std::string::npos);
            CHECK(to.is_closed_by_proxy());
        }
        auto to = w.proxy.connect();
        CHECK(to.ask("connect 127.0.0.1:443 HTTP/1.1\r\nHost: 127.0.0.1:443\r\n\r\n").status ==
              400);
        CHECK(to.is_closed_by_proxy());
        CHECK(w.get("/a").body == "hello");
        CHECK(w.origin.requests().size() == 1);
    }

    TEST_CASE("OPTIONS and TRACE stop where Max-Forwards says") {
        world w{basic_settings()};
        w.origin.otherwise([](origin_request& request, origin_connection& connection) {
            connection.send(ok("X-Hops: " + request.get("Max-Forwards") + "\r\n", request.target));
        });
        auto one = w.proxy.connect();
        const auto here = one.ask(
            absolute_request("OPTIONS", w.origin.url("/a"), "Max-Forwards: 0\r\n"));
        CHECK(here.status >= 200);
        CHECK(here.status < 300);
        CHECK(w.origin.requests().empty());

        const auto secret =
            "Max-Forwards: 0\r\nAuthorization: Basic eDp5\r\nCookie: a=b\r\nX-Mine: 1\r\n";
        const auto trace = one.ask(absolute_request("TRACE", w.origin.url("/a"), secret));
        CHECK(trace.status == 200);
        CHECK(trace.get("Content-Type").find("message/http") == 0);
        CHECK(trace.body.find("TRACE " + w.origin.url("/a")) == 0);
        CHECK(trace.body.find("X-Mine: 1") != std::string::npos);
        CHECK(trace.body.find("eDp5") == std::string::npos);
        CHECK(trace.body.find("a=b") == std::string::npos);
        CHECK(w.origin.requests().empty());

        CHECK(one.ask(absolute_request("OPTIONS", w.origin.url("/a"), "Max-Forwards: 3\r\n"))
                  .get("X-Hops") == "2");
        CHECK(one.ask(absolute_request("OPTIONS", w.origin.url("/a"))).body == "/a");
        CHECK(one.ask(absolute_request("OPTIONS", w.origin.url(""))).body == "*");
        CHECK(one.ask(absolute_request("GET", w.origin.url("/a"), "Max-Forwards: 0\r\n")).body ==
              "/a");
    }

    TEST_CASE("a Max-Forwards that is no number is refused") {
        world w{basic_settings()};
        for (const std::string value : {"x", "-1", "1x", ""}) {
            CAPTURE(value);
            CHECK(w.ask("OPTIONS", "/a", "Max-Forwards: " + std::string{value} + "\r\n").status ==
                  400);
        }
        CHECK(w.origin.requests().empty());
    }

    TEST_CASE("the client's address is told only when forwarding.client_address says so") {
        struct row {
            std::string setting;
            const char* forwarded;
            const char* x_forwarded_for;
        };
        const row rows[] = {
            {"off", "for=192.0.2.1", "192.0.2.1"},
            {"forwarded", "for=192.0.2.1, for=127.0.0.1", "192.0.2.1"},
            {"x-forwarded-for", "for=192.0.2.1", "192.0.2.1, 127.0.0.1"},
            {"both", "for=192.0.2.1, for=127.0.0.1", "192.0.2.1, 127.0.0.1"},
        };
        for (const auto& row : rows) {
            CAPTURE(row.setting);
            auto settings = basic_settings();
            settings["forwarding"] = {{"client_address", row.setting}};
            world w{settings};
            w.origin.on("/a", ok("", "hello"));
            CHECK(
                w.get("/a", "Forwarded: for=192.0.2.1\r\nX-Forwarded-For: 192.0.2.1\r\n").status ==
                200);
            const auto got = w.origin.requests("/a").at(0);
            CHECK(lower(got.fields.all("Forwarded")) == row.forwarded);
            CHECK(got.fields.all("X-Forwarded-For") == row.x_forwarded_for);
        }
    }

    TEST_CASE("a response without Date gets one, and keeps the one it has") {
        world w{basic_settings()};
        w.origin.on("/without", raw_head("200 OK", "Content-Length: 0\r\n"));
        w.origin.on(
            "/with",
            raw_head("200 OK", "Date: Mon, 02 Jan 2023 03:04:05 GMT\r\nContent-Length: 0\r\n"));
        CHECK(w.get("/without").has("Date"));
        const auto with = w.get("/with");
        CHECK(with.fields.count("Date") == 1);
        CHECK(with.get("Date") == "Mon, 02 Jan 2023 03:04:05 GMT");
    }

}  // TEST_SUITE
