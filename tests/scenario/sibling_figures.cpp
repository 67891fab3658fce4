// What siblings are held to: whose fault an end was, and what it cost.

#include "tests/scenario/liar.hpp"

#include <atomic>

TEST_SUITE("scenario/sibling_figures") {

    using namespace reprise::tests;

    TEST_CASE("clients who leave in the middle of a body are no failures of the sibling") {
        fleet f{2};
        f.origin.on("/a", ok("Cache-Control: max-age=600\r\n", patterned(16 * mib)));
        CHECK(f[0].get(f.origin.url("/a")).status == 200);
        REQUIRE(f.holds(1, "n0", 1));
        {
            client leaving{f[1].port()};
            leaving.send(absolute_request("GET", f.origin.url("/a")));
            CHECK(leaving.read_head().status == 200);
        }
        CHECK(eventually([&] { return f.asked(1, "n0", "true-hit") == 1; }));
        CHECK(f.asked(1, "n0", "failed") == 0);
    }

    TEST_CASE("clients who leave before an answer are nothing of the sibling's at all") {
        auto settings = node_settings();
        settings["peering"]["budget"] = "1m";  // nothing but the client ends the wait
        fleet f{2, settings};
        f.serve_everything();
        std::atomic<bool> asked{false}, left{false};
        liar as{f, 0, [&](auto&, auto& c) {
                    asked = true;
                    left = c.is_closed_by_proxy();
                }};
        store_and_meet_liar(f, as, "1m");
        {
            client leaving{f[1].port()};
            leaving.send(absolute_request("GET", f.origin.url("/a")));
            REQUIRE(eventually([&] { return asked.load(); }));
        }
        CHECK(f[1].logged("/a").at("outcome") == "client_gone");
        CHECK(eventually([&] { return left.load(); }));
        for (const auto* end : {"true-hit", "false-hit", "late", "failed"}) {
            CAPTURE(std::string{end});
            CHECK(f.asked(1, "liar", end) == 0);
        }
    }

    TEST_CASE("a sibling that breaks off has cost the time until then") {
        fleet f{2};
        const std::string body(1000, 'a');
        f.origin.on("/a", ok("Cache-Control: max-age=600\r\n", body));
        liar as{f, 0, [&](auto&, auto& c) {
                    c.send(raw_head("200 OK", "Age: 1\r\nContent-Length: 1000\r\n") +
                           body.substr(0, 500));
                    c.pause(std::chrono::milliseconds{300});
                    c.close();
                }};
        store_and_meet_liar(f, as);
        CHECK(f[1].get(f.origin.url("/a")).body == body);
        CHECK(f.asked(1, "liar", "failed") == 1);
        const auto stats = f[1].stats();
        CHECK(stats.at("/siblings/lost_seconds/liar"_json_pointer).get<double>() >= 0.3);
        // The question, the head and half of the body, each once.
        const auto lost = figure(stats, "/siblings/lost_bytes/liar");
        CHECK(lost > 600);
        CHECK(lost < 1000);
        CHECK(figure(stats, "/siblings/bytes/liar") == 0);
    }

    TEST_CASE("what two caches have in common is told, however much each has") {
        fleet f{2};
        f.serve_everything();
        const auto fill = [&f](std::size_t node, int first, int last) {
            client one{f[node].port()};
            for (int i = first; i < last; ++i) {
                const auto url = f.origin.url("/" + std::to_string(i));
                CHECK(one.ask(absolute_request("GET", url)).status == 200);
            }
        };
        // The first's digest is made for 4,096, the second's for 1,024. A key whose bits are all on already is no news, and is
        // counted with the next: of the first's last one in 360 is such, of the second's one in 200.
        fill(0, 0, 2100);
        fill(1, 1600, 2300);
        REQUIRE(f.holds(1, "n0", 2100 - 10));
        REQUIRE(f.holds(0, "n1", 700 - 10));
        for (std::size_t node = 0; node < 2; ++node) {
            CAPTURE(node);
            const auto other = node == 0 ? std::string{"n1"} : std::string{"n0"};
            const json::json_pointer place{"/siblings/estimated_overlap/" + other};
            // What is its own is compared as it was published last.
            const auto common = [&] {
                const auto stats = f[node].stats();
                const bool is_told = stats.contains(place) && stats.at(place).is_number();
                return is_told ? stats.at(place).get<double>() : 0;
            };
            CHECK(eventually([&] { return common() > 350; }));
            CHECK(common() < 650);
            const auto page = f[node].admin("/digest?with=" + other);
            CHECK(page.status == 200);
            CHECK(page.body.find("keys in both: ") != std::string::npos);
        }
    }
}
