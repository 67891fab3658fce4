#pragma once
// An event that one coroutine waits for and any thread may signal.
// It stands where one request waits for another's progress, on the way of every miss: so a wait is
// a stored handler and a deadline's store, a signal to a waiter on the same thread is one push to
// the loop's own queue, and a signal while nobody waits is one atomic exchange. No timer queue.
// Whoever signals may be in a destructor, or have others to wake as well, and could do nothing about a signal that was
// refused: so what a signal needs lies ready, and none ever is.

#include "proxy/base/clock.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/deadlines.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

namespace reprise::proxy::net {

/// Threads   wait, construction and destruction: the thread of `timer`'s io_context; notify: any.
/// Coalesces any number of signals before a wait are one; a wait after a signal returns at once.
/// Order     what happened before notify() is seen by the waiter it wakes.
/// Memory    some 100 bytes, and as long as somebody waits 250 more, taken as the wait begins: a signal, and the end of a
///           wait, take none.
class wakeup {
    struct shared;
    struct rooms;

public:
    /// What other threads hold: signals while the wakeup lives and does nothing afterwards.
    class signal {
    public:
        signal() = default;
        void notify() const noexcept;

    private:
        friend class wakeup;
        explicit signal(std::shared_ptr<shared> to) : to_(std::move(to)) {}
        std::shared_ptr<shared> to_;
    };

    explicit wakeup(deadlines& timer);
    /// @pre nobody waits, unless the loop runs no more
    ~wakeup();
    wakeup(const wakeup&) = delete;
    wakeup& operator=(const wakeup&) = delete;

    /// Waits for a signal; false when the deadline (or deadlines::stop) came first, or the awaiting
    /// operation was cancelled. The caller runs on this io_context; one at a time may wait. Where there is no memory to
    /// begin the wait nobody waits: the caller's coroutine is lost, as coroutine.hpp says.
    [[nodiscard]] awaitable<bool> wait(steady_time until);

    /// Takes a signal that is already there; no suspension.
    [[nodiscard]] bool take() noexcept;

    /// The waiter runs later from the loop, never inside this call.
    void notify() const noexcept;
    [[nodiscard]] signal handle() const { return signal{shared_}; }

private:
    using handler = asio::async_result<asio::use_awaitable_t<executor>, void(bool)>::handler_type;
    struct delivery;
    struct end_of_wait;
    static void notify(const std::shared_ptr<shared>& to) noexcept;
    void deliver() noexcept;
    void give_up() noexcept;
    void complete(bool signalled) noexcept;
    void start_wait(handler waiter, steady_time until);

    std::shared_ptr<shared> shared_;
    deadline until_;
    std::optional<handler> waiter_;
};

}  // namespace reprise::proxy::net
