#pragma once
// Which parent fetches a URL: the same one for the same URL, whoever of the fleet asks, and the
// next best when it is down.
//
// Rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to increase hit rates",
// IEEE/ACM ToN 6(1), 1998): each parent's name and the key make a number, the highest wins. A
// parent that goes takes only its own keys along, to all others evenly, and they come back with it.
// With a handful of parents that is as cheap as a ring and needs no table.

#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::peer {

/// Threads   any number once made; relaxed atomics for who is down.
class parent_choice {
public:
    /// Of the order in which they are given nothing depends. A parent that fails is down for
    /// `first_wait`, twice as long each further time, up to `longest_wait`.
    explicit parent_choice(std::span<const std::string> names,
                           std::chrono::milliseconds first_wait = std::chrono::seconds{1},
                           std::chrono::milliseconds longest_wait = std::chrono::seconds{60});

    [[nodiscard]] std::size_t size() const noexcept { return count_; }

    /// The parents as indices into `names`, best first: those that are up in the order of their
    /// numbers, then those that are down, the one to come back first in front. All are named: when
    /// every parent is down the first is tried all the same. `key` must be the same on every node:
    /// key_of. O(parents log parents).
    [[nodiscard]] std::vector<std::size_t> order(const filter::key_hash& key,
                                                 steady_time now) const;

    /// What was sent to it (or began to connect to it) at `begun` has failed. All that an outage
    /// meets together is one failure: nothing is counted when it was found down, or was down,
    /// since. True: it was up, and one caller hears that.
    bool failed(std::size_t parent, steady_time begun, steady_time now) noexcept;
    /// True: it was not up, and one caller hears that.
    bool succeeded(std::size_t parent) noexcept;
    /// It has failed, and not succeeded since.
    [[nodiscard]] bool has_failed(std::size_t parent) const noexcept;
    /// It is left alone after that for now.
    [[nodiscard]] bool is_down(std::size_t parent, steady_time now) const noexcept;

private:
    struct state {
        std::uint64_t number = 0;                 // of the name
        std::atomic<std::int64_t> down_until{0};  // steady, nanoseconds; 0: up
        std::atomic<unsigned> failures{0};
    };
    std::size_t count_;
    std::unique_ptr<state[]> states_;
    std::chrono::milliseconds first_wait_, longest_wait_;
};

}  // namespace reprise::proxy::peer
