#pragma once
// Tunnels: CONNECT, and what an origin's 101 makes of a connection (RFC 9110 7.8, 9.3.6).

#include "proxy/serve/exchange_state.hpp"

#include <string>
#include <string_view>

namespace reprise::proxy::serve {

class tunnel {
public:
    explicit tunnel(exchange_state& x) : x_{x} {}

    /// To where the request's target names.
    [[nodiscard]] awaitable<ended_or_next> connect();
    /// Over the connection that an origin has switched.
    [[nodiscard]] awaitable<ended_or_next> upgrade(answers::upgraded& what);

private:
    [[nodiscard]] std::optional<failure> judge_far_end(const tcp::endpoint& far) const;
    [[nodiscard]] awaitable<ended> send_head(std::string text, unsigned status);
    [[nodiscard]] awaitable<void> pass(net::byte_stream& far,
                                       const std::string& from_client,
                                       const std::string& from_far);

    exchange_state& x_;
};

}  // namespace reprise::proxy::serve
