#pragma once
// Whose a request is that came from a front (access.trusted_fronts): X-Forwarded-For read from its
// right end. What stands there was written by whoever sent the request to us, what stands to the left
// of it by whoever sent it there: so it is followed for as long as those who wrote it are trusted,
// and whatever a client wrote itself lies behind the first that is not.

#include "config/options.hpp"
#include "proxy/net/address.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace reprise::proxy::net {

struct forwarded_client {
    address_bytes at{};
    std::uint16_t port = 0;  ///< 0: not known
};

/// One member of the field: an IPv4 address, or an IPv6 address with or without brackets; behind the
/// former, and behind brackets, perhaps a port. None: anything else ("unknown", a name, an identifier
/// of RFC 7239 6.3, a scope). Total.
/// @throws std::bad_alloc
[[nodiscard]] std::optional<forwarded_client> read_forwarded_client(std::string_view member);

/// Follows the field of one request. It ends at the first address that is no trusted front's: that is
/// the client. It also ends at a member that can't be read, at an address that no client can have
/// towards this machine (loopback, unspecified, multicast), and behind most_forwards members: then the
/// client is the last address before it, which is a front's, or the connection's own. An address of
/// loopback is never taken, so nobody becomes this machine by a front's word.
///
/// Cost      O(length of what is followed, and networks for each front in it).
class forwarded_path {
public:
    /// Far more than there are proxies in a row; whoever sends more wants it to take long.
    static constexpr unsigned most_forwards = 32;

    /// @param trusted    outlives it
    /// @param connected  a trusted front, at the other end of the connection
    forwarded_path(const std::vector<config::network>& trusted, forwarded_client connected) noexcept
        : trusted_{trusted},
          client_{connected} {}

    /// The value of a field line; a message's last line first. False: nothing before it counts.
    /// @throws std::bad_alloc
    bool follow(std::string_view value);

    [[nodiscard]] const forwarded_client& client() const noexcept { return client_; }

private:
    [[nodiscard]] bool step(std::string_view member);

    const std::vector<config::network>& trusted_;
    forwarded_client client_;
    unsigned members_ = 0;
    bool ended_ = false;
};

}  // namespace reprise::proxy::net
