#include "proxy/net/accepted.hpp"

#include "proxy/net/watched.hpp"

#include <cerrno>
#include <sys/socket.h>
#include <unistd.h>

namespace reprise::proxy::net {

std::optional<accepted> accept_now(tcp_socket& by, error_code& error) {
    error.clear();
    tcp::endpoint from;
    auto size = static_cast<::socklen_t>(from.capacity());
    int descriptor = -1;
    do {
        descriptor = ::accept4(
            by.native_handle(), from.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK) {
            error.assign(errno, boost::system::system_category());
        }
        return std::nullopt;
    }
    from.resize(size);
    auto socket = accepted_socket(by.get_executor(), from.protocol(), descriptor, error);
    if (error) {
        ::close(descriptor);
        return std::nullopt;
    }
    return accepted{std::move(socket), from};
}

}  // namespace reprise::proxy::net
