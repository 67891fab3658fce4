#include "proxy/net/side_thread.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <pthread.h>
#include <utility>

namespace reprise::proxy {

side_thread::side_thread(const char* name) {
    net::post(thread_, [name] { ::pthread_setname_np(::pthread_self(), name); });
}

void side_thread::post(std::function<void()> work) {
    net::post(thread_, std::move(work));
}

void side_thread::start(net::io_context& loop, std::function<void()> work, handler waiter) {
    net::post(thread_,
              [work = std::move(work),
               waiter = std::move(waiter),
               awake = net::make_work_guard(loop)]() mutable {
                  work();
                  work = nullptr;  // what it held goes here, too, and before the waiter goes on
                  net::post(awake.get_executor(), std::move(waiter));
              });
}

awaitable<void> side_thread::run(net::io_context& loop, std::function<void()> work) {
    auto begin = [this, &loop, work = std::move(work)](handler waiter) mutable {
        start(loop, std::move(work), std::move(waiter));
    };
    const net::use_awaitable_t<executor> token;
    return net::async_initiate<const net::use_awaitable_t<executor>, void()>(std::move(begin),
                                                                             token);
}

void side_thread::finish() {
    thread_.join();
}

}  // namespace reprise::proxy
