#pragma once
// Tunnels: CONNECT, straight or through a parent, and what an origin's 101 makes of a connection
// (RFC 9110 7.8, 9.3.6).

#include "proxy/net/way_through.hpp"
#include "proxy/serve/exchange_state.hpp"

#include <string>
#include <string_view>

namespace reprise::proxy::serve {

class tunnel {
public:
    /// @param why_not_opened  of a CONNECT; static text
    tunnel(exchange_state& x, std::string_view why_not_opened) : x_{x}, why_{why_not_opened} {}

    /// To where the request's target names.
    [[nodiscard]] awaitable<ended_or_next> connect();
    /// The same for a client that has had its 200: what it said since is in its input.
    [[nodiscard]] awaitable<ended_or_next> connect_answered();
    /// Over the connection that an origin has switched.
    [[nodiscard]] awaitable<ended_or_next> upgrade(answers::upgraded& what);

private:
    /// To the target itself, or by the parents, where they are the only way out.
    [[nodiscard]] awaitable<attempt<net::passage>> reach_somehow();
    [[nodiscard]] awaitable<attempt<net::passage>> reach();
    [[nodiscard]] awaitable<attempt<net::passage>> reach_by_parents();
    [[nodiscard]] std::string via() const;
    [[nodiscard]] steady_time patience() const;
    [[nodiscard]] std::optional<failure> judge_far_end(const tcp::endpoint& far) const;
    [[nodiscard]] awaitable<ended> send_head(std::string text, unsigned status);
    [[nodiscard]] awaitable<std::uint64_t> pass(net::byte_stream& far,
                                       const std::string& from_client,
                                       const std::string& from_far);

    /// How many bytes went both ways.
    void note_over(std::uint64_t bytes) const;

    exchange_state& x_;
    std::string_view why_;
};

}  // namespace reprise::proxy::serve
