#pragma once
// Where requests may go: the guard against being used to reach what only this machine can reach.
// It judges the address about to be connected to, not the name, so that no DNS answer gets round
// it, and all forms in which that address may be spelt. Private networks are allowed: mirrors live
// there.

#include "config/options.hpp"
#include "proxy/base/failure.hpp"
#include "proxy/net/address.hpp"
#include "proxy/net/asio.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::net {

enum class destination_verdict : std::uint8_t {
    allowed,
    unspecified,
    loopback,
    link_local,
    multicast,
    broadcast,
    metadata,
    reserved,
    own_address,  ///< an address of this machine
    denied,       ///< access.deny_destinations
};
/// "a loopback address", "an address of this machine", and so on, for people.
[[nodiscard]] std::string_view to_string(destination_verdict verdict) noexcept;

/// The rules, in the order in which they decide:
/// 1. a configured upstream (`exempt`) may always be reached;
/// 2. access.deny_destinations refuse, also what the next rule would allow;
/// 3. access.allow_destinations allow;
/// 4. what kind_of or the list of this machine's addresses names is refused;
/// 5. everything else is allowed.
/// A rule with a host matches the name asked for, whatever it resolves to ("*.example.org" matches
/// subdomains only); a rule with a network matches the address. A deny rule matches any form of the
/// address. An allow rule that holds the address itself allows it; one that holds only an embedded
/// form lifts the refusal of that form alone.
///
/// Immutable: shared by all threads. The server builds a new one on reload and about once a minute
/// (addresses of this machine come and go) as make_guard(options.access) and hands it to each
/// thread's pool, which judges its idle connections by it before it uses one again.
class destination_guard {
public:
    destination_guard(const config::access_options& access,
                      std::span<const asio::ip::address> own_addresses);

    /// @param host_as_named  from the URL, in any case, without brackets, perhaps with a final dot
    /// O(rules + log own addresses), no allocation.
    [[nodiscard]] destination_verdict check(std::string_view host_as_named,
                                            const asio::ip::address& address,
                                            std::uint16_t port,
                                            bool exempt = false) const noexcept;

    /// Whether a connection to it ends on this machine. O(log own addresses).
    [[nodiscard]] bool is_here(const asio::ip::address& address) const noexcept;

private:
    std::vector<config::destination> allow_;
    std::vector<config::destination> deny_;
    std::vector<address_bytes> own_;  // sorted
};

/// destination_refused, with the address, what it is and the setting that decides.
[[nodiscard]] failure refusal_of(const tcp::endpoint& target, destination_verdict verdict);

/// What stands against a host that is an address by itself, in whatever spelling a recipient might
/// read one (read_numeric_host), before anybody is chosen to connect to it: where a parent does,
/// the address connected to is the parent's, and nobody judges the destination but us. None: it may
/// be reached, or is a name.
[[nodiscard]] std::optional<failure> judge_literal(const destination_guard& guard,
                                                   std::string_view host,
                                                   std::uint16_t port);

/// The addresses of this machine's interfaces, and their broadcast addresses (getifaddrs). Asks the
/// kernel, some tens of microseconds. None, with errno: it won't tell, as where descriptors have run out. A
/// guard that knows none of them would let clients reach this machine.
[[nodiscard]] std::optional<std::vector<asio::ip::address>> local_addresses();

/// A guard by these settings and the addresses this machine has now.
/// @throws std::runtime_error  the kernel won't tell which they are
[[nodiscard]] std::shared_ptr<const destination_guard> make_guard(
    const config::access_options& access);

/// access.request_ports and access.connect_ports.
[[nodiscard]] bool port_allowed(std::span<const config::port_range> allowed,
                                std::uint16_t port) noexcept;

}  // namespace reprise::proxy::net
