#include "tools/bench_proxy/load.hpp"
#include "tools/bench_proxy/origin.hpp"
#include "tools/bench_proxy/tunnel_load.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

namespace reprise::bench::test::of_tunnel_load {

namespace {

tunnel_load asking(const origin& from, std::size_t size) {
    tunnel_load out;
    out.port = from.port();
    out.connections = 4;
    out.count = 50;
    out.body = size;
    out.request = [&from, size](std::uint64_t n) {
        return get_request("/" + std::to_string(size) + "/" + std::to_string(n), from.authority());
    };
    return out;
}

}  // namespace

TEST_SUITE_BEGIN("bench_proxy/tunnel_load");

TEST_CASE("what was planned is answered, on kept connections and on new ones") {
    const origin from;
    for (const std::size_t size : {1UL, 1024UL, 100'000UL}) {
        for (const bool closes : {false, true}) {
            auto plan = asking(from, size);
            plan.closes = closes;
            const auto before = from.requests();
            const auto got = run_tunnel_load(plan);
            CHECK(got >= 50);
            CHECK(got < 50 + plan.connections);  // those that were under way
            CHECK(from.requests() - before == got);
        }
    }
}

TEST_CASE("each connection begins with a CONNECT of its own, where there is to be one") {
    const origin from;  // which answers that like anything else
    auto plan = asking(from, 1024);
    plan.closes = true;
    std::uint64_t asked = 0;
    plan.connect = [&asked](std::uint64_t n) {
        CHECK(n == asked++);
        return "host" + std::to_string(n) + ".test:443";
    };
    const auto before = from.requests();
    const auto got = run_tunnel_load(plan);
    CHECK(asked == got);
    CHECK(from.requests() - before == 2 * got);
}

TEST_CASE("an answer that is longer than planned is no success") {
    const origin from;
    auto plan = asking(from, 1024);
    plan.body = 1000;
    CHECK_THROWS_AS(static_cast<void>(run_tunnel_load(plan)), std::runtime_error);
}

TEST_SUITE_END();

}  // namespace reprise::bench::test::of_tunnel_load
