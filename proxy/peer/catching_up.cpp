#include "proxy/peer/catching_up.hpp"

#include "proxy/base/let_go.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace reprise::proxy::peer {

bool catching_up::begin(steady_time away_at,
                        steady_time now,
                        std::chrono::milliseconds budget) noexcept {
    auto before = begun_at();
    if (away_at <= before || now < not_before_.load(std::memory_order_relaxed) ||
        !begun_at_.compare_exchange_strong(before, now, std::memory_order_relaxed)) {
        return false;
    }
    const bool was_stopped = away_at != now;
    not_before_.store(was_stopped ? now + between_two : now, std::memory_order_relaxed);
    on_.store(false, std::memory_order_relaxed);  // of the last time, which may have been too long
    since_.store(away_at, std::memory_order_relaxed);
    ends_at_.store(now + 2 * std::min(budget, most_), std::memory_order_relaxed);
    on_.store(true, std::memory_order_release);
    return true;
}

void catching_up::end() {
    std::vector<net::wakeup::signal> waiters;
    {
        const std::scoped_lock lock{guard_};
        on_.store(false, std::memory_order_relaxed);
        std::swap(waiters, waiters_);
    }
    for (const auto& one : waiters) {
        one.notify();
    }
}

bool catching_up::enter(net::wakeup::signal waiter, steady_time now) noexcept {
    const std::scoped_lock lock{guard_};
    if (!is_on(now)) {
        return false;
    }
    try {
        waiters_.push_back(std::move(waiter));
    } catch (const std::bad_alloc&) {
        return false;
    }
    ++inside_;
    return true;
}

void catching_up::leave() noexcept {
    const std::scoped_lock lock{guard_};
    if (--inside_ == 0) {
        let_go(waiters_);
    }
}

}  // namespace reprise::proxy::peer
