#include "proxy/server/accept_loop.hpp"

#include "proxy/base/log.hpp"
#include "proxy/base/seldom.hpp"
#include "proxy/net/io.hpp"
#include "proxy/net/listening.hpp"
#include "proxy/net/pace.hpp"
#include "proxy/serve/session.hpp"
#include "proxy/server/given_sockets.hpp"

#include <boost/asio/ip/v6_only.hpp>

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace reprise::proxy::server {

namespace {

constexpr std::size_t most_at_once = 16;
constexpr int queued_by_the_kernel = 4096;
constexpr std::chrono::milliseconds until_retry{100};

// Whatever the thread: one cause, one line.
constinit log::seldom no_memory_to_accept, cannot_accept;

tcp_socket bind_to(asio::io_context& io, const config::endpoint& where) {
    const auto failed = [&](const char* what, const error_code& error) {
        return std::runtime_error{"listeners: cannot " + std::string{what} + " " +
                                  net::to_text(where) + ": " + error.message()};
    };
    error_code error;
    const auto address = asio::ip::make_address(where.host, error);
    if (error) {
        throw failed("read the address", error);
    }
    const tcp::endpoint endpoint{address, where.port};
    tcp_socket listener{io};
    listener.open(endpoint.protocol(), error);
    if (error) {
        throw failed("open a socket for", error);
    }
    listener.set_option(asio::socket_base::reuse_address{true}, error);
    const int on = 1;
    if (::setsockopt(listener.native_handle(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) {
        throw failed("share (SO_REUSEPORT)", {errno, boost::system::system_category()});
    }
    if (address.is_v6()) {
        listener.set_option(asio::ip::v6_only{true}, error);
    }
    net::keep_little_unsent(listener.native_handle());
    net::prepare_listener(listener.native_handle());
    listener.bind(endpoint, error);
    if (error) {
        throw failed("listen on", error);
    }
    listener.non_blocking(true);
    return listener;
}

tcp_socket adopt(asio::io_context& io, descriptor listening) {
    const auto at = bound_address(listening.get());
    if (!at) {
        throw std::runtime_error{"listeners: a socket that was handed over does not listen"};
    }
    tcp_socket listener{io};
    error_code error;
    const bool v6 = at->host.find(':') != std::string::npos;
    listener.assign(v6 ? tcp::v6() : tcp::v4(), listening.get(), error);
    if (error) {
        throw std::runtime_error{"listeners: cannot use a socket that was handed over: " +
                                 error.message()};
    }
    (void)listening.release();
    net::keep_little_unsent(listener.native_handle());
    net::prepare_listener(listener.native_handle());
    listener.non_blocking(true);
    return listener;
}

}  // namespace

accept_loop::accept_loop(thread::worker& w, std::size_t listener, descriptor listening)
    : w_{w},
      listener_{listener},
      from_{adopt(w.io, std::move(listening))},
      for_clients_{w.io, *this},
      retry_{w.io} {}

accept_loop::accept_loop(thread::worker& w, std::size_t listener, const config::endpoint& where)
    : w_{w},
      listener_{listener},
      from_{bind_to(w.io, where)},
      for_clients_{w.io, *this},
      retry_{w.io} {}

std::uint16_t accept_loop::port() const {
    return from_.local_endpoint().port();
}

void accept_loop::listen() {
    const auto at = from_.local_endpoint();
    if (::listen(from_.native_handle(), queued_by_the_kernel) != 0) {
        const error_code error{errno, boost::system::system_category()};
        throw std::runtime_error{
            "listeners: cannot listen on " +
            net::to_text(config::endpoint{at.address().to_string(), at.port()}) + ": " +
            error.message()};
    }
}

void accept_loop::begin() {
    for_clients_.start(from_, net::read_wait::mode::asking);
}

// Closing alone would leave it in the loop's epoll set where another process has the socket too.
void accept_loop::close() {
    error_code not_open;
    const auto fd = from_.release(not_open);
    if (!not_open) {
        ::close(fd);
    }
    retry_.cancel();
}

descriptor accept_loop::copy() const {
    return descriptor{::fcntl(from_.native_handle(), F_DUPFD_CLOEXEC, 0)};
}

void accept_loop::on_readable(error_code over) {
    if (over || !from_.is_open()) {
        return;
    }
    for (std::size_t count = 0; count < most_at_once; ++count) {
        error_code error;
        if (take_one(error)) {
            continue;
        }
        if (!error) {
            for_clients_.start(from_, net::read_wait::mode::just_seen);
            return;
        }
        // What is wrong with one connection has gone with it (accept(2)).
        if (error != asio::error::connection_aborted && error != asio::error::no_permission &&
            error != boost::system::errc::protocol_error) {
            pause(error);
            return;
        }
    }
    for_clients_.start(from_, net::read_wait::mode::asking);
}

// False: there is none, or `error` says why not. One for which there is no memory is closed.
bool accept_loop::take_one(error_code& error) {
    try {
        auto one = net::accept_now(from_, error);
        if (!one) {
            return false;
        }
        serve::serve_client(w_, std::move(*one), listener_);
    } catch (const std::bad_alloc&) {
        if (const auto more = no_memory_to_accept.due()) {
            log::warn("accepting connections: out of memory", *more);
        }
    }
    return true;
}

// Out of descriptors or memory, say: the connection waits in the kernel's queue until some are free.
void accept_loop::pause(const error_code& why) {
    if (const auto more = cannot_accept.due()) {
        log::warn("accepting connections: ", why.message(), *more);
    }
    try {
        retry_.expires_after(until_retry);
        retry_.async_wait([this](const error_code& cancelled) {
            if (!cancelled && from_.is_open()) {
                begin();
            }
        });
    } catch (const std::bad_alloc&) {
        begin();  // in the next turn of the loop, rather than never
    }
}

}  // namespace reprise::proxy::server
