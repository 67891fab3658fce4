#pragma once
// The two certificates that stand above a leaf. The root is what clients trust, and its key signs once in
// years: it belongs on no machine that has a network. The intermediate's key is the proxy's, and name
// constraints (RFC 5280 4.2.1.10) keep it to the hosts that are listed: stolen, it can be those and
// no others. They are in the intermediate because not every client holds a root to its own.

#include "proxy/base/clock.hpp"
#include "proxy/net/pem_file.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace reprise::make_ca {

struct authority {
    proxy::net::certificate_ptr certificate;
    proxy::net::private_key_ptr key;  ///< P-256
};

inline constexpr std::chrono::days root_lifetime{3'652};

/// Signed by itself, for `root_lifetime` from `now`; it may sign intermediates that sign leaves.
/// @throws std::runtime_error, like all of this
[[nodiscard]] authority make_root(proxy::wall_time now);

/// Signed by `root`, for servers alone, and for no addresses at all. It outlives the root never.
/// @param hosts  as intercept.hosts holds them. A name constraint covers what lies below a name
/// too, so "a.test" permits x.a.test as well; what is opened is for the proxy to say.
/// @pre hosts is not empty
[[nodiscard]] authority make_intermediate(const authority& root,
                                          const std::vector<std::string>& hosts,
                                          std::chrono::days lifetime,
                                          proxy::wall_time now);

/// What `hosts` needs to be permitted, none twice: "a.test", "*.a.test" and "x.a.test" are one.
[[nodiscard]] std::vector<std::string> permitted_names(const std::vector<std::string>& hosts);

}  // namespace reprise::make_ca
