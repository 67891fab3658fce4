#pragma once
// Where handlers run that may take a while: on a thread of their own, one at a time. A connection waits here for what
// becomes of its call, and never for longer than it may.
//
// Threads   call: the sockets'. post: any.
// Bounds    admin_limits.calls waiting or under way, and .waits that wait for what a handler can't know yet; whoever
//           comes beyond that is told so at once.

#include "proxy/admin/admin_server.hpp"
#include "proxy/admin/mailbox.hpp"
#include "proxy/net/side_thread.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace reprise::proxy::admin {

/// A request as a handler sees it, for as long as that takes.
struct owned_request {
    boost::beast::http::verb method;
    std::string path, query, body;
    [[nodiscard]] admin_request view() const { return {method, path, query, body}; }
};

class handlers_desk {
public:
    /// @pre `io` and `limits` outlive it; `box` leads to io
    handlers_desk(boost::asio::io_context& io,
                  std::shared_ptr<mailbox> box,
                  const admin_limits& limits)
        : io_{io},
          box_{std::move(box)},
          limits_{limits} {}

    /// The handler's answer, once it may be sent; or what is said where that takes too long.
    /// @pre the route outlives the desk
    [[nodiscard]] boost::asio::awaitable<admin_response> call(
        const admin_route& route, std::shared_ptr<const owned_request> asked);
    void post(std::function<void()> work) { thread_.post(std::move(work)); }

    /// No call begins any more.
    void stop() noexcept { stopping_ = true; }
    /// Ends the thread, behind what it is at and was given. @pre stop(); the loop runs no more
    void finish() { thread_.finish(); }

private:
    struct awaited_answer;
    void post_call(const admin_route& route,
                   std::shared_ptr<const owned_request> asked,
                   const std::weak_ptr<awaited_answer>& slot);

    boost::asio::io_context& io_;
    const std::shared_ptr<mailbox> box_;
    const admin_limits& limits_;
    std::atomic<std::size_t> calls_{0}, waits_{0};
    std::atomic<bool> stopping_{false};
    net::side_thread thread_{"admin work"};
};

}  // namespace reprise::proxy::admin
