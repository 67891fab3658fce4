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
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::proxy::peer {

/// The right to find out, alone, whether a parent that was down answers again: while it is held all
/// others find that parent down. Whoever comes to know it says so (succeeded, failed) before this
/// ends; that it ends without a word leaves the parent to the next. It holds for a while at the
/// most, since its holder may come to wait for something else. Empty: there is nothing to find out.
/// Threads   one at a time.
class trial {
public:
    trial() = default;
    trial(trial&& other) noexcept
        : claim_{std::exchange(other.claim_, nullptr)},
          until_{other.until_} {}
    trial& operator=(trial&& other) noexcept {
        end();
        claim_ = std::exchange(other.claim_, nullptr);
        until_ = other.until_;
        return *this;
    }
    trial(const trial&) = delete;
    trial& operator=(const trial&) = delete;
    ~trial() { end(); }

    void end() noexcept {
        if (const auto claim = std::exchange(claim_, nullptr)) {
            auto mine = until_;
            claim->compare_exchange_strong(mine, 0, std::memory_order_relaxed);
        }
    }

private:
    friend class parent_choice;
    using claim_ptr = std::shared_ptr<std::atomic<std::int64_t>>;
    trial(claim_ptr claim, std::int64_t until) noexcept : claim_{std::move(claim)}, until_{until} {}

    claim_ptr claim_;
    std::int64_t until_ = 0;
};

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

    /// Puts the first of `left` that the caller may ask in front, and those before it behind all
    /// others; what is held meanwhile, for `patience` at the most. None: there is none, and all are
    /// as they were. O(left), no allocation.
    [[nodiscard]] std::optional<trial> put_first(std::span<std::size_t> left,
                                                 steady_time now,
                                                 std::chrono::milliseconds patience) noexcept;
    /// The same for one of them. None: it is down.
    [[nodiscard]] std::optional<trial> try_out(std::size_t parent,
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
    bool succeeded(std::size_t parent, steady_time now) noexcept;
    /// It has succeeded since `begun`, to a tenth of a second.
    [[nodiscard]] bool has_succeeded_since(std::size_t parent, steady_time begun) const noexcept;
    /// What a parent's silence is taken for, where a request sent at `begun` waits for its head in
    /// vain and no other was answered since: its origin's, `most_spared` times in a row. Requests
    /// that meet one silence together are one time, and one of them asks the parent.
    enum class silence : std::uint8_t {
        unclear,  ///< the caller asks whether it lives
        asked,    ///< another does, or has just done
        its_own,
    };
    [[nodiscard]] silence judge_silence(std::size_t parent,
                                        steady_time begun,
                                        steady_time now) noexcept;
    static constexpr unsigned most_spared = 3;
    /// It has failed, and not succeeded since.
    [[nodiscard]] bool has_failed(std::size_t parent) const noexcept;
    /// By what it failed last. @pre has_failed(parent), or it had when it was asked
    [[nodiscard]] failure_code trouble(std::size_t parent) const noexcept;
    /// It is left alone after that for now; or its time is up, and somebody finds out just now whether
    /// it answers again (trial).
    [[nodiscard]] bool is_down(std::size_t parent, steady_time now) const noexcept;

private:
    struct rank;
    [[nodiscard]] rank rank_of(std::size_t parent,
                               const filter::key_hash& key,
                               std::int64_t now) const noexcept;
    [[nodiscard]] std::int64_t left_alone_until(std::size_t parent) const noexcept;

    struct state {
        std::uint64_t number = 0;                  // of the name
        std::atomic<std::int64_t> down_until{0};   // steady, nanoseconds; 0: up
        std::atomic<std::int64_t> tried_until{0};  // the same; 0: nobody finds out
        std::atomic<std::int64_t> answered_at{0};  // the same, to a tenth of a second; 0: never
        std::atomic<std::int64_t> spared_at{0};    // the same
        std::atomic<unsigned> spared{0};
        std::atomic<unsigned> failures{0};
        std::atomic<failure_code> why{failure_code::no_parent};
    };
    std::size_t count_;
    std::shared_ptr<state[]> states_;  // with whoever holds a trial
    std::chrono::milliseconds first_wait_, longest_wait_;
};

}  // namespace reprise::proxy::peer
