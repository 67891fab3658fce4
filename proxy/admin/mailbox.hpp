#pragma once
// The way to a loop for callers that may outlive it.

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <mutex>
#include <utility>

namespace reprise::proxy::admin {

/// Threads: any.
class mailbox {
public:
    explicit mailbox(boost::asio::io_context& to) : to_{&to} {}
    /// Has the loop do it. After close() nothing is done.
    /// @throws std::bad_alloc
    template <class Work>
    void post(Work work) {
        const std::lock_guard lock{guard_};
        if (to_ != nullptr) {
            boost::asio::post(*to_, std::move(work));
        }
    }
    void close() noexcept {
        const std::lock_guard lock{guard_};
        to_ = nullptr;
    }

private:
    std::mutex guard_;
    boost::asio::io_context* to_;
};

}  // namespace reprise::proxy::admin
