#pragma once
// Waiting until a socket has something to read, in memory of whoever waits: an idle connection is
// nothing but its session, and a wait between two requests is mostly no system call.
//
// Asio registers a socket once, edge-triggered, and its async_wait registers it anew at each call
// (epoll_ctl), since it can't know whether something came before. Whoever has read all there was in
// this turn of the loop knows: what has come since is an edge that is still to be reported. So such
// a wait is only put into Asio's queue, as an operation of its reactor. Those are no public part of
// Asio: with another Boost than Debian 12's the wait is async_wait.

#include "proxy/net/watched.hpp"

#include <cstdint>

#if REPRISE_KNOWS_THE_REACTOR
#include <boost/asio/detail/reactor_op.hpp>
#endif

namespace reprise::proxy::net {

/// Threads   its io_context's.
/// Lifetime  from start() until it has told its waiter it stays where it is; the waiter may destroy
///           it, or start it again, when it is told.
/// Cost      nothing allocated; `asking` a system call, the others none. The first wait for a socket
///           has the loop watch it (watched.hpp), with what that takes.
class read_wait final
#if REPRISE_KNOWS_THE_REACTOR
    : private asio::detail::reactor_op
#endif
{
public:
    class waiter {
    public:
        /// The socket may have something to read, or its end; an error: the wait was cancelled, or
        /// the socket closed. From the loop, never inside start().
        virtual void on_readable(error_code over) = 0;
        /// The loop has gone: nobody will tell more.
        virtual void on_loop_gone() noexcept = 0;

    protected:
        ~waiter() = default;
    };
    enum class mode : std::uint8_t {
        just_seen,  ///< in this turn of the loop a reading found all there was, and no end of it
        asking,     ///< nobody knows what there is
    };

    read_wait(asio::io_context& io, waiter& to);
    ~read_wait() = default;
    read_wait(const read_wait&) = delete;
    read_wait& operator=(const read_wait&) = delete;

    /// `of` may listen: then connections to be accepted are what it reads.
    /// @pre it does not wait already; nobody else waits to read from `of`
    void start(tcp_socket& of, mode how);
    /// Something is there already: the waiter is told in its turn, behind all that is ready by now.
    /// Neither cancelling nor closing a socket ends that. @pre it does not wait already
    void start_at_once();

private:
    waiter& to_;
#if REPRISE_KNOWS_THE_REACTOR
    using reactor = asio::detail::reactor;
    static status look(asio::detail::reactor_op* base);
    static void end(void* loop,
                    asio::detail::scheduler_operation* base,
                    const error_code& error,
                    std::size_t bytes);
    reactor& reactor_;
    bool just_seen_ = false;
#else
    asio::io_context& io_;
#endif
};

}  // namespace reprise::proxy::net
