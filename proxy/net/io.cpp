#include "proxy/net/io.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace reprise::proxy::net {

void prepare_socket(tcp_socket& socket) noexcept {
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.set_option(tcp::no_delay{true}, ignored);
}

std::uint64_t not_acknowledged(tcp_socket& socket) noexcept {
    int bytes = 0;
    const bool told = ::ioctl(socket.native_handle(), SIOCOUTQ, &bytes) == 0;
    return told && bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0;
}

void set_reset_on_close(tcp_socket& socket, bool on) noexcept {
    const ::linger how{on ? 1 : 0, 0};
    static_cast<void>(
        ::setsockopt(socket.native_handle(), SOL_SOCKET, SO_LINGER, &how, sizeof how));
}

std::size_t try_read(tcp_socket& socket, asio::mutable_buffer into, error_code& error) {
    const auto count = socket.read_some(into, error);
    if (error == asio::error::would_block || error == asio::error::try_again) {
        error.clear();
    }
    return count;
}

}  // namespace reprise::proxy::net
