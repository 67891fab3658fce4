#pragma once
// A connection enters its loop with the first wait for it, and not when it is accepted. One whose
// request is there already, and which closes behind the answer, is never waited for: the loop is told
// nothing of it (epoll_ctl, and what the kernel makes for a watched descriptor and undoes at its end).
//
// Asio registers a socket when it is opened or assigned. One that has a descriptor and is not
// registered reads, writes, closes and cancels as ever; only what waits wants it watched. (No public
// part of Asio: with another Boost than Debian 12's a socket is watched from its beginning.)

#include "proxy/net/asio.hpp"

#include <boost/version.hpp>

#if BOOST_VERSION == 108100 && defined(BOOST_ASIO_HAS_EPOLL)
#define REPRISE_KNOWS_THE_REACTOR 1
#include <boost/asio/detail/reactor.hpp>
#else
#define REPRISE_KNOWS_THE_REACTOR 0
#endif

namespace reprise::proxy::net {

/// A socket of a descriptor that accept4 has just given: non-blocking, and nobody else's. Not watched
/// yet, if that can be. `error`: it is nobody's, and still open.
[[nodiscard]] tcp_socket accepted_socket(const executor& by,
                                         const tcp& protocol,
                                         int descriptor,
                                         error_code& error);

#if REPRISE_KNOWS_THE_REACTOR

namespace detail {
struct registered : tcp_socket {
    static auto& of(tcp_socket& socket) noexcept {
        return (socket.*(&registered::impl_)).get_implementation();
    }
};
/// @throws std::bad_alloc
void begin_watching(tcp_socket& socket);
}  // namespace detail

/// Before each wait: has the loop watch it, if it does not yet. True: from now on; what has come
/// before will be told too. Where the system refuses it the wait ends with an error.
/// @throws std::bad_alloc
inline bool watch(tcp_socket& socket) {
    if (detail::registered::of(socket).reactor_data_ != nullptr) [[likely]] {
        return false;
    }
    detail::begin_watching(socket);
    return true;
}

#else

inline bool watch(tcp_socket& /*socket*/) noexcept {
    return false;
}

#endif

}  // namespace reprise::proxy::net
