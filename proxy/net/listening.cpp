#include "proxy/net/listening.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>

namespace reprise::proxy::net {

std::string to_text(const config::endpoint& where) {
    const bool v6 = where.host.find(':') != std::string::npos;
    return (v6 ? "[" + where.host + "]" : where.host) + ":" + std::to_string(where.port);
}

bool overlap(const config::endpoint& one, const config::endpoint& other) {
    const auto is_any = [](const config::endpoint& each) {
        error_code no_address;
        const auto at = asio::ip::make_address(each.host, no_address);
        return !no_address && at.is_unspecified();
    };
    return one.port == other.port && (one.host == other.host || is_any(one) || is_any(other));
}

error_code why_not_listen(asio::io_context& io, const config::endpoint& where, bool for_both) {
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
        probe.set_option(asio::ip::v6_only{!for_both}, error);
    }
    probe.bind(endpoint, error);
    return error;
}

}  // namespace reprise::proxy::net
