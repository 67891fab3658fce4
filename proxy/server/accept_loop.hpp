#pragma once
// One worker's share of a listener: takes the connections that wait there, and begins their
// sessions.

#include "config/options.hpp"
#include "proxy/base/descriptor.hpp"
#include "proxy/net/accepted.hpp"
#include "proxy/net/read_wait.hpp"

#include <boost/asio/steady_timer.hpp>

#include <cstddef>

namespace reprise::proxy::thread {
struct worker;
}  // namespace reprise::proxy::thread

namespace reprise::proxy::server {

/// Threads   construction and listen(): any, before its worker's loop runs; then the worker's.
/// Cost      allocates nothing to wait: it can't end for want of memory. At most 16 connections a
///           turn of the loop, so that those who are there already are not kept waiting.
/// Errors    out of descriptors or memory, say, a connection waits in the kernel's queue, and is
///           looked for again after 100 ms; logged, seldom.
class accept_loop final : private net::read_wait::waiter {
public:
    /// Binds, with SO_REUSEPORT, so that each worker has a queue of its own.
    /// @throws std::runtime_error that names the address
    accept_loop(thread::worker& w, std::size_t listener, const config::endpoint& where);
    /// Takes over one that listens already.
    /// @throws std::runtime_error: it is none that can be used
    accept_loop(thread::worker& w, std::size_t listener, descriptor listening);
    accept_loop(const accept_loop&) = delete;
    accept_loop& operator=(const accept_loop&) = delete;

    [[nodiscard]] std::uint16_t port() const;
    /// The listener's place in the settings.
    [[nodiscard]] std::size_t of() const noexcept { return listener_; }
    /// Clients may connect from now on, and wait until begin().
    /// @throws std::runtime_error that names the address
    void listen();
    /// @pre on its worker's thread
    void begin();
    /// Who waits there is refused, unless another process has the socket too. begin() may not come
    /// again.
    void close();
    /// A copy, for another process. None: there are no descriptors. Any thread, before close().
    [[nodiscard]] descriptor copy() const;

private:
    void on_readable(error_code over) override;
    void on_loop_gone() noexcept override {}
    [[nodiscard]] bool take_one(error_code& error);
    void pause(const error_code& why);

    thread::worker& w_;
    std::size_t listener_;
    // Listens. Mutable, since Asio tells no descriptor of what can't be changed.
    mutable tcp_socket from_;
    net::read_wait for_clients_;
    asio::steady_timer retry_;
};

}  // namespace reprise::proxy::server
