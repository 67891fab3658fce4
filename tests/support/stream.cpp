#include "tests/support/stream.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace reprise::tests {

namespace {

using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

struct socket_address {
    sockaddr_storage storage{};
    socklen_t size = 0;
};

socket_address numeric(const std::string& host, std::uint16_t port) {
    socket_address out;
    if (host.find(':') != std::string::npos) {
        sockaddr_in6 v6{};
        v6.sin6_family = AF_INET6;
        v6.sin6_port = htons(port);
        if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1) {
            throw std::runtime_error("not an address: " + host);
        }
        std::memcpy(&out.storage, &v6, sizeof v6);
        out.size = sizeof v6;
        return out;
    }
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) != 1) {
        throw std::runtime_error("not an address: " + host);
    }
    std::memcpy(&out.storage, &v4, sizeof v4);
    out.size = sizeof v4;
    return out;
}

sockaddr* as_sockaddr(socket_address& address) {
    return reinterpret_cast<sockaddr*>(&address.storage);
}

[[noreturn]] void fail(const std::string& doing) {
    throw std::runtime_error(doing + ": " + std::strerror(errno));
}

/// True when the socket is ready for `events` (or broken) before `until`.
bool ready(int fd, short events, clock::time_point until) {
    for (;;) {
        const auto left = std::chrono::ceil<milliseconds>(until - clock::now()).count();
        pollfd one{fd, events, 0};
        const int got = ::poll(&one, 1, static_cast<int>(std::max<long>(left, 0)));
        if (got > 0) {
            return true;
        }
        if (got == 0) {
            return false;
        }
        if (errno != EINTR) {
            return true;
        }
    }
}

struct bound {
    int fd;
    std::uint16_t port;
};

/// A socket at a port of `address`; at 0, one that was free.
bound bound_socket(const std::string& address, std::uint16_t port = 0) {
    auto local = numeric(address, port);
    const int fd = ::socket(local.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        fail("socket");
    }
    const int again = port !=
                      0;  // the one that listened there before may have left connections behind
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &again, sizeof again);
    if (::bind(fd, as_sockaddr(local), local.size) != 0) {
        const int error = errno;
        ::close(fd);
        errno = error;
        fail("bind to " + address);
    }
    ::getsockname(fd, as_sockaddr(local), &local.size);
    // The port is at the same place in both families' addresses.
    return {fd, ntohs(reinterpret_cast<sockaddr_in*>(&local.storage)->sin_port)};
}

}  // namespace

std::string_view to_string(read_end end) noexcept {
    switch (end) {
    case read_end::data: return "data";
    case read_end::closed: return "closed";
    case read_end::reset: return "reset";
    case read_end::timed_out: return "timed out";
    }
    return "";
}

stream::stream(int fd) noexcept : fd_{fd} {
    if (fd_ >= 0) {
        ::fcntl(fd_, F_SETFL, O_NONBLOCK);
        ::fcntl(fd_, F_SETFD, FD_CLOEXEC);
        const int on = 1;  // pieces must travel as the pieces they are sent in
        ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
}

stream::stream(stream&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}

stream& stream::operator=(stream&& other) noexcept {
    if (this != &other) {
        close();
        fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
}

stream::~stream() {
    close();
}

stream stream::connect(std::uint16_t port, const std::string& from, const std::string& to) {
    auto remote = numeric(to, port);
    auto local = numeric(from, 0);
    const int fd = ::socket(remote.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        fail("socket");
    }
    stream out{fd};
    // The port is picked with the destination known: one that a closed connection to another port
    // still has will do. Some ten thousand short connections used them all up otherwise.
    const int later = 1;
    (void)::setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &later, sizeof later);
    if (::bind(fd, as_sockaddr(local), local.size) != 0) {
        fail("bind " + from);
    }
    if (::connect(fd, as_sockaddr(remote), remote.size) != 0) {
        if (errno != EINPROGRESS) {
            fail("connect to port " + std::to_string(port));
        }
        if (!ready(fd, POLLOUT, clock::now() + patience)) {
            throw std::runtime_error("connect to port " + std::to_string(port) + ": no answer");
        }
        int error = 0;
        socklen_t size = sizeof error;
        ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error != 0) {
            errno = error;
            fail("connect to port " + std::to_string(port));
        }
    }
    // Where nobody listens at a port that the system would also pick for us, TCP connects the
    // socket to itself.
    auto own = numeric(from, 0);
    auto other = numeric(to, 0);
    if (::getsockname(fd, as_sockaddr(own), &own.size) == 0 &&
        ::getpeername(fd, as_sockaddr(other), &other.size) == 0 && own.size == other.size &&
        std::memcmp(&own.storage, &other.storage, own.size) == 0) {
        throw std::runtime_error("connect to port " + std::to_string(port) + ": nobody listens");
    }
    return out;
}

bool stream::send(std::string_view bytes, milliseconds limit) {
    auto until = clock::now() + limit;
    while (!bytes.empty()) {
        const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(sent));
            until = clock::now() + limit;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!ready(fd_, POLLOUT, until)) {
                return false;
            }
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

std::size_t stream::send_until_stalled(std::string_view bytes, milliseconds stalled) {
    std::size_t total = 0;
    while (total < bytes.size()) {
        const auto sent = ::send(fd_, bytes.data() + total, bytes.size() - total, MSG_NOSIGNAL);
        if (sent > 0) {
            total += static_cast<std::size_t>(sent);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!ready(fd_, POLLOUT, clock::now() + stalled)) {
                break;
            }
        } else if (errno != EINTR) {
            break;
        }
    }
    return total;
}

std::string stream::read_at_least(std::size_t bytes) {
    std::string out;
    while (out.size() < bytes && read_some(out) == read_end::data) {
    }
    return out;
}

read_end stream::read_some(std::string& into, milliseconds limit, std::size_t most) {
    const auto until = clock::now() + limit;
    const auto before = into.size();
    into.resize(before + most);
    auto keep = [&](std::size_t got, read_end end) {
        into.resize(before + got);
        return end;
    };
    for (;;) {
        const auto got = ::recv(fd_, into.data() + before, most, 0);
        if (got > 0) {
            return keep(static_cast<std::size_t>(got), read_end::data);
        }
        if (got == 0) {
            return keep(0, read_end::closed);
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!ready(fd_, POLLIN, until)) {
                return keep(0, read_end::timed_out);
            }
        } else if (errno != EINTR) {
            return keep(0, read_end::reset);
        }
    }
}

bool stream::has_ended() const noexcept {
    char byte = 0;
    const auto got = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void stream::finish_sending() noexcept {
    ::shutdown(fd_, SHUT_WR);
}

void stream::reset() noexcept {
    if (fd_ >= 0) {
        const linger at_once{1, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close();
    }
}

void stream::close_both_ways() noexcept {
    if (fd_ >= 0) {
        ::shutdown(fd_, SHUT_RDWR);
    }
}

void stream::close() noexcept {
    if (fd_ >= 0) {
        ::close(std::exchange(fd_, -1));
    }
}

int stream::release() noexcept {
    return std::exchange(fd_, -1);
}

void stream::shrink_receive_buffer(int bytes) noexcept {
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

acceptor::acceptor(const std::string& address, std::uint16_t wanted) {
    const auto [fd, port] = bound_socket(address, wanted);
    if (::listen(fd, 4096) != 0) {
        const int error = errno;
        ::close(fd);
        errno = error;
        fail("listen on " + address);
    }
    fd_ = fd;
    port_ = port;
}

acceptor::~acceptor() {
    ::close(fd_);
}

void acceptor::stop() noexcept {
    ::shutdown(fd_, SHUT_RDWR);
}

stream acceptor::accept(milliseconds limit) {
    if (!ready(fd_, POLLIN, clock::now() + limit)) {
        return {};
    }
    return stream{::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)};
}

closed_port::closed_port() {
    const auto [fd, port] = bound_socket("127.0.0.1");
    fd_ = fd;
    port_ = port;
}

closed_port::~closed_port() {
    ::close(fd_);
}

}  // namespace reprise::tests
