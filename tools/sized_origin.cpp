#include "tools/sized_origin.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <random>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace reprise::tools {

namespace {

constexpr std::size_t noise_bytes = std::size_t{1} << 20;

/// All bodies are cut out of this, each from a place of its own: copying is quicker than making.
const std::vector<char>& noise() {
    static const std::vector<char> made = [] {
        std::vector<char> out(noise_bytes);
        std::mt19937_64 random{20151};
        for (std::size_t at = 0; at < out.size(); at += sizeof(std::uint64_t)) {
            const std::uint64_t word = random();
            std::memcpy(out.data() + at, &word, sizeof word);
        }
        return out;
    }();
    return made;
}

/// Calls `piece(run, at)` for each run of noise that makes up the bytes of a body.
template <class Piece>
void for_each_run(std::uint64_t key, std::uint64_t offset, std::size_t size, Piece&& piece) {
    const std::uint64_t start = key * 0x9e3779b97f4a7c15u >> 44;  // the upper 20 bits
    for (std::size_t at = 0; at < size;) {
        const std::size_t from = (start + offset + at) % noise_bytes;
        const std::size_t run = std::min(size - at, noise_bytes - from);
        piece(std::string_view{noise().data() + from, run}, at);
        at += run;
    }
}

bool send_all(int socket, const char* bytes, std::size_t size, int flags = 0) {
    while (size > 0) {
        const auto sent = ::send(socket, bytes, size, MSG_NOSIGNAL | flags);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return false;
        }
        bytes += sent;
        size -= static_cast<std::size_t>(sent);
    }
    return true;
}

struct wanted_body {
    std::uint64_t key = 0, size = 0;
};

/// Of "GET /k/KEY/SIZE HTTP/1.1...".
std::optional<wanted_body> wanted_by(std::string_view head) {
    constexpr std::string_view begin = "GET /k/";
    if (head.substr(0, begin.size()) != begin) {
        return std::nullopt;
    }
    wanted_body out;
    const char* const end = head.data() + head.size();
    const auto key = std::from_chars(head.data() + begin.size(), end, out.key);
    if (key.ec != std::errc{} || key.ptr == end || *key.ptr != '/') {
        return std::nullopt;
    }
    const auto size = std::from_chars(key.ptr + 1, end, out.size);
    if (size.ec != std::errc{} || size.ptr == end || *size.ptr != ' ') {
        return std::nullopt;
    }
    return out;
}

[[noreturn]] void fail(const char* what) {
    throw std::system_error{errno, std::generic_category(), what};
}

}  // namespace

void fill_body(std::uint64_t key, std::uint64_t offset, std::span<char> into) {
    for_each_run(key, offset, into.size(), [&](std::string_view run, std::size_t at) {
        std::memcpy(into.data() + at, run.data(), run.size());
    });
}

bool is_body(std::uint64_t key, std::uint64_t offset, std::string_view bytes) {
    bool same = true;
    for_each_run(key, offset, bytes.size(), [&](std::string_view run, std::size_t at) {
        same = same && bytes.substr(at, run.size()) == run;
    });
    return same;
}

sized_origin::sized_origin() {
    (void)noise();
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener_ < 0) {
        fail("socket");
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, generic, size) != 0 || ::listen(listener_, SOMAXCONN) != 0 ||
        ::getsockname(listener_, generic, &size) != 0) {
        const int because = errno;
        ::close(listener_);
        errno = because;
        fail("listen");
    }
    port_ = ntohs(address.sin_port);
    accepts_ = std::thread{[this] { accept_all(); }};
}

sized_origin::~sized_origin() {
    ::shutdown(listener_, SHUT_RDWR);  // wakes accept
    accepts_.join();
    ::close(listener_);
    {
        const std::lock_guard lock{guard_};
        for (const int connection : open_) {
            ::shutdown(connection, SHUT_RDWR);
        }
    }
    for (auto& one : serving_) {
        one.join();
    }
}

std::string sized_origin::authority() const {
    return "127.0.0.1:" + std::to_string(port_);
}

std::string sized_origin::path(std::uint64_t key, std::uint64_t size) {
    std::array<char, 64> text;
    const int length = std::snprintf(text.data(),
                                     text.size(),
                                     "/k/%010llu/%012llu",
                                     static_cast<unsigned long long>(key),
                                     static_cast<unsigned long long>(size));
    return {text.data(), static_cast<std::size_t>(length)};
}

void sized_origin::accept_all() {
    while (true) {
        const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (connection < 0) {
            if (errno == EINTR || errno == ECONNABORTED) {
                continue;
            }
            return;
        }
        const int on = 1;
        ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        const std::lock_guard lock{guard_};
        open_.push_back(connection);
        serving_.emplace_back([this, connection] { serve(connection); });
    }
}

void sized_origin::serve(int connection) {
    std::string in, head;
    std::vector<char> piece(64 << 10);
    bool goes_on = true;
    while (goes_on) {
        const auto end = in.find("\r\n\r\n");
        if (end == std::string::npos) {
            const auto got = ::recv(connection, piece.data(), piece.size(), 0);
            if (got > 0) {
                in.append(piece.data(), static_cast<std::size_t>(got));
            }
            goes_on = got > 0 || (got < 0 && errno == EINTR);
            continue;
        }
        const auto wanted = wanted_by(std::string_view{in}.substr(0, end));
        in.erase(0, end + 4);
        requests_.fetch_add(1);
        if (!wanted) {
            head = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
            goes_on = send_all(connection, head.data(), head.size());
            continue;
        }
        head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=31536000\r\nContent-Length: " +
               std::to_string(wanted->size) + "\r\n\r\n";
        goes_on = send_all(connection, head.data(), head.size(), wanted->size > 0 ? MSG_MORE : 0);
        for (std::uint64_t at = 0; goes_on && at < wanted->size;) {
            const auto size = static_cast<std::size_t>(
                std::min<std::uint64_t>(piece.size(), wanted->size - at));
            fill_body(wanted->key, at, {piece.data(), size});
            at += size;
            goes_on = send_all(connection, piece.data(), size, at < wanted->size ? MSG_MORE : 0);
        }
        bytes_.fetch_add(wanted->size);
    }
    {
        const std::lock_guard lock{guard_};
        open_.remove(connection);
    }
    ::close(connection);
}

}  // namespace reprise::tools
