#pragma once
// Deadlines that cost a store to arm.
// A connection arms one several times per request, and nearly none is ever reached: a timer queue
// would be paid for on every one of them, for nothing. So a deadline is an intrusive list node, to
// arm it is to write a time into it, and one timer per thread ticks and looks for those that
// passed. The price is coarseness: a deadline is seen up to one tick late, never early.
//
// They lie in a wheel: a list for each tick of the next 51 seconds. One that is moved on, which is
// what nearly all moves are, stays where it lies until that tick has come, and finds its new place
// then: so a tick looks at what is due or was due, and at no idle connection that is neither (in one
// list, 20,000 of them took 1.3 ms a tick, 4 at the most). One that is far away is looked at once or
// twice a minute.

#include "proxy/base/clock.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/list_link.hpp"
#include "proxy/net/operation_room.hpp"

#include <boost/asio/steady_timer.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace reprise::proxy::net {

class deadlines;

/// One deadline: a member, or a local in a coroutine, of whoever waits.
///
/// Threads   the one of its `deadlines`, for everything, construction and destruction included.
/// Cost      expire_at: three stores and two comparisons (the first one, and one to an earlier time,
///           also enter a list); clear and destruction O(1).
/// The action runs at most once for each expire_at, on the loop, never inside a call of ours. It
/// may arm and destroy any deadline, this one included. It should *end* what waits (close the
/// socket) rather than cancel it: between two operations there is nothing to cancel, and the second
/// would wait forever unless it asks expired() first.
class deadline : list_link {
public:
    using action = std::function<void()>;

    deadline(deadlines& all, action on_expiry);
    ~deadline() { clear(); }
    deadline(const deadline&) = delete;
    deadline& operator=(const deadline&) = delete;

    /// Arms, or moves, the deadline and forgets that an earlier one passed. steady_time::max() is
    /// never reached but still ends with deadlines::stop().
    /// @throws std::bad_alloc, when the timer must begin to tick for it: then it is as it was
    void expire_at(steady_time when);
    void expire_after(std::chrono::steady_clock::duration wait) { expire_at(steady_now() + wait); }

    /// Disarms. expired() stays as it is, so that it can be asked after the wait.
    void clear() noexcept;

    /// True from the moment the action runs until the next expire_at.
    [[nodiscard]] bool expired() const noexcept { return expired_; }
    [[nodiscard]] bool armed() const noexcept { return armed_; }
    [[nodiscard]] deadlines& all() const noexcept { return all_; }

    /// Arms a guard against the slow drip: `timeout` from now, and pushed on by progress() only
    /// when at least `bytes_per_second` x `timeout` bytes (never less than one) have moved since
    /// the last push. A byte now and then keeps nobody alive.
    void guard_rate(std::uint64_t bytes_per_second, std::chrono::milliseconds timeout);
    void progress(std::uint64_t bytes);

private:
    friend class deadlines;
    deadlines& all_;
    action on_expiry_;
    steady_time when_{};
    bool armed_ = false;
    bool expired_ = false;
    std::uint32_t filed_ = 0;   // the tick in whose list it lies; 0: in none of the wheel's
    std::uint64_t moved_ = 0;   // since the last push
    std::uint64_t enough_ = 1;  // to push again
    std::chrono::milliseconds push_by_{0};
};

/// All deadlines of one thread and the timer that ticks for them.
///
/// The timer runs only while something is armed, so an idle process is not woken and run() returns.
/// What an action throws comes out of run(); whatever else is armed acts when that is called again.
/// Where many are due at once, as many act in a turn of the loop as it takes on of sockets
/// (look.hpp): the others do so behind what is ready by then.
class deadlines {
public:
    explicit deadlines(asio::io_context& io,
                       std::chrono::milliseconds tick = std::chrono::milliseconds{100});
    ~deadlines();
    deadlines(const deadlines&) = delete;
    deadlines& operator=(const deadlines&) = delete;

    /// Lets everything armed expire now, and whatever is armed later at the next turn of the loop:
    /// the last word at shutdown, after which no wait of this thread lasts. What an action throws comes out of this, and
    /// the others act at the next turn.
    void stop();
    [[nodiscard]] bool stopped() const noexcept { return stopped_; }

    /// One tick as if it were `now`: runs all actions due. Tests may call it too.
    void tick(steady_time now);

    /// A time at which this loop had no turn though its tick was due since `away`: the process was stopped, or much
    /// was in the loop's way. Known while that lasts, and for a second behind it; else the beginning of time. While nothing
    /// is armed a loop has no ticks to miss. Any thread.
    [[nodiscard]] steady_time away_at(steady_time now) const noexcept {
        const auto due = due_at_.load(std::memory_order_relaxed);
        if (now - away > due) {
            return due + away;
        }
        const bool is_just_back = now - known_for < back_at_.load(std::memory_order_relaxed);
        return is_just_back ? away_at_.load(std::memory_order_relaxed) : steady_time{};
    }
    static constexpr std::chrono::seconds known_for{1};
    static constexpr std::chrono::milliseconds away{250};

    /// Deadlines armed now.
    [[nodiscard]] std::size_t armed() const noexcept { return armed_count_; }
    [[nodiscard]] asio::io_context& io() const noexcept { return io_; }

private:
    friend class deadline;
    using tick_number = std::uint32_t;  // of ticks since the beginning; 13 years of them
    static constexpr tick_number ticks_ahead = 512;

    /// What is armed when a turn ends, however it does, has another.
    struct goes_on {
        deadlines& all;
        ~goes_on();
    };
    struct tick_end;

    void note_armed();
    void start_ticking();
    void take_turn();
    void note_turn(steady_time now) noexcept;
    [[nodiscard]] steady_time time_of(tick_number tick) const noexcept {
        return begun_ + tick * tick_;
    }
    [[nodiscard]] tick_number tick_of(steady_time when) const noexcept;
    [[nodiscard]] list_link& list_of(tick_number tick) noexcept {
        return wheel_[tick % ticks_ahead];
    }
    [[nodiscard]] bool finds(const deadline& one) const noexcept;
    void file(deadline& one) noexcept;
    void gather(steady_time now) noexcept;
    void act(steady_time now, std::size_t most);

    asio::io_context& io_;
    asio::steady_timer timer_;
    // For the tick's wait: where there is no other memory it goes on. The loop may hold it longer than this lives.
    const std::shared_ptr<operation_room> room_ = std::make_shared<operation_room>();
    std::chrono::milliseconds tick_;
    steady_time begun_ = steady_now();
    std::atomic<steady_time> due_at_{
        steady_time::max()};  // of the next tick; never, while there is none
    std::atomic<steady_time> away_at_{steady_time{}}, back_at_{steady_time{}};
    tick_number at_ = 1;  // what lies in the lists was filed for this tick or later ones
    std::array<list_link, ticks_ahead> wheel_;  // they hold also what was cleared since
    list_link due_;
    tick_number spread_ = 0;
    std::size_t armed_count_ = 0;
    bool ticking_ = false;
    bool stopped_ = false;
};

}  // namespace reprise::proxy::net
