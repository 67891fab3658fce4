#include "proxy/net/proxy_header_wait.hpp"

#include "proxy/net/watched.hpp"

#include <string>

namespace reprise::proxy::net {

namespace {

// Until `into` is full. An error: the connection's, or its end.
awaitable<error_code> fill(tcp_socket& socket, asio::mutable_buffer into, const deadline& limit) {
    while (into.size() > 0) {
        error_code error;
        const auto got = socket.read_some(into, error);
        into += got;
        if (error == asio::error::would_block || error == asio::error::try_again) {
            const auto [over] = co_await socket.async_wait(tcp_socket::wait_read, use_tuple);
            error = over;
        }
        if (error || limit.expired()) {
            co_return error ? error : error_code{asio::error::timed_out};
        }
    }
    co_return error_code{};
}

}  // namespace

awaitable<attempt<fronted>> take_proxy_header(tcp_socket& socket,
                                              deadlines& timer,
                                              steady_time until) {
    static_cast<void>(watch(socket));
    deadline limit{timer, [&socket] {
                       error_code ignored;
                       socket.close(ignored);
                   }};
    limit.expire_at(until);
    std::string text(proxy_head_bytes, '\0');
    auto error = co_await fill(socket, asio::buffer(text), limit);
    std::optional<fronted> out;
    if (!error) {
        if (const auto rest = proxy_rest(text)) {
            text.resize(proxy_head_bytes + *rest);
            error = co_await fill(socket, asio::buffer(text) + proxy_head_bytes, limit);
            out = error ? std::nullopt : read_proxy_header(text);
        }
    }
    if (limit.expired()) {
        co_return failure{failure_code::request_timeout, "no PROXY header in time"};
    }
    if (error) {
        co_return failure{failure_code::bad_request, "no PROXY header: " + error.message()};
    }
    if (!out) {
        co_return failure{failure_code::bad_request, "no PROXY header of version 2 for TCP"};
    }
    co_return *out;
}

}  // namespace reprise::proxy::net
