#pragma once
// The settings in force, as one immutable snapshot.
// Made at start and at each reload, then handed to every thread, which keeps its own reference:
// reading a setting costs no atomic operation, and a request sees one version from its first byte
// to its last.

#include "config/options.hpp"
#include "proxy/cache/fetch.hpp"
#include "proxy/http/freshness.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/http/storability.hpp"
#include "proxy/net/block_list.hpp"
#include "proxy/net/guard.hpp"
#include "proxy/net/kept_leaves.hpp"
#include "proxy/net/tls_context.hpp"
#include "proxy/net/tls_trust.hpp"
#include "proxy/net/user_list.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::thread {

/// What a rule of freshness.rules makes of the settings in general.
struct url_freshness {
    std::string url;  ///< the pattern
    http::freshness_rules rules;
    bool ignores_reload = false;
};

struct settings {
    std::uint64_t number = 0;  ///< no other settings' since the start, but for a guard made anew
    config::options options;
    std::shared_ptr<const net::destination_guard> guard;
    http::head_limits request_limits;
    http::head_limits response_limits;
    http::freshness_rules freshness;             ///< where no rule is for a URL
    std::vector<url_freshness> freshness_rules;  ///< as in options.freshness.rules
    http::storing_rules storing;
    cache::fetch_limits fetches;
    std::vector<net::tls_identity_ptr> identities;  ///< by listener; null: plain HTTP
    net::tls_trust_ptr trust;
    std::shared_ptr<net::kept_leaves> leaves;  ///< of hosts whose tunnels are opened; null: of none
    net::user_list_ptr users;                  ///< null: no client is asked who it is
    net::block_list_ptr blocked;               ///< null: no host is
};
using settings_ptr = std::shared_ptr<const settings>;

/// What of the settings lies in other files.
struct other_files {
    std::vector<net::tls_identity_ptr> identities;
    net::tls_trust_ptr trust;
    std::shared_ptr<net::kept_leaves> leaves;
    net::user_list_ptr users;
    net::block_list_ptr blocked;
};
/// @throws std::runtime_error naming the setting and the file: nothing of `options` may be used
[[nodiscard]] other_files read_other_files(const config::options& options);

/// The first rule that is for this URL, a key's text; null: none. O(rules), no allocation.
[[nodiscard]] const url_freshness* freshness_rule_for(const settings& now,
                                                      std::string_view url) noexcept;
/// What holds for it: that rule's, or the settings' in general.
[[nodiscard]] inline const http::freshness_rules& freshness_for(const settings& now,
                                                                std::string_view url) noexcept {
    const auto* rule = freshness_rule_for(now, url);
    return rule != nullptr ? rule->rules : now.freshness;
}

/// Asks the kernel for this machine's addresses; not for an event loop.
[[nodiscard]] settings_ptr make_settings(config::options options, other_files files);
/// With the files read here. @throws as read_other_files
[[nodiscard]] settings_ptr make_settings(config::options options);

}  // namespace reprise::proxy::thread
