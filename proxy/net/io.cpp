#include "proxy/net/io.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

namespace reprise::proxy::net {

void prepare_socket(tcp_socket& socket) noexcept {
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.set_option(tcp::no_delay{true}, ignored);
}

void prepare_listener(int descriptor) noexcept {
    const int on = 1;
    static_cast<void>(::setsockopt(descriptor, SOL_TCP, TCP_NODELAY, &on, sizeof on));
    static_cast<void>(::setsockopt(descriptor, SOL_TCP, TCP_INQ, &on, sizeof on));
}

awaitable<bool> end_sending(byte_stream& stream) {
    error_code error;
    while (!stream.try_end(error)) {
        if (!error) {
            const auto [waited] = co_await stream.wait_writable(use_tuple);
            error = waited;
        }
        if (error) {
            co_return false;
        }
    }
    co_return true;
}

}  // namespace reprise::proxy::net
