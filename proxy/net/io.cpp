#include "proxy/net/io.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>

namespace reprise::proxy {

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

std::size_t try_read(tcp_socket& socket, net::mutable_buffer into, error_code& error) {
    const auto count = socket.read_some(into, error);
    if (error == net::error::would_block || error == net::error::try_again) {
        error.clear();
    }
    return count;
}

}  // namespace reprise::proxy
