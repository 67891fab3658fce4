#pragma once
// That a node does not know yet what its siblings hold: it has just begun to follow them, or it was stopped for
// a while (SIGSTOP, a debugger, a paused container) and wakes with all that its clients have asked meanwhile. They
// have most of what it misses then, and will say so in some milliseconds: a miss that none of them is known to have
// waits for that, `peering.budget` at most, before an origin is asked for it.
//
// It is over when each sibling that can be had has been heard since (digest_fetch), or two budgets after it began. Behind a
// stop it begins again only two seconds later: a node that is stopped all the time has other troubles.
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
    /// `most`: no miss waits longer, whatever peering.budget is.
    explicit catching_up(std::chrono::milliseconds most = std::chrono::milliseconds{500}) noexcept
        : most_{most} {}
    [[nodiscard]] std::chrono::milliseconds most() const noexcept { return most_; }
    static constexpr std::chrono::seconds between_two{2};

    /// This node was stopped at `away_at`, and runs again now; or it has just begun, and both are now. All threads say
    /// so that come to know of it, and the first begins it. True: it has begun.
    bool begin(steady_time away_at, steady_time now, std::chrono::milliseconds budget) noexcept;
    /// All have been heard.
    void end();

    [[nodiscard]] bool is_on(steady_time now) const noexcept {
        return on_.load(std::memory_order_acquire) && now < ends_at();
    }
    /// What siblings said to questions from before then may be old.
    [[nodiscard]] steady_time since() const noexcept {
        return since_.load(std::memory_order_relaxed);
    }
    /// It is over then in any case.
    [[nodiscard]] steady_time ends_at() const noexcept {
        return ends_at_.load(std::memory_order_relaxed);
    }
    /// The last time; the beginning of time: it never did.
    [[nodiscard]] steady_time begun_at() const noexcept {
        return begun_at_.load(std::memory_order_relaxed);
    }

    /// `waiter` is notified when all have been heard; not when it takes too long. False: it is over, or
    /// there is no memory. Whoever has entered leaves; behind the last no signal is kept.
    [[nodiscard]] bool enter(net::wakeup::signal waiter, steady_time now) noexcept;
    void leave() noexcept;
    /// Signals that are kept.
    [[nodiscard]] std::size_t kept() const {
        const std::scoped_lock lock{guard_};
        return waiters_.size();
    }

private:
    const std::chrono::milliseconds most_;
    std::atomic<bool> on_{false};
    std::atomic<steady_time> since_{steady_time{}}, begun_at_{steady_time{}},
        ends_at_{steady_time{}}, not_before_{steady_time{}};
    mutable std::mutex guard_;
    std::vector<net::wakeup::signal> waiters_;
    std::size_t inside_ = 0;  // who has entered and not left
};

}  // namespace reprise::proxy::peer
