#pragma once
// Sockets on loopback, as the bench's loops use them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::bench {

/// A descriptor that is closed with its owner.
class socket_handle {
public:
    socket_handle() = default;
    explicit socket_handle(int fd) : fd_{fd} {}
    socket_handle(socket_handle&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
    socket_handle& operator=(socket_handle&& other) noexcept;
    ~socket_handle() { close(); }
    [[nodiscard]] int get() const noexcept { return fd_; }
    void close() noexcept;

private:
    int fd_ = -1;
};

struct listening {
    socket_handle socket;
    std::uint16_t port = 0;
};

/// Non-blocking, on 127.0.0.1 and a port that the system picks. @throws std::runtime_error
[[nodiscard]] listening listen_anywhere();

/// Blocking, with deadlines of ten seconds for each send and receive. @throws std::runtime_error
/// @param from  0, or the client's own address: 127.0.1.0 and so much
[[nodiscard]] socket_handle connect_to(std::uint16_t port, std::uint32_t from = 0);

/// @throws std::runtime_error when not all of it could be sent
void send_all(int fd, std::string_view bytes);

/// Different ports that were free a moment ago, for what can't be told to pick one.
[[nodiscard]] std::vector<std::uint16_t> free_ports(std::size_t count);

}  // namespace reprise::bench
