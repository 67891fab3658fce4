#pragma once
// A chain of http_access rules as what our settings can say of who may do what.
// Squid's first matching rule decides, over any conditions; ours are lists that hold for everybody:
// who is served, which ports, which destinations not. So the chain is walked with the set of clients
// that are not decided yet, and with that for PURGE beside it. Where ours can't say what a rule does,
// the result is stricter, and says so; only a deny with a condition that ours don't know at all, or by a
// list of which something could not be read, leaves more allowed (fate::laxer).

#include "tools/from_squid/acls.hpp"
#include "tools/from_squid/notes.hpp"

#include <string>
#include <vector>

namespace reprise::from_squid {

struct reduced_access {
    network_set clients;        ///< may be served
    network_set purge_clients;  ///< may send PURGE
    port_set request_ports = every_port();
    port_set connect_ports = every_port();
    bool ports_bounded = false;    ///< a rule said something of request_ports
    bool connect_bounded = false;  ///< a rule said something of connect_ports
    std::vector<std::string> deny_destinations;
    /// Squid asks name servers too whether a request is for what is denied: where a name leads, or which
    /// name an address has.
    bool names_looked_up = false, addresses_looked_up = false;
    bool needs_users = false;  ///< who is served must show a name and password
};

/// @param rules       the http_access statements, in order
/// @param has_users   access.users_file can be set, so that rules with proxy_auth have a meaning
[[nodiscard]] reduced_access reduce(const std::vector<const statement*>& rules,
                                    const acl_table& acls,
                                    bool has_users,
                                    notes& told);

}  // namespace reprise::from_squid
