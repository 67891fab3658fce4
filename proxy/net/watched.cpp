#include "proxy/net/watched.hpp"

#include <boost/asio/execution/context.hpp>
#include <boost/asio/query.hpp>

namespace reprise::proxy::net {

#if REPRISE_KNOWS_THE_REACTOR

tcp_socket accepted_socket(const executor& by,
                           const tcp& protocol,
                           int descriptor,
                           error_code& error) {
    namespace ops = asio::detail::socket_ops;
    error.clear();
    tcp_socket out{by};
    auto& made = detail::registered::of(out);
    made.socket_ = descriptor;
    // Not `possible_dup`: closing it is the end of its registration too.
    made.state_ = ops::stream_oriented | ops::user_set_non_blocking | ops::internal_non_blocking;
    made.protocol_ = protocol;
    return out;
}

void detail::begin_watching(tcp_socket& socket) {
    auto& made = registered::of(socket);
    if (!socket.is_open()) {
        return;
    }
    auto& io = asio::query(socket.get_executor(), asio::execution::context);
    auto& loop = asio::use_service<asio::detail::reactor>(io);
    if (loop.register_descriptor(made.socket_, made.reactor_data_) != 0) {
        loop.deregister_descriptor(made.socket_, made.reactor_data_, true);
        loop.cleanup_descriptor_data(made.reactor_data_);
    }
}

#else

tcp_socket accepted_socket(const executor& by,
                           const tcp& protocol,
                           int descriptor,
                           error_code& error) {
    tcp_socket out{by};
    out.assign(protocol, descriptor, error);
    if (!error) {
        error_code ignored;
        out.non_blocking(true, ignored);
    }
    return out;
}

#endif

}  // namespace reprise::proxy::net
