#pragma once
// A thread for work that would hold up an event loop for longer than a request may wait.

#include "proxy/net/asio.hpp"

#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <cstddef>
#include <functional>

namespace reprise::proxy::net {

/// Does what it is given, one thing after the other, in the order given.
///
/// Threads   any; run: the loop's own.
class side_thread {
public:
    /// `name` is the thread's, 15 characters at most.
    explicit side_thread(const char* name);
    ~side_thread() { finish(); }
    side_thread(const side_thread&) = delete;
    side_thread& operator=(const side_thread&) = delete;

    /// @pre work does not throw
    void post(std::function<void()> work);

    /// Ends when `work` has been done, back on `loop`; nothing else ends it: not a deadline, nor
    /// the loop's coming to rest, which waits for it. What happened before the call is seen by
    /// `work`, and what `work` did by the caller.
    /// @pre finish() was not called, work does not throw
    [[nodiscard]] awaitable<void> run(asio::io_context& loop, std::function<void()> work);

    /// Nothing that was given to it is left to be done: all of it is seen by whoever asks.
    [[nodiscard]] bool is_idle() const noexcept {
        return left_.load(std::memory_order_acquire) == 0;
    }

    /// Waits for what was given, and ends the thread. Not on a loop. What is given later is not
    /// done. @pre the loops of those who wait in run() still exist; they need not run
    void finish();

private:
    using handler = asio::async_result<asio::use_awaitable_t<executor>, void()>::handler_type;
    void start(asio::io_context& loop, std::function<void()> work, handler waiter);
    template <class Post>
    void begin(const Post& post);

    void done() noexcept { left_.fetch_sub(1, std::memory_order_release); }

    std::atomic<std::size_t> left_{0};
    asio::thread_pool thread_{1};
};

}  // namespace reprise::proxy::net
