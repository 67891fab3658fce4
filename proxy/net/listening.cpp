#include "proxy/net/listening.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>

namespace reprise::proxy::net {

std::string to_text(const config::endpoint& where) {
    const bool v6 = where.host.find(':') != std::string::npos;
    return (v6 ? "[" + where.host + "]" : where.host) + ":" + std::to_string(where.port);
}

error_code why_not_listen(asio::io_context& io, const config::endpoint& where) {
    error_code error;
    const auto address = asio::ip::make_address(where.host, error);
    if (error) {
        return error;
    }
    const asio::ip::tcp::endpoint endpoint{address, where.port};
    asio::basic_socket_acceptor<asio::ip::tcp, executor> probe{io};
    probe.open(endpoint.protocol(), error);
    if (error) {
        return error;
    }
    probe.set_option(asio::socket_base::reuse_address{true}, error);
    if (address.is_v6()) {
        probe.set_option(asio::ip::v6_only{true}, error);
    }
    probe.bind(endpoint, error);
    return error;
}

}  // namespace reprise::proxy::net
