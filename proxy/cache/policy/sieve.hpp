#pragma once
// SIEVE (Zhang, Yang, Yue, Vigfusson, Rashmi, NSDI 2024): one queue in order of arrival, a mark set
// by hits, and a hand that walks from the oldest to the newest, clears marks and evicts the first
// entry without one. Survivors stay where they are, so newcomers that nobody asks for again leave
// before them.

#include "proxy/cache/policy/entry_queue.hpp"
#include "proxy/cache/policy/eviction.hpp"

namespace reprise::proxy::cache {

/// Cost  a hit writes one byte and moves nothing; evict is O(1) amortised over hits (each mark that
///       the hand passes over was set by one).
class sieve_policy final : public eviction_policy {
public:
    void set_capacity(std::uint64_t bytes) override;
    void inserted(evictable& entry) override;
    void used(evictable& entry) noexcept override;
    void removed(evictable& entry) noexcept override;
    [[nodiscard]] evictable* evict() noexcept override;

private:
    void take_out(evictable& entry) noexcept;

    entry_queue entries_;
    evictable* hand_ = nullptr;  // null: starts at the oldest
};

}  // namespace reprise::proxy::cache
