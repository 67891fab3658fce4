#pragma once
// Where the two tiers are kept: PEM files, keys for their owner alone, and nothing written over
// unless that is asked for.

#include "config/options.hpp"
#include "proxy/base/clock.hpp"

#include <chrono>
#include <string>

namespace reprise::make_ca {

struct written {
    std::string certificate, key;  ///< paths
};

/// A root as DIRECTORY/root.pem and root.key; the directory is made, for its owner alone.
/// Errors: std::runtime_error, as of all of this: what is there already, or cannot be written. Of
/// two files either both are written or none.
[[nodiscard]] written write_root(const std::string& directory, proxy::wall_time now);

struct wishes {
    std::string root;  ///< a directory that write_root has filled
    std::string out;   ///< for ca.pem and ca.key; empty: where the settings say
    std::chrono::days lifetime{2 * 365};
    /// What is there is replaced, the key before the certificate, each whole and with the owner, group and
    /// mode of the one before: whoever reads between the two finds that they do not belong together.
    bool renews = false;
};
/// An intermediate for intercept.hosts; behind it in its file stands the root's certificate.
[[nodiscard]] written write_intermediate(const config::intercept_options& for_settings,
                                         const wishes& wanted,
                                         proxy::wall_time now);

}  // namespace reprise::make_ca
