#pragma once
// Where a client's connection was logged in, and not its requests (http/connection_login.hpp). What it
// asks those origins for goes on connections that are its own: nobody else's request is ever answered on
// one of them, and nothing that came on one is anybody else's.

#include "proxy/net/origin_pool.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::serve {

/// Threads   its worker's.
class connection_logins {
public:
    /// A further origin takes the place of the one that was noted longest ago: the client is asked who it
    /// is there once more.
    static constexpr std::size_t most = 16;

    /// With it end the connections of `origins` that are its own.
    explicit connection_logins(const net::origin_pool& origins) : own_{origins} {}

    /// @throws std::bad_alloc
    void note(std::string_view host, std::uint16_t port);
    [[nodiscard]] bool has(std::string_view host, std::uint16_t port) const noexcept;
    /// origin_address::owner of its connections.
    [[nodiscard]] std::uint64_t owner() const noexcept { return own_.owner(); }

private:
    struct place {
        std::string host;
        std::uint16_t port = 0;
    };
    const net::owned_connections own_;
    std::vector<place> places_;  // the oldest first
};

}  // namespace reprise::proxy::serve
