#include "proxy/net/side_thread.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <pthread.h>
#include <utility>

namespace reprise::proxy::net {

side_thread::side_thread(const char* name) {
    asio::post(thread_, [name] { ::pthread_setname_np(::pthread_self(), name); });
}

// Counted before it may run, and not at all where there is no memory for it.
template <class Post>
void side_thread::begin(const Post& post) {
    left_.fetch_add(1, std::memory_order_relaxed);
    try {
        post();
    } catch (...) {
        left_.fetch_sub(1, std::memory_order_relaxed);
        throw;
    }
}

void side_thread::post(std::function<void()> work) {
    begin([&] {
        asio::post(thread_, [this, work = std::move(work)]() mutable {
            work();
            work = nullptr;
            done();
        });
    });
}

void side_thread::start(asio::io_context& loop, std::function<void()> work, handler waiter) {
    begin([&] {
        asio::post(thread_,
                   [this,
                    work = std::move(work),
                    waiter = std::move(waiter),
                    awake = asio::make_work_guard(loop)]() mutable {
                       work();
                       work = nullptr;  // what it held goes here, too, and before the waiter goes on
                       done();
                       asio::post(awake.get_executor(), std::move(waiter));
                   });
    });
}

awaitable<void> side_thread::run(asio::io_context& loop, std::function<void()> work) {
    auto begin = [this, &loop, work = std::move(work)](handler waiter) mutable {
        start(loop, std::move(work), std::move(waiter));
    };
    const asio::use_awaitable_t<executor> token;
    return asio::async_initiate<const asio::use_awaitable_t<executor>, void()>(std::move(begin),
                                                                               token);
}

void side_thread::finish() {
    thread_.join();
}

}  // namespace reprise::proxy::net
