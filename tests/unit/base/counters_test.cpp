#include "proxy/base/counters.hpp"

#include <doctest/doctest.h>

#include <thread>
#include <utility>
#include <vector>

using namespace reprise;
using namespace reprise::proxy;
using std::chrono::microseconds;

TEST_SUITE("base/counters") {

    TEST_CASE("a snapshot has every cell in its place") {
        counters_registry registry{1};
        auto& block = static_cast<basic_counters<counter>&>(registry.of_thread(0));
        block.requests[0].add(1);
        block.dns_failures.add(2);
        block.admission_by_rule.back().bytes_refused.add(3);
        block.complete.back().sum_microseconds.add(4);
        auto sum = registry.snapshot();
        CHECK(std::exchange(sum.requests[0], 0) == 1);
        CHECK(std::exchange(sum.dns_failures, 0) == 2);
        CHECK(std::exchange(sum.admission_by_rule.back().bytes_refused, 0) == 3);
        CHECK(std::exchange(sum.complete.back().sum_microseconds, 0) == 4);
        for (const auto cell : cells_of<totals, std::uint64_t>(sum)) {
            CHECK(cell == 0);
        }
    }

    TEST_CASE("a snapshot is the sum over all threads") {
        counters_registry registry{3};
        note_request(registry.of_thread(0), outcome::hit, 200);
        note_request(registry.of_thread(1), outcome::hit, 304);
        note_request(registry.of_thread(2), outcome::error, 502);
        note_request(registry.of_thread(2), outcome::client_gone, 0);
        registry.of_thread(1).client_open.add(5);
        registry.of_thread(1).client_open.subtract(2);
        const auto sum = registry.snapshot();
        CHECK(sum.requests[static_cast<std::size_t>(outcome::hit)] == 2);
        CHECK(sum.requests[static_cast<std::size_t>(outcome::client_gone)] == 1);
        CHECK(sum.responses_by_class == std::array<std::uint64_t, 6>{0, 0, 1, 1, 0, 1});
        CHECK(sum.client_open == 3);
        CHECK(hits(sum) == 2);
        CHECK(answered_requests(sum) == 2);
    }

    TEST_CASE("odd statuses, reasons and rules have a cell to share") {
        counters_registry registry{1};
        auto& counts = registry.of_thread(0);
        note_request(counts, outcome::pass, 999);
        note_not_stored(counts, 4000);
        note_admission(counts, config::admission_policy::second_hit, 5000, false);
        note_refused_bytes(counts, config::admission_policy::second_hit, 5000, 70);
        const auto sum = registry.snapshot();
        CHECK(sum.responses_by_class[0] == 1);
        CHECK(sum.not_stored_by_reason.back() == 1);
        CHECK(sum.admission_by_rule.back().refused == 1);
        CHECK(sum.admission_by_rule.back().bytes_refused == 70);
    }

    TEST_CASE("the ledger counts by policy, and by rule only when a rule decided") {
        counters_registry registry{1};
        auto& counts = registry.of_thread(0);
        note_admission(counts, config::admission_policy::never, 1, false);
        note_refused_bytes(counts, config::admission_policy::never, 1, 10);
        note_admission(counts, config::admission_policy::second_hit, no_rule, false);
        note_refused_bytes(counts, config::admission_policy::second_hit, no_rule, 100);
        note_admission(counts, config::admission_policy::second_hit, no_rule, true);
        const auto sum = registry.snapshot();
        const auto& second_hit = sum.admission_by_policy[0];
        CHECK(second_hit.admitted == 1);
        CHECK(second_hit.refused == 1);
        CHECK(second_hit.bytes_refused == 100);
        CHECK(sum.admission_by_rule[1].bytes_refused == 10);
        CHECK(sum.admission_by_rule[0].refused == 0);
    }

    TEST_CASE("latencies are kept for what this proxy answers, by class") {
        counters_registry registry{1};
        auto& counts = registry.of_thread(0);
        note_latency(counts, outcome::hit, microseconds{3}, microseconds{5});
        note_latency(counts, outcome::collapsed, microseconds{100}, microseconds{200});
        note_latency(counts, outcome::tunnel, microseconds{1}, microseconds{1});
        note_latency(
            counts, outcome::pass, microseconds{-4}, microseconds{0});  // a clock's mistake
        const auto sum = registry.snapshot();
        CHECK(count_of(sum.first_byte[0]) == 1);
        CHECK(sum.complete[0].sum_microseconds == 5);
        CHECK(count_of(sum.complete[1]) == 1);
        CHECK(count_of(sum.complete[2]) == 1);
        CHECK(sum.first_byte[2].sum_microseconds == 0);
    }

    TEST_CASE("readers may add up while writers count, and see sums that only grow") {
        constexpr std::size_t writers = 3;
        constexpr std::uint64_t each = 20'000;
        counters_registry registry{writers};
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < writers; ++i) {
            threads.emplace_back([&registry, i] {
                auto& counts = registry.of_thread(i);
                for (std::uint64_t n = 0; n < each; ++n) {
                    note_request(counts, outcome::hit, 200);
                    note_latency(counts, outcome::hit, microseconds{n}, microseconds{n});
                }
            });
        }
        std::uint64_t last = 0;
        while (last < writers * each) {
            const auto now = hits(registry.snapshot());
            REQUIRE(now >= last);
            last = now;
        }
        threads.clear();
        CHECK(count_of(registry.snapshot().complete[0]) == writers * each);
    }

}  // TEST_SUITE
