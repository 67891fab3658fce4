#include "proxy/net/io.hpp"

#include "proxy/net/pace.hpp"

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

// What ends a wait may find one that is over already, and nothing would end the next: so the time is
// asked for before each.
awaitable<bool> end_sending(byte_stream& stream, const pace_guard& owed) {
    error_code error;
    while (!stream.try_end(error)) {
        if (!error && !owed.expired()) {
            const auto [waited] = co_await stream.wait_writable(use_tuple);
            error = waited;
        }
        if (error || owed.expired()) {
            co_return false;
        }
    }
    co_return true;
}

}  // namespace reprise::proxy::net
