#include "proxy/net/wakeup.hpp"

#include "proxy/base/recycled.hpp"
#include "proxy/net/operation_room.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/post.hpp>

#include <cstddef>
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
//
// Both operations that are posted, a delivery and a wait's end, lie in rooms of their own, which a wait takes as it begins
// and gives back at its end. For that there may be one of each at a time:
//
//   A delivery that is late leaves a waiter that has gone on, and waits again; the next notify finds it waiting while the
//   first delivery is still in the loop's queue, or not even posted. So `is_posted` says that one is on its way, and whoever
//   finds it said posts none: a delivery takes that back before it looks for a signal, and so finds whatever was said by
//   then. Its room is free by that time, which is how one thread may take it behind another.
//
//   A wait's end holds the waiter. There is no other until that has gone on, and its room is free by then.
//
// A notify that comes to the gate behind the end of the wait that it found finds no rooms: its signal was what that wait
// ended by. Rooms that a delivery still lies in stay for the next wait.

namespace reprise::proxy::net {
namespace {
enum standing : int { idle, waiting, signalled };
}  // namespace

struct wakeup::rooms {
    using for_delivery = room_of<80>;
    using for_end = room_of<128>;

    for_delivery delivery;  // taken with shared::gate held
    for_end end;            // the owner's thread only
};

struct wakeup::shared {
    shared(asio::io_context& io, wakeup& to) : loop(io.get_executor()), owner(&to) {}

    asio::io_context::executor_type loop;
    std::atomic<int> stands{idle};
    std::atomic<bool> is_posted{false};  // a delivery; set with `gate` held
    wakeup* owner;                       // the owner's thread only; null once it is gone

    // Held by another thread while it posts, so that the loop is not destroyed under it.
    std::mutex gate;
    bool closed = false;

    // The owner's thread, with `gate` held where it is changed; another thread reads it with `gate` held. Null: nobody waits.
    std::shared_ptr<rooms> posted_in;

    void take_rooms() {
        if (!posted_in) {
            auto made = std::allocate_shared<rooms>(recycled<rooms>{});
            const std::lock_guard hold{gate};
            posted_in = std::move(made);
        }
    }
    void give_rooms_back() noexcept {
        const std::lock_guard hold{gate};
        if (!is_posted.load(std::memory_order_relaxed) && !(owner != nullptr && owner->waiter_)) {
            posted_in.reset();
        }
    }
};

/// What another thread posts: the owner looks for a signal.
struct wakeup::delivery {
    using allocator_type = in_room<std::byte, rooms::for_delivery>;

    explicit delivery(const std::shared_ptr<shared>& of) noexcept
        : to{of},
          room{{of->posted_in, &of->posted_in->delivery}} {}
    [[nodiscard]] allocator_type get_allocator() const noexcept { return room; }
    void operator()() const noexcept {
        to->is_posted.exchange(false, std::memory_order_acq_rel);
        if (to->owner != nullptr) {
            to->owner->deliver();
        }
    }

    std::shared_ptr<shared> to;
    allocator_type room;
};

/// The waiter, on its way.
struct wakeup::end_of_wait {
    using allocator_type = in_room<std::byte, rooms::for_end>;

    end_of_wait(handler who, bool was_signalled, const std::shared_ptr<shared>& of) noexcept
        : waiter{std::move(who)},
          signalled{was_signalled},
          from{of},
          room{{of->posted_in, &of->posted_in->end}} {}
    [[nodiscard]] allocator_type get_allocator() const noexcept { return room; }
    void operator()() {
        from->give_rooms_back();
        std::move(waiter)(signalled);
    }

    handler waiter;
    bool signalled;
    std::shared_ptr<shared> from;
    allocator_type room;
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
    shared_->take_rooms();  // here, where the caller is told of it if there is no memory
    const asio::use_awaitable_t<executor> token;
    return asio::async_initiate<const asio::use_awaitable_t<executor>, void(bool)>(
        [this, until](handler waiter) { start_wait(std::move(waiter), until); }, token);
}

// What takes memory first: where there is none the waiter goes, by which its end is told (coroutine.hpp). It would stay
// here else, with nothing but a signal to end its wait.
void wakeup::start_wait(handler waiter, steady_time until) {
    until_.expire_at(until);
    // They are there, but where the end of the wait before was still on its way.
    shared_->take_rooms();
    auto slot = asio::get_associated_cancellation_slot(waiter);
    if (slot.is_connected()) {
        slot.assign([this](asio::cancellation_type) { give_up(); });
    }
    waiter_.emplace(std::move(waiter));
    int expected = idle;
    if (!shared_->stands.compare_exchange_strong(
            expected, waiting, std::memory_order_acq_rel, std::memory_order_acquire)) {
        static_cast<void>(shared_->stands.exchange(idle, std::memory_order_acquire));
        complete(true);
    }
}

void wakeup::give_up() noexcept {
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

void wakeup::deliver() noexcept {
    if (waiter_ && take()) {
        complete(true);
    }
}

void wakeup::complete(bool was_signalled) noexcept {
    until_.clear();
    auto slot = asio::get_associated_cancellation_slot(*waiter_);
    if (slot.is_connected()) {
        slot.clear();
    }
    auto waiter = std::move(*waiter_);
    waiter_.reset();
    asio::post(shared_->loop, end_of_wait{std::move(waiter), was_signalled, shared_});
}

void wakeup::notify() const noexcept {
    notify(shared_);
}

void wakeup::signal::notify() const noexcept {
    if (to_) {
        wakeup::notify(to_);
    }
}

void wakeup::notify(const std::shared_ptr<shared>& to) noexcept {
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
    if (!to->closed && to->posted_in && !to->is_posted.exchange(true, std::memory_order_acq_rel)) {
        asio::post(to->loop, delivery{to});
    }
}

}  // namespace reprise::proxy::net
