#include "tools/bench_proxy/floors.hpp"

#include <array>
#include <csignal>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <string_view>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <unordered_map>

namespace reprise::bench {

namespace {

using events = std::array<epoll_event, 512>;

void watch(int poll, int fd) {
    const int one = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    epoll_event interest{};
    interest.events = EPOLLIN;
    interest.data.fd = fd;
    ::epoll_ctl(poll, EPOLL_CTL_ADD, fd, &interest);
}

// The connections block, so that all of an answer goes out.
bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const auto sent = ::write(fd, bytes.data(), bytes.size());
        if (sent <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

}  // namespace

void answer_without_http(int listener, std::size_t body_bytes) {
    std::signal(SIGPIPE, SIG_IGN);
    const auto response =
        "HTTP/1.1 200 OK\r\nDate: Fri, 20 Nov 2026 11:00:00 GMT\r\nContent-Type: text/html\r\n"
        "Cache-Control: public, max-age=3600\r\nAge: 1\r\nVia: 1.1 bare\r\nContent-Length: " +
        std::to_string(body_bytes) + "\r\n\r\n" + std::string(body_bytes, 'x');
    const int poll = ::epoll_create1(EPOLL_CLOEXEC);
    watch(poll, listener);
    static std::array<char, 65536> request;
    static events ready;
    while (true) {
        const int count = ::epoll_wait(poll, ready.data(), ready.size(), -1);
        for (int i = 0; i < count; ++i) {
            const int fd = ready[static_cast<std::size_t>(i)].data.fd;
            if (fd == listener) {
                for (int client; (client = ::accept4(listener, nullptr, nullptr, 0)) >= 0;) {
                    watch(poll, client);
                }
            } else if (::read(fd, request.data(), request.size()) <= 0 ||
                       !write_all(fd, response)) {
                ::close(fd);
            }
        }
    }
}

void carry_bytes(int listener, std::uint16_t upstream) {
    std::signal(SIGPIPE, SIG_IGN);
    const int poll = ::epoll_create1(EPOLL_CLOEXEC);
    watch(poll, listener);
    std::unordered_map<int, socket_handle> peer;  // of each connection's descriptor, the other
    static std::array<char, 65536> bytes;
    static events ready;
    while (true) {
        const int count = ::epoll_wait(poll, ready.data(), ready.size(), -1);
        for (int i = 0; i < count; ++i) {
            const int fd = ready[static_cast<std::size_t>(i)].data.fd;
            if (fd == listener) {
                for (int client; (client = ::accept4(listener, nullptr, nullptr, 0)) >= 0;) {
                    auto other = connect_to(upstream);
                    const int there = other.get();
                    watch(poll, client);
                    watch(poll, there);
                    peer[client] = std::move(other);
                    peer[there] = socket_handle{client};
                }
                continue;
            }
            const auto found = peer.find(fd);
            if (found == peer.end()) {
                continue;  // closed with its other end, in this round
            }
            const int to = found->second.get();
            const auto got = ::read(fd, bytes.data(), bytes.size());
            if (got <= 0 ||
                !write_all(to, std::string_view{bytes.data(), static_cast<std::size_t>(got)})) {
                auto first = std::move(found->second);
                peer.erase(found);
                peer.erase(to);
            }
        }
    }
}

}  // namespace reprise::bench
