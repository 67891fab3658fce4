#pragma once
// Which parent fetches a URL: the same one for the same URL, whichever node asks, and the next best
// when it is down.
//
// Rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to increase hit rates",
// IEEE/ACM ToN 6(1), 1998): each parent's name and the key make a number, the highest wins. A
// parent that goes takes only its own keys along, to all others evenly, and they come back with it.
// With a handful of parents that is as cheap as a ring and needs no table.

#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/base/failure.hpp"

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

/// Threads   any number once made; relaxed atomics for which are down.
class parent_choice {
public:
    /// The order of `names` does not matter. A parent that fails is down for
    /// `first_wait`, twice as long each further time, up to `longest_wait`.
    explicit parent_choice(std::span<const std::string> names,
                           std::chrono::milliseconds first_wait = std::chrono::seconds{1},
                           std::chrono::milliseconds longest_wait = std::chrono::seconds{60});

    [[nodiscard]] std::size_t size() const noexcept { return count_; }

    /// What is known of `parent` is what is known now of `was` in `before`. Before others see this.
    void go_on_as(std::size_t parent, const parent_choice& before, std::size_t was) noexcept;

    /// order().front(). O(parents), no allocation. @pre size() > 0
    [[nodiscard]] std::size_t best(const filter::key_hash& key, steady_time now) const noexcept;

    /// The parents as indices into `names`, best first: those that are up in the order of their
    /// numbers, then those that are down, the one to come back first in front. All are named: when
    /// every parent is down, and no origin may be asked, the first is tried all the same. `key` must be the same on every node:
    /// key_of. O(parents log parents).
    [[nodiscard]] std::vector<std::size_t> order(const filter::key_hash& key,
                                                 steady_time now) const;

    /// Puts the first of `left` that the caller may ask in front, and those before it behind all others.
    /// One whose time is up is asked by one caller, and by no other until that has failed, has succeeded, or
    /// had `patience`: it may be as silent as it was. False: there is none, and all are as they were.
    /// O(left), no allocation.
    bool put_first(std::span<std::size_t> left,
                   steady_time now,
                   std::chrono::milliseconds patience) noexcept;

    /// A request sent to it (or a connection begun) at `begun` has failed. Requests that meet one
    /// outage together are one failure: nothing is counted if it was found down, or was down, since
    /// then. True, to one caller: it was up.
    bool failed(std::size_t parent,
                steady_time begun,
                steady_time now,
                failure_code why = failure_code::no_parent) noexcept;
    /// True, to one caller: it was not up.
    bool succeeded(std::size_t parent) noexcept;
    /// It has failed, and not succeeded since.
    [[nodiscard]] bool has_failed(std::size_t parent) const noexcept;
    /// By what it failed last. @pre has_failed(parent), or it had when it was asked
    [[nodiscard]] failure_code trouble(std::size_t parent) const noexcept;
    /// It is left alone after that for now; or its time is up, and another request finds out just now
    /// whether it answers again (put_first).
    [[nodiscard]] bool is_down(std::size_t parent, steady_time now) const noexcept;

private:
    struct rank;
    [[nodiscard]] rank rank_of(std::size_t parent,
                               const filter::key_hash& key,
                               std::int64_t now) const noexcept;
    [[nodiscard]] std::int64_t left_alone_until(std::size_t parent) const noexcept;
    [[nodiscard]] bool may_try(std::size_t parent,
                               steady_time now,
                               std::chrono::milliseconds patience) noexcept;

    struct state {
        std::uint64_t number = 0;                  // of the name
        std::atomic<std::int64_t> down_until{0};   // steady, nanoseconds; 0: up
        std::atomic<std::int64_t> tried_until{0};  // the same; 0: nobody finds out
        std::atomic<unsigned> failures{0};
        std::atomic<failure_code> why{failure_code::no_parent};
    };
    std::size_t count_;
    std::unique_ptr<state[]> states_;
    std::chrono::milliseconds first_wait_, longest_wait_;
};

}  // namespace reprise::proxy::peer
