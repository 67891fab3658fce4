#pragma once
// The load that wrk can't make: TLS, and requests inside a tunnel (CONNECT), or plain, on kept
// connections or on a new one for each. As fast as answers come.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace reprise::bench {

struct tunnel_load {
    std::uint16_t port = 0;
    /// "host:port" of the CONNECT that the n-th connection begins with; none: it begins without.
    std::function<std::string(std::uint64_t)> connect{};
    /// TLS, inside the tunnel if there is one. The host is named by SNI; its certificate is not
    /// looked at, no session is resumed.
    bool tls = false;
    /// The whole of the n-th request; none: a connection ends when it is set up.
    std::function<std::string(std::uint64_t)> request{};
    std::size_t body = 1024;  ///< of each answer
    bool closes = false;      ///< a new connection for each request
    std::size_t connections = 64;
    std::uint64_t count = UINT64_MAX;  ///< requests, or connections without one
    double seconds = 1e9;
};

/// How many requests were answered by 200 and a whole body, or how many connections were set up.
/// @throws std::runtime_error when one was answered otherwise, or nothing comes for ten seconds
[[nodiscard]] std::uint64_t run_tunnel_load(const tunnel_load& plan);

}  // namespace reprise::bench
