#include "proxy/peer/keeper.hpp"

#include <algorithm>
#include <cstddef>
#include <pthread.h>
#include <utility>

namespace reprise::proxy::peer {

namespace {

// What is due already, or comes, may be nothing to be told: it is looked at so often, and no more.
constexpr std::chrono::milliseconds least_between_looks{1};

}  // namespace

void keeper::begin(std::function<plan()> look) {
    look_ = std::move(look);
    thread_ = std::thread{[this] { run(); }};
    ::pthread_setname_np(thread_.native_handle(), "digest");
}

void keeper::end() {
    {
        const std::scoped_lock lock{guard_};
        ending_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void keeper::stir(waited_for what) {
    const auto of = static_cast<std::size_t>(what);
    const bool wakes = [this, of] {
        const std::scoped_lock lock{guard_};
        stirred_[of] = true;
        return std::exchange(wakes_[of], false);
    }();
    if (wakes) {
        wake_.notify_one();
    }
}

void keeper::run() {
    std::unique_lock lock{guard_};
    while (!ending_) {
        lock.unlock();
        auto next = look_();
        const auto now = steady_now();
        next.until = std::clamp(next.until, now + least_between_looks, now + every_);
        lock.lock();
        doze(lock, next, now + least_between_looks);
    }
}

// What comes to a source before it may tell again is not told before that: nobody needs to wake this
// thread for it, which looks then whether something has come.
void keeper::doze(std::unique_lock<std::mutex>& lock, const plan& next, steady_time not_before) {
    while (!ending_ && steady_now() < next.until) {
        const auto now = steady_now();
        auto to = next.until;
        for (std::size_t i = 0; i < next.from.size(); ++i) {
            const bool may_tell = next.from[i] <= now;
            wakes_[i] = may_tell && !stirred_[i];
            if (!may_tell) {
                to = std::min(to, next.from[i]);
            } else if (stirred_[i]) {
                to = std::min(to, not_before);
            }
        }
        if (to <= now) {
            break;
        }
        wake_.wait_until(lock, to);
    }
    wakes_ = stirred_ = {};
}

}  // namespace reprise::proxy::peer
