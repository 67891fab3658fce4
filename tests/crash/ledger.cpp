#include "tests/crash/ledger.hpp"

#include <algorithm>

namespace reprise::tests::crash {

namespace {
// Between the last byte at the client and the offer to the store, whichever is first.
constexpr std::chrono::milliseconds offered_within{250};
}  // namespace

ledger::ledger(const catalogue& of) : catalogue_{of}, entries_(std::size_t{of.urls()} * flavours) {}

void ledger::admitted(
    std::uint32_t url, unsigned flavour, const stamp& at, bool settled, std::uint64_t begun) {
    stored_.fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard lock{guard_of(url)};
    auto& one = entries_[slot(url, flavour)];
    if (one.owed && !at.reaches(one.at)) {
        return;  // two replies overtook each other
    }
    // What is fresh for a second only is owed when a 304 has prolonged it.
    const bool lasts = catalogue_.kind_of(url) != kind::freshened;
    one = {at, true, settled && lasts, begun, steady::now()};
}

void ledger::freshened(std::uint32_t url, const stamp& at) {
    const std::lock_guard lock{guard_of(url)};
    auto& one = entries_[slot(url, 0)];
    // The body stays where it was written: `begun` is not moved.
    if (one.stored && one.at == at) {
        one.owed = true;
        one.admitted = steady::now();
    }
}

void ledger::lost(std::uint32_t url, unsigned flavour) {
    const std::lock_guard lock{guard_of(url)};
    entries_[slot(url, flavour)].owed = false;
}

bool ledger::was_stored(std::uint32_t url, unsigned flavour) const {
    const std::lock_guard lock{guard_of(url)};
    return entries_[slot(url, flavour)].stored;
}

steady::duration ledger::age(std::uint32_t url, unsigned flavour, const moment& at) const {
    const std::lock_guard lock{guard_of(url)};
    return at.killed - entries_[slot(url, flavour)].admitted;
}

void ledger::skipped(steady::time_point from, steady::time_point to) {
    if (!skipped_.empty() && from <= skipped_.back().to) {
        skipped_.back().to = to;
    } else {
        skipped_.push_back({from, to});
    }
}

bool ledger::may_be_skipped(steady::time_point admitted) const {
    const auto after = std::partition_point(
        skipped_.begin(), skipped_.end(), [&](const span& one) {
            return one.to + offered_within < admitted;
        });
    return after != skipped_.end() && after->from <= admitted + offered_within;
}

bool ledger::is_owed(std::uint32_t url, unsigned flavour, const moment& at) const {
    const std::lock_guard lock{guard_of(url)};
    const auto& one = entries_[slot(url, flavour)];
    return one.owed && one.admitted + std::chrono::seconds{1} <= at.killed &&
           one.admitted + offered_within <= at.written && !may_be_skipped(one.admitted) &&
           one.at == catalogue_.current(url) && at.log - one.begun <= at.may_hold;
}

}  // namespace reprise::tests::crash
