#pragma once
// What a miss would have cost if siblings were asked by ICP (RFC 2186), which digests spare: a query to each
// and its reply.

#include <cstddef>
#include <cstdint>

namespace reprise::proxy::peer {

struct icp_cost {
    std::uint64_t messages = 0, bytes = 0;
};

/// A header of 20 bytes, and in a query 4 of the requester's address; the URL and its NUL in both. Each in a
/// datagram of its own: IPv4 and UDP take 28.
[[nodiscard]] constexpr icp_cost icp_cost_of(std::uint64_t siblings,
                                             std::size_t url_bytes) noexcept {
    constexpr std::uint64_t query = 28 + 20 + 4 + 1, reply = 28 + 20 + 1;
    return {.messages = 2 * siblings, .bytes = siblings * (query + reply + 2 * url_bytes)};
}

}  // namespace reprise::proxy::peer
