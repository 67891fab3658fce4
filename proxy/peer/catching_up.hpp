#pragma once
// That a node does not know yet what its siblings hold: it has just begun to follow them, or it was stopped for
// a while (SIGSTOP, a machine that was moved) and wakes with all that its clients have asked meanwhile. They have
// most of what it misses then, and will say so in some milliseconds: a miss waits for that, `peering.budget` at
// most, in place of asking an origin for it.
//
// It is over when each sibling that can be had has answered a question that was asked since (digest_fetch), and
// two budgets after it began in any case: a sibling that has nothing new to tell does not answer.
//
// Threads   any. Cost: is_on() is two loads, and that is all there is to it nearly always.

#include "proxy/base/clock.hpp"
#include "proxy/net/wakeup.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <vector>

namespace reprise::proxy::peer {

class catching_up {
public:
    /// `budget`: what one miss waits at most.
    explicit catching_up(std::chrono::milliseconds budget) : longest_{2 * budget} {}

    /// What siblings were asked before `away_at` may be answered by what is old: nobody was here then to hear it, and
    /// now somebody is. Of threads that were away together the first begins it. True: it has begun.
    bool begin(steady_time away_at, steady_time now) noexcept;
    /// All have been heard.
    void end();

    [[nodiscard]] bool is_on(steady_time now) const noexcept {
        return on_.load(std::memory_order_relaxed) && now < ends_at();
    }
    /// Only what siblings were asked from then on counts.
    [[nodiscard]] steady_time since() const noexcept {
        return since_.load(std::memory_order_relaxed);
    }
    /// `waiter` is notified when all have been heard; not when it takes too long. False: it is over, or
    /// there is no memory.
    [[nodiscard]] bool enter(net::wakeup::signal waiter, steady_time now) noexcept;
    /// Whoever has entered waits no longer. Behind the last of them nothing is left.
    void leave(steady_time now) noexcept;
    /// It is over then in any case.
    [[nodiscard]] steady_time ends_at() const noexcept { return begun_at() + longest_; }
    /// The last time, or the beginning of time.
    [[nodiscard]] steady_time begun_at() const noexcept {
        return begun_at_.load(std::memory_order_relaxed);
    }

    /// Signals that are kept.
    [[nodiscard]] std::size_t waiting() const {
        const std::scoped_lock lock{guard_};
        return waiters_.size();
    }

private:
    const std::chrono::milliseconds longest_;
    std::atomic<bool> on_{false};
    std::atomic<steady_time> since_{steady_time{}}, begun_at_{steady_time{}};
    mutable std::mutex guard_;
    std::vector<net::wakeup::signal> waiters_;
};

}  // namespace reprise::proxy::peer
