#include "proxy/peer/catching_up.hpp"

#include "proxy/base/let_go.hpp"

#include <new>
#include <utility>

namespace reprise::proxy::peer {

bool catching_up::begin(steady_time away_at, steady_time now) noexcept {
    auto before = begun_at();
    if (away_at <= before ||
        !begun_at_.compare_exchange_strong(before, now, std::memory_order_relaxed)) {
        return false;
    }
    since_.store(away_at, std::memory_order_relaxed);
    on_.store(true, std::memory_order_relaxed);
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
    return true;
}

// None waits longer than it is on.
void catching_up::leave(steady_time now) noexcept {
    const std::scoped_lock lock{guard_};
    if (!is_on(now)) {
        let_go(waiters_);
    }
}

}  // namespace reprise::proxy::peer
