#include "proxy/net/wakeup.hpp"

#include "proxy/base/recycled.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/post.hpp>

#include <utility>

// One atomic says where a wakeup stands, and every transition is one exchange:
//
//     idle ──wait──> waiting ──notify──> signalled ──deliver──> idle (the waiter is told: true)
//     idle ──notify──> signalled ──take, wait──> idle
//     waiting ──deadline, cancellation──> idle (the waiter is told: false)
//
// Leaving `signalled` is always a read-modify-write with acquire order: a second notify that found
// the first one's signal and did nothing must still be seen by whoever takes it.
// Only the notify that finds somebody waiting does anything more. From another thread it posts
// `deliver` to the owner's loop; that one may find its signal taken (by a deadline that saw it, or
// a later wait) and then does nothing. The handler itself never leaves the owner's thread.

namespace reprise::proxy::net {
namespace {
enum standing : int { idle, waiting, signalled };
}  // namespace

struct wakeup::shared {
    shared(asio::io_context& io, wakeup& to) : loop(io.get_executor()), owner(&to) {}

    asio::io_context::executor_type loop;
    std::atomic<int> stands{idle};
    wakeup* owner;  // the owner's thread only; null once it is gone

    // Held by another thread while it posts, so that the loop is not destroyed under it.
    std::mutex gate;
    bool closed = false;
};

namespace {
awaitable<bool> at_once() {
    co_return true;
}
}  // namespace

wakeup::wakeup(deadlines& timer)
    : shared_(std::allocate_shared<shared>(recycled<shared>{}, timer.io(), *this)),
      until_(timer, [this] { give_up(); }) {}

wakeup::~wakeup() {
    shared_->owner = nullptr;
    const std::lock_guard hold{shared_->gate};
    shared_->closed = true;
}

bool wakeup::take() noexcept {
    int expected = signalled;
    return shared_->stands.compare_exchange_strong(
        expected, idle, std::memory_order_acquire, std::memory_order_relaxed);
}

awaitable<bool> wakeup::wait(steady_time until) {
    if (take()) {
        return at_once();
    }
    const asio::use_awaitable_t<executor> token;
    return asio::async_initiate<const asio::use_awaitable_t<executor>, void(bool)>(
        [this, until](handler waiter) { start_wait(std::move(waiter), until); }, token);
}

// The deadline first: where there is no memory for it the waiter goes, by which its end is told (coroutine.hpp). It would
// stay here else, with nothing but a signal to end its wait.
void wakeup::start_wait(handler waiter, steady_time until) {
    until_.expire_at(until);
    waiter_.emplace(std::move(waiter));
    int expected = idle;
    if (!shared_->stands.compare_exchange_strong(
            expected, waiting, std::memory_order_acq_rel, std::memory_order_acquire)) {
        static_cast<void>(shared_->stands.exchange(idle, std::memory_order_acquire));
        complete(true);
        return;
    }
    auto slot = asio::get_associated_cancellation_slot(*waiter_);
    if (slot.is_connected()) {
        slot.assign([this](asio::cancellation_type) { give_up(); });
    }
}

void wakeup::give_up() {
    if (!waiter_) {
        return;
    }
    int expected = waiting;
    if (shared_->stands.compare_exchange_strong(
            expected, idle, std::memory_order_acq_rel, std::memory_order_acquire)) {
        complete(false);
        return;
    }
    // Signalled already, its delivery on the way: the signal wins, the delivery will find nothing.
    static_cast<void>(shared_->stands.exchange(idle, std::memory_order_acquire));
    complete(true);
}

void wakeup::deliver() {
    if (waiter_ && take()) {
        complete(true);
    }
}

void wakeup::complete(bool was_signalled) {
    until_.clear();
    auto slot = asio::get_associated_cancellation_slot(*waiter_);
    if (slot.is_connected()) {
        slot.clear();
    }
    auto waiter = std::move(*waiter_);
    waiter_.reset();
    asio::post(shared_->loop, [waiter = std::move(waiter), was_signalled]() mutable {
        std::move(waiter)(was_signalled);
    });
}

void wakeup::notify() const {
    notify(shared_);
}

void wakeup::signal::notify() const {
    if (to_) {
        wakeup::notify(to_);
    }
}

void wakeup::notify(const std::shared_ptr<shared>& to) {
    if (to->stands.exchange(signalled, std::memory_order_acq_rel) != waiting) {
        return;
    }
    if (to->loop.running_in_this_thread()) {
        if (to->owner != nullptr) {
            to->owner->deliver();
        }
        return;
    }
    const std::lock_guard hold{to->gate};
    if (to->closed) {
        return;
    }
    try {
        asio::post(to->loop, [to] {
            if (to->owner != nullptr) {
                to->owner->deliver();
            }
        });
    } catch (...) {
        // Whoever waits does so still, for the next one: that would find this one's signal else, and do nothing. Should it have
        // been taken meanwhile, and another given that nobody waits for, the next wait finds that, and ends at once.
        int expected = signalled;
        to->stands.compare_exchange_strong(
            expected, waiting, std::memory_order_acq_rel, std::memory_order_relaxed);
        throw;
    }
}

}  // namespace reprise::proxy::net
