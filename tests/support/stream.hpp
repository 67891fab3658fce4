#pragma once
// One TCP connection on loopback, with a deadline on every call.
// Deliberately raw: it sends what it is given in the pieces it is given, and tells a connection
// that was closed from one that was reset, since to HTTP these say different things (RFC 9112 9.6).

#include "tests/support/waiting.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::tests {

enum class read_end {
    data,       ///< at least one byte was appended
    closed,     ///< the other side sent FIN
    reset,      ///< RST, or another error of the connection
    timed_out,  ///< nothing came in time
};
[[nodiscard]] std::string_view to_string(read_end end) noexcept;

/// Owns one socket. One thread at a time, but reset() and close_both_ways() may come from another.
class stream {
public:
    stream() = default;
    explicit stream(int fd) noexcept;
    stream(stream&& other) noexcept;
    stream& operator=(stream&& other) noexcept;
    stream(const stream&) = delete;
    stream& operator=(const stream&) = delete;
    ~stream();

    /// Connects to `to`:`port` from the address `from` (any of 127/8; "::1" needs both in IPv6).
    /// @throws std::runtime_error when that fails within patience
    [[nodiscard]] static stream connect(std::uint16_t port,
                                        const std::string& from = "127.0.0.1",
                                        const std::string& to = "127.0.0.1");

    [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }

    /// Sends all of it; false when the connection broke or the other side took too long to read.
    bool send(std::string_view bytes, std::chrono::milliseconds limit = patience);

    /// Sends until the other side has not read for `stalled`: how many bytes went out.
    std::size_t send_until_stalled(std::string_view bytes, std::chrono::milliseconds stalled);

    /// Appends what is there, at most `most` bytes, waiting for the first of them.
    [[nodiscard]] read_end read_some(std::string& into,
                                     std::chrono::milliseconds limit = patience,
                                     std::size_t most = 64 << 10);
    /// So many bytes at least; fewer where the other side has no more.
    [[nodiscard]] std::string read_at_least(std::size_t bytes);

    /// True once the connection broke, or the other side has closed it and all it sent was read.
    [[nodiscard]] bool has_ended() const noexcept;

    /// Nothing more will be sent (FIN); reading goes on.
    void finish_sending() noexcept;
    /// Ends the connection with RST.
    void reset() noexcept;
    /// Wakes whoever reads or writes; the socket itself stays until destruction.
    void close_both_ways() noexcept;
    void close() noexcept;
    /// The socket, its receiver's to close from now on.
    [[nodiscard]] int release() noexcept;

    /// Makes the kernel's receive buffer small, so that the other side feels back-pressure early.
    void shrink_receive_buffer(int bytes) noexcept;

private:
    int fd_ = -1;
};

/// A listening socket; its port is picked by the system unless one is given.
class acceptor {
public:
    /// @throws std::runtime_error
    explicit acceptor(const std::string& address = "127.0.0.1", std::uint16_t port = 0);
    acceptor(const acceptor&) = delete;
    acceptor& operator=(const acceptor&) = delete;
    ~acceptor();

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

    /// From now on connections are refused, and accept() gives none: one that waits returns. On any
    /// thread.
    void stop() noexcept;

    /// The next connection; not open when none came in time.
    [[nodiscard]] stream accept(std::chrono::milliseconds limit);

private:
    int fd_ = -1;
    std::uint16_t port_ = 0;
};

/// A port of 127.0.0.1 where connections are refused for as long as this lives: bound, so that
/// nobody else is given it, and not listening.
class closed_port {
public:
    /// @throws std::runtime_error
    closed_port();
    closed_port(const closed_port&) = delete;
    closed_port& operator=(const closed_port&) = delete;
    ~closed_port();

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

private:
    int fd_ = -1;
    std::uint16_t port_ = 0;
};

}  // namespace reprise::tests
