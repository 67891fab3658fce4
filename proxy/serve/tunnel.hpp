#pragma once
// Tunnels: CONNECT, straight or through a parent, and what an origin's 101 makes of a connection
// (RFC 9110 7.8, 9.3.6). Once the client has its 200 or 101 the connection needs its exchange no
// more: what is left is a standing_tunnel.

#include "proxy/net/origin_pool.hpp"
#include "proxy/net/relay.hpp"
#include "proxy/serve/exchange_state.hpp"
#include "proxy/serve/sequel.hpp"

#include <string>
#include <string_view>
#include <variant>

namespace reprise::proxy::serve {

class tunnel {
public:
    /// @param why_not_opened  of a CONNECT; static text
    tunnel(exchange_state& x, std::string_view why_not_opened) : x_{x}, why_{why_not_opened} {}

    /// To where the request's target names.
    [[nodiscard]] awaitable<ended_or_next> connect();
    /// Over the connection that an origin has switched.
    [[nodiscard]] awaitable<ended_or_next> upgrade(answers::upgraded& what);

private:
    [[nodiscard]] awaitable<ended> send_head(std::string text, unsigned status);

    exchange_state& x_;
    std::string_view why_;
};

/// Bytes both ways, until both ends are done or one breaks off.
class standing_tunnel final : public sequel, private net::relaying::owner {
public:
    /// A new connection, or an origin's that it has switched.
    using far_end = std::variant<net::byte_stream, net::origin_lease>;

    /// @param from_far        what was read from there behind its answer
    /// @param why_not_opened  of a CONNECT; static text
    standing_tunnel(parted_request_ptr request,
                    far_end far,
                    std::string from_far,
                    std::string_view why_not_opened);

    void begin(sequel::owner& to) override;

private:
    [[nodiscard]] net::byte_stream& far_stream();
    /// The hosts with most bytes are told of (tunnel_hosts); of an upgrade's nothing is.
    void note_connect(std::uint64_t bytes) const;
    void on_relayed(const net::relay_result& how) override;
    void on_loop_gone() noexcept override { owner_->on_loop_gone(); }

    const parted_request_ptr request_;
    far_end far_;
    std::string from_far_;
    std::size_t early_ = 0;  // of the client's bytes, those that its stream has counted
    std::string_view why_;
    sequel::owner* owner_ = nullptr;
    net::relaying relaying_;
};

}  // namespace reprise::proxy::serve
