#include "proxy/net/io.hpp"

namespace reprise::proxy {

void prepare_socket(tcp_socket& socket) noexcept {
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.set_option(tcp::no_delay{true}, ignored);
}

std::size_t try_read(tcp_socket& socket, net::mutable_buffer into, error_code& error) {
    const auto count = socket.read_some(into, error);
    if (error == net::error::would_block || error == net::error::try_again) {
        error.clear();
    }
    return count;
}

}  // namespace reprise::proxy
