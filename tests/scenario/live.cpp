// /live: requests as they end, to whoever watches; by choice, sampled, and to nobody's cost.

#include "tests/scenario/world.hpp"

#include <memory>
#include <vector>

TEST_SUITE("scenario/live") {

    using namespace reprise::tests;

    namespace {

    /// One who watches.
    struct viewer {
        client connection;
        response got;

        viewer(const proxy_process& proxy, const std::string& query = "")
            : connection{proxy.admin_port()} {
            connection.send("GET /live" + query + " HTTP/1.1\r\nHost: 127.0.0.1:" +
                            std::to_string(proxy.admin_port()) + "\r\n\r\n");
            got = connection.read_head();
            if (got.status == 200) {
                (void)saw(":\n\n");  // it is watched from here on
            }
        }
        /// Whether this text comes, in time.
        [[nodiscard]] bool saw(std::string_view text) {
            return reads_until([&] { return got.body.find(text) != std::string::npos; });
        }
        /// Whether it is told of so many requests in time, shown or left out.
        [[nodiscard]] bool hears_of(std::uint64_t requests) {
            return reads_until([&] { return events().size() + left_out() >= requests; });
        }
        [[nodiscard]] std::uint64_t left_out() const {
            std::uint64_t sum = 0;
            constexpr std::string_view mark = "event: left_out\ndata: ";
            for (auto at = got.body.find(mark); at != std::string::npos;
                 at = got.body.find(mark, at + 1)) {
                sum += std::stoull(got.body.substr(at + mark.size()));
            }
            return sum;
        }
        [[nodiscard]] std::vector<json> events() const {
            std::vector<json> all;
            constexpr std::string_view mark = "data: {";
            for (auto at = got.body.find(mark); at != std::string::npos;
                 at = got.body.find(mark, at + 1)) {
                const auto begin = at + mark.size() - 1;
                all.push_back(json::parse(got.body.substr(begin, got.body.find('\n', at) - begin)));
            }
            return all;
        }

    private:
        /// Asks when what has come is whole lines.
        template <class Condition>
        bool reads_until(Condition&& condition) {
            const auto until = std::chrono::steady_clock::now() + patience;
            while (!got.body.ends_with("\n\n") || !condition()) {
                const auto before = got.body.size();
                if (std::chrono::steady_clock::now() < until) {
                    connection.read_body(got, before + 1);
                }
                if (got.body.size() == before) {
                    return false;
                }
            }
            return true;
        }
    };

    }  // namespace

    TEST_CASE("who watches sees requests as they end, the values of their queries hidden") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        viewer one{w.proxy};
        CHECK(one.got.status == 200);
        CHECK(one.got.get("Content-Type") == "text/event-stream");
        CHECK(one.got.get("Cache-Control") == "no-store");
        CHECK(w.get("/a?token=secret").status == 200);
        // A client may have its last byte before its request has ended.
        REQUIRE(one.hears_of(1));
        CHECK(w.get("/a?token=secret").status == 200);
        REQUIRE(one.hears_of(2));
        const auto seen = one.events();
        REQUIRE(seen.size() == 2);
        CHECK(seen[0].at("outcome") == "miss");
        CHECK(seen[1].at("outcome") == "hit");
        CHECK(seen[1].at("url") == w.origin.url("/a?token=*"));
        CHECK(seen[1].at("status") == 200);
        CHECK(one.got.body.find("secret") == std::string::npos);
    }

    TEST_CASE("it may be chosen by outcome and by host") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        viewer hits{w.proxy, "?outcome=hit"};
        viewer others{w.proxy, "?host=elsewhere.example"};
        CHECK(w.get("/a").status == 200);
        CHECK(w.get("/a").status == 200);
        (void)w.proxy.get("http://www.Elsewhere.example:22/");
        REQUIRE(hits.saw("data: {"));
        CHECK(hits.events().size() == 1);
        REQUIRE(others.saw("data: {"));
        CHECK(others.events().size() == 1);
        CHECK(others.events()[0].at("outcome") == "refused");
    }

    TEST_CASE("what comes faster than it is shown is left out, and counted") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        // It watches from before the first: a client may have its last byte before its request ends.
        viewer one{w.proxy};
        CHECK(w.get("/a").status == 200);
        // All are asked at once, so that it is for the proxy alone how fast they come.
        constexpr std::size_t requests = 500;
        std::string all;
        for (std::size_t i = 0; i < requests; ++i) {
            all += w.request("/a");
        }
        auto to = w.proxy.connect(all);
        for (std::size_t i = 0; i < requests; ++i) {
            CHECK(to.read().status == 200);
        }
        (void)w.get("/last");
        REQUIRE(one.hears_of(requests + 2));
        CHECK(one.left_out() > 0);
        CHECK(one.left_out() + one.events().size() == requests + 2);
    }

    TEST_CASE("few may watch at once, and none who may not see single URLs") {
        world w;
        std::vector<std::unique_ptr<viewer>> all;
        for (int i = 0; i < 4; ++i) {
            all.push_back(std::make_unique<viewer>(w.proxy));
            CHECK(all.back()->got.status == 200);
        }
        CHECK(w.proxy.admin("/live").status == 503);
        CHECK(w.proxy.admin("/live?outcome=nonsense").status == 400);
        CHECK(w.proxy.admin("/live?what=x").status == 400);
        all.pop_back();
        // Who has left is known by the next thing that is sent.
        const auto until = std::chrono::steady_clock::now() + patience;
        unsigned status = 503;
        while (status == 503 && std::chrono::steady_clock::now() < until) {
            (void)w.get("/a");
            status = viewer{w.proxy}.got.status;
        }
        CHECK(status == 200);
    }

    TEST_CASE("a proxy that stops does not wait for who watches") {
        world w;
        viewer one{w.proxy};
        CHECK(w.proxy.stop() == 0);
    }
}
