#include "proxy/net/deadlines.hpp"

#include "proxy/net/look.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

// A turn gathers what is due into a list of its own (due_) and then acts on its front, one at a
// time: an action may arm, clear or destroy any deadline. What a turn has not come to is the next
// one's, at once.

namespace reprise::proxy::net {

deadline::deadline(deadlines& all, action on_expiry)
    : all_(all),
      on_expiry_(std::move(on_expiry)) {}

void deadline::expire_at(steady_time when) {
    if (!armed_) {
        all_.note_armed();  // may throw, and then nothing has changed
        armed_ = true;
    }
    when_ = when;
    expired_ = false;
    if (!all_.finds(*this)) {
        all_.file(*this);
    }
}

void deadline::clear() noexcept {
    // It stays in its list until that is looked at: the usual case is to be armed again soon.
    if (armed_) {
        armed_ = false;
        --all_.armed_count_;
    }
}

void deadline::guard_rate(std::uint64_t bytes_per_second, std::chrono::milliseconds timeout) {
    const auto milliseconds = static_cast<std::uint64_t>(
        std::max<std::int64_t>(timeout.count(), 0));
    enough_ = std::max<std::uint64_t>(1, bytes_per_second * milliseconds / 1000);
    push_by_ = timeout;
    moved_ = 0;
    expire_after(timeout);
}

void deadline::progress(std::uint64_t bytes) {
    moved_ += bytes;
    if (moved_ >= enough_ && armed_) {  // one that passed meanwhile is not brought back
        moved_ = 0;
        expire_after(push_by_);
    }
}

deadlines::deadlines(asio::io_context& io, std::chrono::milliseconds tick)
    : io_(io),
      timer_(io),
      tick_(tick) {}

deadlines::~deadlines() {
    stop();
    // An action may have armed another. Those that outlive us (in coroutines that the io_context
    // destroys after us) must find nothing to do.
    for (auto& list : wheel_) {
        due_.take_all(list);
        while (!due_.alone()) {
            auto& left = static_cast<deadline&>(*due_.next);
            left.unlink();
            left.armed_ = false;
        }
    }
}

void deadlines::stop() {
    stopped_ = true;
    const goes_on behind{*this};
    tick(steady_time::
             max());  // what is left behind an action that throws is for the tick that is under way
    ticking_ = false;
    timer_.cancel();
}

void deadlines::note_armed() {
    if (!ticking_) {
        start_ticking();
    }
    ++armed_count_;
}

// What another thread reads of an absence may be half of it for a moment: it is the last one's then.
void deadlines::note_turn(steady_time now) noexcept {
    const auto due = due_at_.load(std::memory_order_relaxed);
    if (now - away > due) {
        away_at_.store(due + away, std::memory_order_relaxed);
        back_at_.store(now, std::memory_order_relaxed);
    }
    due_at_.store(steady_time::max(), std::memory_order_relaxed);
}

struct deadlines::tick_end {
    using allocator_type = in_room<std::byte>;

    [[nodiscard]] allocator_type get_allocator() const noexcept { return room; }
    void operator()(const error_code& error) const {
        if (!error) {  // else cancelled by stop() or destruction: those may be gone
            all->take_turn();
        }
    }

    deadlines* all;
    allocator_type room;
};

// It ticks from when the wait has begun. That takes memory only where Asio's array of timers has to grow; where there is
// none whoever arms the next deadline begins it.
void deadlines::start_ticking() {
    timer_.expires_after(stopped_ || !due_.alone() ? std::chrono::milliseconds{0} : tick_);
    timer_.async_wait(tick_end{this, in_room<std::byte>{room_}});
    due_at_.store(timer_.expiry(), std::memory_order_relaxed);
    ticking_ = true;
}

void deadlines::take_turn() {
    note_turn(steady_now());
    ticking_ = false;
    const goes_on behind{*this};
    const auto now = stopped_ ? steady_time::max() : steady_now();
    gather(now);
    act(now, most_events_a_look);
}

// Also behind an action that threw: the others' time comes all the same.
deadlines::goes_on::~goes_on() {
    if (all.armed_count_ == 0 || all.ticking_) {
        return;
    }
    try {
        all.start_ticking();
    } catch (const std::bad_alloc&) {
        // Whoever arms the next deadline tries again.
    }
}

// The tick in which a time is; beyond the wheel, its last.
deadlines::tick_number deadlines::tick_of(steady_time when) const noexcept {
    const auto here = time_of(at_);
    if (when <= here) {
        return at_;
    }
    const auto ahead = std::min<std::int64_t>((when - here) / tick_, ticks_ahead - 1);
    return at_ + static_cast<tick_number>(ahead);
}

// Whether the deadline is looked at by the time that it has come.
bool deadlines::finds(const deadline& one) const noexcept {
    return one.filed_ >= at_ && time_of(one.filed_) <= one.when_;
}

void deadlines::file(deadline& one) noexcept {
    one.unlink();
    one.filed_ = tick_of(one.when_);
    if (one.filed_ - at_ == ticks_ahead - 1) {
        one.filed_ -= spread_++ %
                      (ticks_ahead / 2);  // those that came at once are not looked at so
    }
    one.insert_before(list_of(one.filed_));
}

// Those due move to a list of their own before the first action runs, since an action may arm, clear
// or destroy any of them, and each of these works on whatever list the deadline is in.
void deadlines::gather(steady_time now) noexcept {
    const auto from = at_;
    const auto until = tick_of(now);
    if (now > time_of(at_) && now != steady_time::max()) {  // which stop() says, and is no time
        at_ += static_cast<tick_number>((now - time_of(at_)) / tick_);
    }
    for (auto tick = from; tick <= until; ++tick) {
        list_link passed;
        passed.take_all(list_of(tick));
        while (!passed.alone()) {
            auto& each = static_cast<deadline&>(*passed.next);
            if (each.armed_ && each.when_ > now) {
                file(each);
                continue;
            }
            each.unlink();
            each.filed_ = 0;
            if (each.armed_) {
                each.insert_before(due_);
            }
        }
    }
}

void deadlines::act(steady_time now, std::size_t most) {
    for (std::size_t acted = 0; acted < most && !due_.alone();) {
        auto& each = static_cast<deadline&>(*due_.next);
        if (!each.armed_) {
            each.unlink();
            continue;
        }
        if (each.when_ > now) {  // moved on by an action before its turn came
            file(each);
            continue;
        }
        const auto action = each.on_expiry_;  // it may die in that; without memory it stays due
        ++acted;
        each.unlink();
        each.clear();
        each.expired_ = true;
        action();
    }
}

void deadlines::tick(steady_time now) {
    gather(now);
    act(now, std::numeric_limits<std::size_t>::max());
}

}  // namespace reprise::proxy::net
