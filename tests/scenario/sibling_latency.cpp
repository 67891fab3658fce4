// What misses cost beside a sibling that does not answer as it should: a measurement, not a test. ctest
// has nothing of it (tests/CMakeLists.txt); by hand:
//
//     scenario -ts=scenario/sibling_latency --no-skip

#include "tests/scenario/liar.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

using namespace reprise::tests;

namespace {

constexpr int misses = 1000;

struct latencies {
    std::vector<double> ms;

    void note(std::chrono::steady_clock::duration took) {
        ms.push_back(std::chrono::duration<double, std::milli>(took).count());
    }
    [[nodiscard]] double quantile(double q) {
        std::sort(ms.begin(), ms.end());
        return ms.at(static_cast<std::size_t>(q * static_cast<double>(ms.size() - 1)));
    }
};

std::string object_path(int i) {
    return "/" + std::to_string(i);
}

latencies ask_for_all(const fleet& f, proxy_process& node, bool& right) {
    latencies out;
    for (int i = 0; i < misses; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        const auto got = node.get(f.origin.url(object_path(i)));
        out.note(std::chrono::steady_clock::now() - begin);
        right = right && got.status == 200 && got.body == "body of " + object_path(i);
    }
    return out;
}

void print(const char* name, latencies& one, latencies& direct) {
    std::printf("| %s | %.2f | %.2f | %.2f | %+.2f |\n",
                name,
                one.quantile(0.5),
                one.quantile(0.99),
                one.quantile(1),
                one.quantile(0.99) - direct.quantile(0.99));
}

}  // namespace

TEST_SUITE("scenario/sibling_latency") {
    TEST_CASE("p99 of misses beside a sibling gone bad" * doctest::skip()) {
        struct deed {
            const char* name;
            origin_handler asked;
        };
        const deed deeds[] = {
            {"says 504 always", [](auto&, auto& c) { c.send(answer("504 Not Here", "", "no")); }},
            {"hangs",
             [](auto&, auto& c) {
                 std::string nothing;
                 (void)c.read_some(nothing, std::chrono::seconds{2});
                 c.close();
             }},
            {"resets", [](auto&, auto& c) { c.reset(); }},
            {"sends garbage",
             [](auto&, auto& c) {
                 c.send("\x01\x02 not HTTP\r\n\r\n");
                 c.close();
             }},
            {"drips its head",
             [](auto&, auto& c) {
                 for (int i = 0; i < 20 && c.send("H"); ++i) {
                     c.pause(std::chrono::milliseconds{100});
                 }
                 c.close();
             }},
            {"answers after 200 ms",
             [](auto& request, auto& c) {
                 c.pause(std::chrono::milliseconds{200});
                 c.send(ok("Age: 1\r\nCache-Control: max-age=60\r\n",
                           "body of " + request.target.substr(request.target.rfind('/'))));
             }},
        };
        auto settings = node_settings();
        settings.erase("peering");  // the default budget
        std::puts("| the sibling | p50, ms | p99, ms | most, ms | p99 over direct's, ms |");
        std::puts("|---|---:|---:|---:|---:|");
        for (const auto& one : deeds) {
            fleet f{2, settings};
            f.serve_everything();
            for (int i = 0; i < misses; ++i) {
                CHECK(f[0].get(f.origin.url(object_path(i))).status == 200);
            }
            liar as{f, 0, one.asked};
            f.tell(1,
                   json::array({{{"name", "liar"},
                                 {"url", "http://127.0.0.1:" + std::to_string(as.as.port())},
                                 {"refresh", "1s"}}}));
            REQUIRE(f.holds(1, "liar", misses));
            bool right = true;
            proxy_process alone{settings};
            auto direct = ask_for_all(f, alone, right);
            auto beside = ask_for_all(f, f[1], right);
            CHECK(right);
            print("(none)", direct, direct);
            print(one.name, beside, direct);
        }
    }
}
