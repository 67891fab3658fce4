// In front of one server: origin-form requests, a key space of its own, an admission of its own.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"

TEST_SUITE("scenario/accelerator") {

    using namespace reprise::tests;

    namespace {

    /// A forward listener, and an accelerator in front of the origin that stores at once. No
    /// exception for loopback: an upstream that was configured needs none.
    struct accelerated_world {
        fake_origin origin;
        proxy_process proxy;

        accelerated_world() : proxy{settings(origin)} {}

        static json settings(const fake_origin& origin) {
            auto out = basic_settings();
            out["listeners"].push_back({{"address", "127.0.0.1:0"},
                                        {"mode", "accelerator"},
                                        {"upstream", "http://" + origin.authority()},
                                        {"admission", "always"}});
            return out;
        }
        [[nodiscard]] client connect() const { return client{proxy.port(1)}; }
        [[nodiscard]] response get(const std::string& path,
                                   const std::string& host = "www.example.org",
                                   const std::string& fields = "") const {
            auto one = connect();
            return one.ask("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n" + fields + "\r\n");
        }
    };

    // Its Date is the program's start.
    const std::string fresh_hello = ok("Cache-Control: max-age=3600\r\n", "hello");

    }  // namespace

    TEST_CASE("origin-form goes to the upstream, with the Host that was asked for") {
        accelerated_world w;
        w.origin.on("/a", fresh_hello);
        const auto first = w.get("/a?x=[1]|2");
        CHECK(first.body == "hello");
        CHECK(cache_status_of(first).stored);
        CHECK(is_hit(w.get("/a?x=[1]|2")));
        const auto got = w.origin.requests("/a").at(0);
        CHECK(got.target == "/a?x=[1]|2");
        CHECK(got.get("Host") == "www.example.org");
        CHECK(w.origin.requests().size() == 1);
    }

    TEST_CASE("an upstream needs no exception in access.allow_destinations") {
        fake_origin origin;
        auto settings = accelerated_world::settings(origin);
        settings["access"].erase("allow_destinations");
        const proxy_process proxy{settings};
        origin.on("/a", fresh_hello);
        client one{proxy.port(1)};
        CHECK(one.ask("GET /a HTTP/1.1\r\nHost: x\r\n\r\n").body == "hello");
        // Yet nobody gets there by way of the forward listener.
        CHECK(proxy.get(origin.url("/a")).status == 403);
    }

    TEST_CASE("Host is part of the key, without case") {
        accelerated_world w;
        w.origin.on("/a", [](origin_request& request, origin_connection& connection) {
            connection.send(ok("Cache-Control: max-age=60\r\n", request.get("Host")));
        });
        CHECK(w.get("/a", "one.example.org").body == "one.example.org");
        CHECK(w.get("/a", "two.example.org").body == "two.example.org");
        CHECK(is_hit(w.get("/a", "one.example.org")));
        CHECK(is_hit(w.get("/a", "ONE.example.org")));
    }

    TEST_CASE("its keys never meet those of the forward listener") {
        accelerated_world w;
        w.origin.on("/a", [](origin_request& request, origin_connection& connection) {
            connection.send(ok("Cache-Control: max-age=60\r\n", request.get("X-From")));
        });
        const auto host = w.origin.authority();
        CHECK(w.get("/a", host, "X-From: accelerator\r\n").body == "accelerator");
        const auto forward = w.proxy.get(w.origin.url("/a"), "X-From: forward\r\n");
        CHECK_FALSE(is_hit(forward));
        CHECK(forward.body == "forward");
        CHECK(w.proxy.get(w.origin.url("/a"), "X-From: forward\r\n").body == "forward");
        CHECK(is_hit(w.proxy.get(w.origin.url("/a"))));
        CHECK(w.get("/a", host).body == "accelerator");
    }

    TEST_CASE("its requests are no sights for the forward listener") {
        accelerated_world w;
        w.origin.on("/a", fresh_hello);
        CHECK(w.get("/a", w.origin.authority()).body == "hello");
        CHECK(cache_status_of(w.proxy.get(w.origin.url("/a"))).detail == "first-request");
    }

    TEST_CASE("an absolute URL is asked of the upstream, never of the host that it names") {
        accelerated_world w;
        fake_origin elsewhere;
        w.origin.on("/a", fresh_hello);
        auto one = w.connect();
        const auto answer = one.ask(absolute_request("GET", elsewhere.url("/a")));
        CHECK((answer.body == "hello" || answer.status == 400));
        CHECK(elsewhere.connections() == 0);
    }

    TEST_CASE("CONNECT is not for an accelerator") {
        accelerated_world w;
        auto one = w.connect();
        const auto answer = one.ask("CONNECT " + w.origin.authority() +
                                    " HTTP/1.1\r\nHost: " + w.origin.authority() + "\r\n\r\n");
        CHECK(answer.status >= 400);
        CHECK(answer.status < 500);
        CHECK(w.origin.connections() == 0);
    }

    TEST_CASE("HTTP/1.0 without Host is served") {
        accelerated_world w;
        w.origin.on("/a", fresh_hello);
        auto one = w.connect();
        CHECK(one.ask("GET /a HTTP/1.0\r\n\r\n").body == "hello");
        const auto got = w.origin.requests("/a").at(0);
        CHECK(got.fields.count("Host") == 1);
    }

    TEST_CASE("framing is as strict as on a forward listener") {
        accelerated_world w;
        for (const std::string fields : {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                                         "Content-Length: 1\r\nContent-Length: 2\r\n",
                                         "X-A : b\r\n",
                                         "Host: other\r\n",
                                         "X-A: b\r\n c\r\n"}) {
            CAPTURE(fields);
            auto one = w.connect();
            one.send("POST /a HTTP/1.1\r\nHost: x\r\n" + fields +
                     "\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
            CHECK(one.read("POST").status == 400);
            CHECK(one.is_closed_by_proxy());
        }
        CHECK(w.origin.requests().empty());
    }

    TEST_CASE("two slashes at the start are a path, not a host") {
        accelerated_world w;
        w.origin.otherwise([](origin_request& request, origin_connection& connection) {
            connection.send(ok("Cache-Control: max-age=60\r\n", request.target));
        });
        CHECK(w.get("//a/b").body == "//a/b");
        CHECK(w.get("/a/b").body == "/a/b");
        CHECK(w.get("//a/b").body == "//a/b");
    }

    TEST_CASE("pipelined and kept alive it answers in order") {
        accelerated_world w;
        w.origin.otherwise([](origin_request& request, origin_connection& connection) {
            connection.send(ok("Cache-Control: max-age=60\r\n", request.target));
        });
        auto one = w.connect();
        std::string raw;
        for (int i = 0; i < 10; ++i) {
            raw += "GET /" + std::to_string(i % 3) + " HTTP/1.1\r\nHost: x\r\n\r\n";
        }
        one.send(raw);
        for (int i = 0; i < 10; ++i) {
            CHECK(one.read().body == "/" + std::to_string(i % 3));
        }
        CHECK(w.origin.requests().size() == 3);
    }

    TEST_CASE("where its upstream is, an operator reads in the log, and no stranger on a page") {
        const closed_port closed;
        const auto upstream = "127.0.0.1:" + std::to_string(closed.port());
        auto settings = basic_settings();
        settings["listeners"].push_back({{"address", "127.0.0.1:0"},
                                         {"mode", "accelerator"},
                                         {"upstream", "http://" + upstream}});
        const proxy_process proxy{settings};
        for (const std::string accept : {"", "Accept: text/html\r\n"}) {
            CAPTURE(accept);
            client one{proxy.port(1)};
            const auto answer = one.ask("GET /a HTTP/1.1\r\nHost: www.example.org\r\n" + accept +
                                        "\r\n");
            CHECK(answer.status == 502);
            const auto port = std::to_string(closed.port());
            CHECK(answer.body.find(port) == std::string::npos);
            CHECK(answer.body.find("127.0.0.1") == std::string::npos);
            CHECK(answer.get("Proxy-Status").find(port) == std::string::npos);
            CHECK(answer.get("Proxy-Status").find("details=\"connect_refused\"") !=
                  std::string::npos);
        }
        CHECK(eventually([&] { return proxy.output().find(upstream) != std::string::npos; }));
        // What its own request lacks a client is told.
        client one{proxy.port(1)};
        const auto answer = one.ask("GET /a HTTP/1.1\r\nHost: a, b\r\n\r\n");
        CHECK(answer.status == 400);
        CHECK(answer.body.find("Seen: ") != std::string::npos);
    }

}  // TEST_SUITE
