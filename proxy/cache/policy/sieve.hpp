#pragma once
// SIEVE (Zhang, Yang, Yue, Vigfusson, Rashmi, NSDI 2024): one queue in order of arrival, a mark set
// by hits, and a hand that walks from the oldest to the newest, clears marks and evicts the first
// entry without one. Survivors stay where they are, so newcomers that nobody asks for again leave
// before them.
//
// Its authors make room before the newcomer comes in; an owner here may do so after. So the hand
// never reaches whoever came last until somebody else is asked for: it would be the only one
// without a mark whenever all others are in use.

#include "proxy/cache/policy/entry_queue.hpp"
#include "proxy/cache/policy/eviction.hpp"

namespace reprise::proxy::cache {

/// Cost  a hit writes one byte and moves nothing; evict is O(1) amortised over hits (each mark that
///       the hand passes over was set by one), and clears most_passed marks at the most.
class sieve_policy final : public eviction_policy {
public:
    void set_capacity(std::uint64_t bytes) override;
    void missed(const filter::key_hash& key) noexcept override;
    void inserted(evictable& entry) override;
    void used(evictable& entry) noexcept override;
    void removed(evictable& entry) noexcept override;
    [[nodiscard]] evictable* evict() noexcept override;

private:
    [[nodiscard]] evictable* or_oldest(evictable* entry) const noexcept;
    void take_out(evictable& entry) noexcept;

    entry_queue entries_;
    evictable* hand_ = nullptr;      // null: starts at the oldest
    evictable* newcomer_ = nullptr;  // the youngest, until another key is asked for
};

}  // namespace reprise::proxy::cache
