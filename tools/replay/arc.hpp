#pragma once
// ARC (Megiddo, Modha, FAST 2003), for comparison only: the proxy does not offer it.
//
// Two LRU lists, of what was seen once (T1) and of what was seen again (T2), each with ghosts (B1,
// B2). A ghost's return says which list was too short, and moves the target of T1. By bytes: the
// target moves by the returning object's size, times the ratio of the ghosts' bytes as the paper's
// does by their numbers; T1 with its ghosts is at most the capacity, all four at most twice.

#include "proxy/cache/policy/entry_queue.hpp"
#include "proxy/cache/policy/eviction.hpp"
#include "proxy/cache/policy/ghost_list.hpp"

namespace reprise::replay {

/// Cost    O(1) amortised.
/// Memory  ghost_list's for the ghosts.
class arc_policy final : public proxy::cache::eviction_policy {
public:
    explicit arc_policy(std::uint64_t capacity_bytes);

    void set_capacity(std::uint64_t bytes) override;
    void inserted(proxy::cache::evictable& entry) override;
    void used(proxy::cache::evictable& entry) noexcept override;
    void removed(proxy::cache::evictable& entry) noexcept override;
    [[nodiscard]] proxy::cache::evictable* evict() noexcept override;
    [[nodiscard]] std::uint64_t overhead() const noexcept override;

private:
    void bound_ghosts() noexcept;

    std::uint64_t capacity_;
    double target_ = 0;  // of T1, bytes: the paper's p
    proxy::cache::entry_queue once_;
    proxy::cache::entry_queue again_;
    proxy::cache::ghost_list ghosts_of_once_;
    proxy::cache::ghost_list ghosts_of_again_;
    bool came_back_ = false;  // the newcomer has a ghost among those of T2 (REPLACE's tie)
};

}  // namespace reprise::replay
