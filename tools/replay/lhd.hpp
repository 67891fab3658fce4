#pragma once
// LHD, as a yardstick: what leaves is what promises fewest hits for the room it takes and the time it
// will take it (Beckmann, Chen, Cidon, "LHD: Improving Cache Hit Rate by Maximizing Hit Density", NSDI
// 2018). Rebuilt from the paper.
//
// An object's age is the number of requests since it came in or was last asked for, made coarse.
// For each age it is counted how many objects were hit at it and how many left at it, by classes of
// objects; the hit density of an age is the hits expected from there on, over the room-time
// expected from there on (section 3), divided by the object's size. The paper's estimates are
// renewed now and then, and what was counted fades. Among 64 objects drawn at random the least
// dense leaves (section 5). Classes are the sum of an object's last two ages at a hit, by powers of
// two (section 4.4); one object in 32, new or hit, within a hundredth of the room, is kept until
// its age is the last, so that ages are learnt of that nothing comes to. What is as old as the last
// age leaves first: it was not asked for in a hundred times as many requests as there are objects.
//
// Estimates are renewed every as many requests as objects are held, at least 1,024, for caches here are
// small; the paper's large ones wait for a million.
//
// The proxy does not have it: a draw of 64 costs as many cache misses for each object that leaves.
//
// Threads   none.
// Cost      used, inserted, removed: O(1); evict: 64 draws; a renewal: classes * ages steps.

#include "proxy/cache/policy/eviction.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace reprise::replay {

/// The hit density of each age, of how many were hit at it and how many left at it.
/// @pre all of one length
void hit_densities(std::span<const double> hits,
                   std::span<const double> left,
                   std::span<double> densities) noexcept;

class lhd_policy final : public proxy::cache::eviction_policy {
public:
    explicit lhd_policy(std::uint64_t capacity_bytes);

    void set_capacity(std::uint64_t bytes) override { capacity_ = bytes; }
    void missed(const filter::key_hash& key) noexcept override;
    void inserted(proxy::cache::evictable& entry) override;
    void used(proxy::cache::evictable& entry) noexcept override;
    void removed(proxy::cache::evictable& entry) noexcept override;
    [[nodiscard]] proxy::cache::evictable* evict() noexcept override;

private:
    static constexpr std::size_t ages = 1'024, classes = 16;
    struct held {
        proxy::cache::evictable* entry = nullptr;
        std::uint64_t asked_at = 0;  // in requests
        std::uint64_t last_age = 0, age_before = 0;
        bool explores = false;
    };
    struct group {
        std::array<double, ages> hits{}, left{}, density{};
    };

    void next_request() noexcept;
    void renew() noexcept;
    [[nodiscard]] std::size_t age_of(const held& one) const noexcept;
    [[nodiscard]] group& group_of(const held& one) noexcept;
    [[nodiscard]] double worth_of(const held& one) noexcept;
    void take_out(std::size_t place) noexcept;
    void let_explore(held& one) noexcept;
    [[nodiscard]] std::uint64_t drawn() noexcept;

    std::uint64_t capacity_;
    std::vector<held> held_;  // an entry's place is in its rank
    std::vector<group> groups_;
    unsigned coarse_ = 0;  // an age has 2^coarse_ requests
    std::uint64_t now_ = 0, renewed_at_ = 0;
    std::uint64_t exploring_bytes_ = 0;
    std::uint64_t random_ = 0x9e3779b97f4a7c15;
};

}  // namespace reprise::replay
