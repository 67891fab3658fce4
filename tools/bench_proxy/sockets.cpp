#include "tools/bench_proxy/sockets.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace reprise::bench {

namespace {

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_port = htons(port);
    out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return out;
}

}  // namespace

socket_handle& socket_handle::operator=(socket_handle&& other) noexcept {
    if (this != &other) {
        close();
        fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
}

void socket_handle::close() noexcept {
    if (fd_ >= 0) {
        ::close(std::exchange(fd_, -1));
    }
}

listening listen_anywhere() {
    listening out;
    out.socket = socket_handle{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    auto address = loopback(0);
    socklen_t size = sizeof address;
    const int fd = out.socket.get();
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        ::listen(fd, 4096) != 0 ||
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        throw std::runtime_error("cannot listen on loopback");
    }
    out.port = ntohs(address.sin_port);
    return out;
}

socket_handle connect_to(std::uint16_t port, std::uint32_t from) {
    socket_handle out{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (from != 0) {
        auto own = loopback(0);
        own.sin_addr.s_addr = htonl((INADDR_LOOPBACK & 0xffff0000) + 0x100 + from);
        if (::bind(out.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) {
            throw std::runtime_error("cannot bind to an address of loopback");
        }
    }
    const timeval deadline{10, 0};
    const int one = 1;
    ::setsockopt(out.get(), SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
    ::setsockopt(out.get(), SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof deadline);
    ::setsockopt(out.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    const auto address = loopback(port);
    if (::connect(out.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        throw std::runtime_error("nobody listens on port " + std::to_string(port));
    }
    return out;
}

void send_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const auto sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) {
            throw std::runtime_error("a connection takes no bytes");
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
}

std::vector<std::uint16_t> free_ports(std::size_t count) {
    std::vector<listening> held;  // until all are picked, so that none is picked twice
    std::vector<std::uint16_t> out;
    for (std::size_t i = 0; i < count; ++i) {
        held.push_back(listen_anywhere());
        out.push_back(held.back().port);
    }
    return out;
}

}  // namespace reprise::bench
