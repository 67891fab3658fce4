#pragma once
// Who is connected to the admin listener, and which of them goes where there are as many as may be.

#include "proxy/admin/admin_answers.hpp"
#include "proxy/base/clock.hpp"

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/basic_stream.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <utility>

namespace reprise::proxy::admin {

/// Who comes, and by which way in.
struct caller {
    boost::asio::ip::address from;  ///< unspecified: by the Unix socket; all of its clients are one
    arrival how;
};

/// A connection.
struct visitor {
    using protocol = boost::asio::generic::stream_protocol;
    /// What it does just now.
    enum class stage : std::uint8_t { reading, answering, sending, leaving };

    visitor(protocol::socket socket, const caller& one)
        : stream{std::move(socket)},
          from{one.from},
          how{one.how} {}
    void begin(stage next) {
        at = next;
        since = steady_now();
    }

    boost::beast::basic_stream<protocol> stream;
    const boost::asio::ip::address from;
    const arrival how;
    stage at = stage::reading;
    steady_time since = steady_now();
    bool sent_away = false;  ///< it has made room; its coroutine ends soon
};

/// Threads: one.
class visitors {
public:
    /// A visitor's, for as long as its coroutine lasts. The visitors outlive it.
    class place {
    public:
        place(place&& other) noexcept : in_{std::exchange(other.in_, nullptr)}, at_{other.at_} {}
        place& operator=(place&&) = delete;
        ~place() {
            if (in_ != nullptr) {
                in_->erase(at_);
            }
        }
        visitor* operator->() const { return &*at_; }
        visitor& operator*() const { return *at_; }

    private:
        friend visitors;
        place(std::list<visitor>& in, std::list<visitor>::iterator at) : in_{&in}, at_{at} {}
        std::list<visitor>* in_;
        std::list<visitor>::iterator at_;
    };

    /// @param most  at once, whoever they are
    explicit visitors(std::size_t most) : most_{most} {}

    /// True: one more from there may come, of whom at most `of_client` may be there. The connection
    /// that has waited longest for its client goes for it; one that waits for us never does.
    /// O(visitors).
    [[nodiscard]] bool make_room(const boost::asio::ip::address& from, std::size_t of_client);
    /// @pre make_room()
    [[nodiscard]] place come_in(visitor::protocol::socket socket, const caller& who);

private:
    const std::size_t most_;
    std::list<visitor> all_;
};

}  // namespace reprise::proxy::admin
