#include "proxy/base/counters.hpp"

#include <algorithm>

namespace reprise::proxy {

std::string_view to_string(outcome value) noexcept {
    switch (value) {
    case outcome::hit: return "hit";
    case outcome::revalidated: return "revalidated";
    case outcome::stale: return "stale";
    case outcome::miss: return "miss";
    case outcome::sibling: return "sibling";
    case outcome::collapsed: return "collapsed";
    case outcome::pass: return "pass";
    case outcome::tunnel: return "tunnel";
    case outcome::local: return "local";
    case outcome::only_if_cached: return "only_if_cached";
    case outcome::client_error: return "client_error";
    case outcome::refused: return "refused";
    case outcome::error: return "error";
    case outcome::cut_short: return "cut_short";
    case outcome::client_gone: return "client_gone";
    }
    return "unknown";
}

std::string_view to_string(fetch_end value) noexcept {
    switch (value) {
    case fetch_end::finished: return "finished";
    case fetch_end::failed: return "failed";
    case fetch_end::given_up: return "given_up";
    }
    return "unknown";
}

std::string_view to_string(config::admission_policy value) noexcept {
    switch (value) {
    case config::admission_policy::second_hit: return "second-hit";
    case config::admission_policy::always: return "always";
    case config::admission_policy::never: return "never";
    case config::admission_policy::nth_hit: return "nth-hit";
    case config::admission_policy::tinylfu: return "tinylfu";
    case config::admission_policy::automatic: return "auto";
    }
    return "unknown";
}

std::string_view to_string(latency_class value) noexcept {
    switch (value) {
    case latency_class::hit: return "hit";
    case latency_class::miss: return "miss";
    case latency_class::pass: return "pass";
    }
    return "unknown";
}

namespace {

// latency_class_count where a latency says nothing about this proxy.
constexpr std::size_t class_of(outcome how) noexcept {
    switch (how) {
    case outcome::hit:
    case outcome::stale: return static_cast<std::size_t>(latency_class::hit);
    case outcome::revalidated:
    case outcome::miss:
    case outcome::sibling:
    case outcome::collapsed: return static_cast<std::size_t>(latency_class::miss);
    case outcome::pass: return static_cast<std::size_t>(latency_class::pass);
    case outcome::tunnel:
    case outcome::local:
    case outcome::only_if_cached:
    case outcome::client_error:
    case outcome::refused:
    case outcome::error:
    case outcome::cut_short:
    case outcome::client_gone: break;
    }
    return latency_class_count;
}

void note(basic_histogram<counter>& histogram, std::chrono::nanoseconds took) noexcept {
    const auto whole = std::chrono::floor<std::chrono::microseconds>(took).count();
    const auto microseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(whole, 0));
    histogram.buckets[latency_buckets::index_of(microseconds)].add();
    histogram.sum_microseconds.add(microseconds);
}

std::uint64_t sum_of(const std::array<std::uint64_t, outcome_count>& requests,
                     std::initializer_list<outcome> outcomes) noexcept {
    std::uint64_t sum = 0;
    for (const auto one : outcomes) {
        sum += requests[static_cast<std::size_t>(one)];
    }
    return sum;
}

}  // namespace

void note_latency(thread_counters& counts,
                  outcome how,
                  std::chrono::nanoseconds first_byte,
                  std::chrono::nanoseconds complete) noexcept {
    const auto which = class_of(how);
    if (which != latency_class_count) {
        note(counts.first_byte[which], first_byte);
        note(counts.complete[which], complete);
    }
}

counters_registry::counters_registry(std::size_t threads)
    : threads_{threads},
      blocks_{std::make_unique<thread_counters[]>(threads)} {}

totals counters_registry::snapshot() const {
    totals sum;
    for (std::size_t thread = 0; thread < threads_; ++thread) {
        const basic_counters<counter>& block = blocks_[thread];
        const auto cells = cells_of<const basic_counters<counter>, const counter>(block);
        const auto into = cells_of<totals, std::uint64_t>(sum);
        static_assert(sizeof(basic_counters<counter>) == sizeof(totals));
        for (std::size_t i = 0; i < cells.size(); ++i) {
            into[i] += cells[i].read();
        }
    }
    return sum;
}

std::uint64_t answered_requests(const std::array<std::uint64_t, outcome_count>& requests) noexcept {
    return hits(requests) +
           sum_of(requests, {outcome::miss, outcome::sibling, outcome::collapsed, outcome::pass});
}

std::uint64_t hits(const std::array<std::uint64_t, outcome_count>& requests) noexcept {
    return sum_of(requests, {outcome::hit, outcome::revalidated, outcome::stale});
}

std::uint64_t answered_requests(const totals& counts) noexcept {
    return answered_requests(counts.requests);
}

std::uint64_t hits(const totals& counts) noexcept {
    return hits(counts.requests);
}

}  // namespace reprise::proxy
