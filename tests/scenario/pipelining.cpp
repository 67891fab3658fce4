// Requests sent without waiting are answered in their order.

#include "tests/scenario/world.hpp"

TEST_SUITE("scenario/pipelining") {

    using namespace reprise::tests;

    TEST_CASE("answers come in the order of the requests, whichever is ready first") {
        world w;
        auto& go = w.origin.hold("/slow", ok("", "slow"));
        w.origin.on("/hit", ok("Cache-Control: max-age=60\r\n", "hit"));
        CHECK(w.get("/hit").body == "hit");
        auto one = w.proxy.connect(w.request("/slow") + w.request("/hit") + w.request("/hit"));
        CHECK(one.read_raw(1, a_moment).empty());
        go.open();
        CHECK(one.read().body == "slow");
        CHECK(one.read().body == "hit");
        CHECK(one.read().body == "hit");
    }

    TEST_CASE("a hundred requests in one packet have a hundred answers") {
        world w;
        w.origin.otherwise([](origin_request& request, origin_connection& connection) {
            connection.send(ok("Cache-Control: max-age=60\r\n", request.target));
        });
        std::string raw;
        for (int i = 0; i < 100; ++i) {
            raw += w.request("/" + std::to_string(i % 7));
        }
        auto one = w.proxy.connect(raw);
        for (int i = 0; i < 100; ++i) {
            CHECK(one.read().body == "/" + std::to_string(i % 7));
        }
    }

    TEST_CASE("bodies and bodiless requests follow each other") {
        world w{basic_settings()};
        w.origin.on("/a", [](origin_request& request, origin_connection& connection) {
            connection.send(ok("", request.method + ":" + request.body));
        });
        auto one = w.proxy.connect(
            absolute_request("POST", w.origin.url("/a"), "", "one") + w.request("/a") +
            absolute_request("PUT", w.origin.url("/a"), "Transfer-Encoding: chunked\r\n") +
            chunk("two") + chunk("") + w.request("/a"));
        CHECK(one.read("POST").body == "POST:one");
        CHECK(one.read("GET").body == "GET:");
        CHECK(one.read("PUT").body == "PUT:two");
        CHECK(one.read("GET").body == "GET:");
    }

    TEST_CASE("HEAD among others has no body") {
        world w;
        w.origin.on("/a", [](origin_request& request, origin_connection& connection) {
            connection.send(
                request.method == "HEAD"
                    ? raw_head("200 OK", "Cache-Control: max-age=60\r\nContent-Length: 5\r\n")
                    : ok("Cache-Control: max-age=60\r\n", "hello"));
        });
        auto one = w.proxy.connect();
        const auto head = absolute_request("HEAD", w.origin.url("/a"));
        one.send(head + w.request("/a") + head + w.request("/a"));
        CHECK(one.read("HEAD").get("Content-Length") == "5");
        CHECK(one.read("GET").body == "hello");
        CHECK(one.read("HEAD").get("Content-Length") == "5");
        CHECK(one.read("GET").body == "hello");
    }

    TEST_CASE("nothing is read behind a request that closes the connection") {
        world w{basic_settings()};
        w.origin.on("/a", ok("", "hello"));
        w.origin.on("/b", ok("", "never"));
        auto one = w.proxy.connect(w.request("/a", "Connection: close\r\n") + w.request("/b"));
        CHECK(one.read().body == "hello");
        CHECK(one.is_closed_by_proxy());
        CHECK(w.origin.count("/b") == 0);
    }

    TEST_CASE("a client that pipelines without reading is not read without end") {
        world w;
        const auto body = patterned(100 * kib);
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", body));
        CHECK(w.get("/a").complete());
        w.proxy.forget_peak();
        const auto before = w.proxy.resident_bytes();
        auto one = w.proxy.connect();
        one.connection().shrink_receive_buffer(64 << 10);
        std::string raw;
        for (int i = 0; i < 20'000; ++i) {
            raw += w.request("/a");
        }
        const auto sent = one.connection().send_until_stalled(raw + raw + raw + raw, 2 * a_moment);
        CHECK(sent < raw.size() * 4 + 1);
        CHECK(w.proxy.peak_resident_bytes() < before + (sanitized ? 256 : 32) * mib);
        for (int i = 0; i < 20; ++i) {
            const auto answer = one.read();
            CHECK(answer.body == body);
        }
    }

}  // TEST_SUITE
