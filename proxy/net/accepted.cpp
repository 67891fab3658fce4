#include "proxy/net/accepted.hpp"

#include <boost/version.hpp>

#include <cerrno>
#include <sys/socket.h>
#include <unistd.h>

namespace reprise::proxy::net {

namespace {
#if BOOST_VERSION == 108100 && defined(BOOST_ASIO_HAS_EPOLL)
// What Asio can't know of a descriptor that it is given: it is non-blocking, and nobody else has
// it, so that closing it ends its registration too. (No public part of Asio.)
struct known : tcp_socket {
    static void note(tcp_socket& socket) {
        namespace ops = asio::detail::socket_ops;
        auto& state = (socket.*(&known::impl_)).get_implementation().state_;
        state |= ops::user_set_non_blocking | ops::internal_non_blocking;
        state &= static_cast<ops::state_type>(~ops::possible_dup);
    }
};
void note_known(tcp_socket& socket) {
    known::note(socket);
}
#else
void note_known(tcp_socket& socket) {
    error_code ignored;
    socket.non_blocking(true, ignored);
}
#endif
}  // namespace

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
    tcp_socket socket{by.get_executor()};
    try {
        socket.assign(from.protocol(), descriptor, error);
    } catch (...) {
        ::close(descriptor);
        throw;
    }
    if (error) {
        ::close(descriptor);
        return std::nullopt;
    }
    note_known(socket);
    return accepted{std::move(socket), from};
}

}  // namespace reprise::proxy::net
