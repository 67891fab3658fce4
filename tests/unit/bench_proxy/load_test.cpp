#include "tools/bench_proxy/load.hpp"
#include "tools/bench_proxy/origin.hpp"

#include <doctest/doctest.h>

namespace reprise::bench::test::of_load {

namespace {

load_plan asking(const origin& from, std::size_t size) {
    load_plan out;
    out.port = from.port();
    out.connections = 4;
    out.request = [&from, size](std::uint64_t n) {
        return get_request("/" + std::to_string(size) + "/" + std::to_string(n), from.authority());
    };
    return out;
}

}  // namespace

TEST_SUITE_BEGIN("bench_proxy/load");

TEST_CASE("as many requests as were planned are answered, with bodies of the size asked for") {
    const origin from;
    for (const std::size_t size : {1UL, 1024UL, 100'000UL}) {
        auto plan = asking(from, size);
        plan.count = 50;
        const auto before = from.requests();
        const auto got = run_load(plan);
        CHECK(got.right == 50);
        CHECK(got.wrong == 0);
        CHECK(got.latencies.empty());
        CHECK(from.requests() - before == 50);
    }
}

TEST_CASE("at a fixed rate every request has its latency, and none is sent before its time") {
    const origin from;
    auto plan = asking(from, 1024);
    plan.count = 100;
    plan.rate = 500;
    const auto got = run_load(plan);
    CHECK(got.right == 100);
    CHECK(got.latencies.size() == 100);
    CHECK(got.seconds >= 99 / 500.0);
    CHECK(got.latency(0) > 0);  // answered after it was to be sent
    CHECK(got.latency(0.5) <= got.latency(0.999));
}

TEST_CASE("a quantile is the latency that so many do not exceed") {
    load_outcome some;
    for (int i = 1; i <= 1000; ++i) {
        some.latencies.push_back(i);
    }
    CHECK(some.latency(0.5) == 500);
    CHECK(some.latency(0.999) == 999);
    CHECK(some.latency(1) == 1000);
    CHECK(load_outcome{}.latency(0.5) == 0);
}

TEST_CASE("what is asked of nobody is an error") {
    load_plan plan;
    plan.port = 1;
    plan.request = [](std::uint64_t) { return std::string{}; };
    CHECK_THROWS((void)run_load(plan));
}

TEST_SUITE_END();

}  // namespace reprise::bench::test::of_load
