#pragma once
// Coroutines begun on a loop, whose end is told whatever becomes of them.
//
// co_spawn alone does not tell it. Where there is no memory for what a coroutine is about to wait for (a reading, a
// turn of the loop), it is suspended already and hears nothing of that: the std::bad_alloc comes out of the loop's
// run(), and in a later turn Asio destroys the coroutine's frames, and with them, uncalled, whatever was to be told of
// its end. Whoever waits for that would wait for ever. What has no end of its own is begun by standing_work.

#include "proxy/base/recycled.hpp"
#include "proxy/net/asio.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>

#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace reprise::proxy::net {

namespace detail {

/// Who is to be told of a coroutine's end, in the coroutine's frame and nowhere else.
template <class OnEnd, class... Result>
class awaited_end {
public:
    awaited_end(const executor& loop, OnEnd on_end) : loop_{loop}, on_end_{std::move(on_end)} {}
    ~awaited_end() {
        // A loop that is destroyed takes along what its coroutines speak of: nobody is there to be told.
        if (!is_told_ && loop_.running_in_this_thread()) {
            tell_lost();
        }
    }
    awaited_end(const awaited_end&) = delete;
    awaited_end& operator=(const awaited_end&) = delete;

    void tell(std::exception_ptr broken, Result... came) {
        is_told_ = true;
        on_end_(std::move(broken), std::move(came)...);
    }
    void tell_nobody() noexcept { is_told_ = true; }

private:
    void tell_lost() noexcept {
        try {
            tell(std::make_exception_ptr(std::bad_alloc{}), Result{}...);
        } catch (...) {
            // They know by now, and what they lack for the rest nobody here has.
        }
    }

    const executor loop_;
    OnEnd on_end_;
    bool is_told_ = false;
};

template <class... Result, class Work, class OnEnd>
void begin_coroutine(asio::io_context& io,
                     Work work,
                     OnEnd on_end,
                     asio::cancellation_slot given_up) {
    using whoever = awaited_end<OnEnd, Result...>;
    const auto end = std::allocate_shared<whoever>(
        recycled<whoever>{}, io.get_executor(), std::move(on_end));
    try {
        auto tell = [end](std::exception_ptr broken, Result... came) {
            end->tell(std::move(broken), std::move(came)...);
        };
        asio::co_spawn(
            io, std::move(work), asio::bind_cancellation_slot(given_up, std::move(tell)));
    } catch (...) {
        // Else it has begun, and waited in vain: its frames hold it until they are destroyed.
        if (end.use_count() == 1) {
            end->tell_nobody();
            throw;
        }
    }
}

}  // namespace detail

/// Begins `work` on this loop. on_end(exception_ptr) is called once, from the loop and never within this call: with
/// nothing, with what it threw, or with std::bad_alloc where memory ended where it waits. Not where the loop is
/// destroyed before. Of an awaitable<T>, on_end(exception_ptr, T) is given what came of it, or T{}.
/// @param work      its executor: any that the loop's own converts to
/// @param given_up  what it waits for ends when this is emitted into (on the loop's thread), and whatever it would
///                  wait for next throws boost::system::system_error; the signal outlives it
/// Threads   the loop's, or any before that runs.
/// Cost      one block of recycled memory beside co_spawn's.
/// @throws std::bad_alloc: nothing was begun, and on_end is not called
template <class T, class Executor, class OnEnd>
void begin_coroutine(asio::io_context& io,
                     asio::awaitable<T, Executor> work,
                     OnEnd on_end,
                     asio::cancellation_slot given_up = {}) {
    if constexpr (std::is_void_v<T>) {
        detail::begin_coroutine<>(io, std::move(work), std::move(on_end), given_up);
    } else {
        detail::begin_coroutine<T>(io, std::move(work), std::move(on_end), given_up);
    }
}

}  // namespace reprise::proxy::net
