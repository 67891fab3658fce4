#pragma once
// What the parts of a conversion share while it is under way.

#include "tools/from_squid/acls.hpp"
#include "tools/from_squid/notes.hpp"
#include "tools/from_squid/settings_text.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::from_squid {

struct draft {
    ordered_json settings = ordered_json::object();
    notes told;
    acl_table acls;

    void say(fate what, const statement& from, std::string why, std::string setting = "") {
        told.push_back({what, from.where, text_of(from), std::move(why), std::move(setting)});
    }
};

using statements = std::vector<const statement*>;

/// The log that the package has logrotate move (tools/packaging/debian/reprise.logrotate).
inline constexpr const char* rotated_log = "/var/log/reprise/access.log";

/// The word at `index`; empty where there are fewer.
[[nodiscard]] inline const std::string& word_at(const statement& from, std::size_t index) {
    static const std::string none;
    return index < from.words.size() ? from.words[index].text : none;
}

/// The value of a word "name=value" of this name; none: there is no such word.
[[nodiscard]] std::optional<std::string> option_of(const statement& from, std::string_view name);
[[nodiscard]] bool has_word(const statement& from, std::string_view text);

/// "8 MB", "64 KB" and the like from the word at `index`, as bytes.
[[nodiscard]] std::optional<std::uint64_t> bytes_at(const statement& from, std::size_t index);
/// "5 minutes", "30 seconds" and the like, as a setting's duration.
[[nodiscard]] std::optional<std::string> duration_at(const statement& from, std::size_t index);
/// The same of minutes.
[[nodiscard]] std::string minutes_text(std::uint64_t minutes);

/// Adds the listeners of http_port and https_port, and the peers of cache_peer.
void convert_listeners(draft& into, const statements& ports, const statements& peers);
void convert_peers(draft& into, const statements& peers);
/// The upstream of accelerators, which the first cache_peer with originserver names; empty: none does.
[[nodiscard]] std::string upstream_of(draft& into, const statements& peers);

/// forwarding.client_address of forwarded_for, unless a line of request_header_access takes the field
/// away, wherever that stands; and what is lost of such lines for other fields.
void convert_client_address(draft& into,
                            const statements& forwarded_for,
                            const statements& header_rules);

/// The statements of delay pools, by name, each in order.
struct delay_lines {
    statements pools, classes, access, parameters;
};
/// limits.client_rate of what they give one client, and what is lost of the rest.
void convert_delay_pools(draft& into, const delay_lines& lines);

/// freshness of refresh_pattern.
void convert_refresh(draft& into, const statements& patterns);

/// admission of `cache` and `no_cache`.
void convert_cache_rules(draft& into, const statements& rules);

/// The statements that say who is asked for what, in order.
struct ways_out_lines {
    statements always_direct, never_direct, prefer_direct, nonhierarchical_direct;
    statements peer_access, peer_domain, type_of_domain;  ///< of one peer each, by its name
    statements stoplist;                                  ///< hierarchy_stoplist
};
/// peering.never_direct, and what is lost of the rest where there are peers.
/// @pre convert_listeners and convert_peers are done
void convert_ways_out(draft& into, const ways_out_lines& lines, const statements& peers);

/// disk of cache_dir and maximum_object_size; the bounds of both stores as they may be.
/// @pre memory is as its directives have it
void convert_stores(draft& into, const statements& cache_dirs, const statements& largest);

/// forwarding.pseudonym: unique_hostname, or visible_hostname where there is none.
void convert_pseudonym(draft& into, const statements& unique, const statements& visible);
/// timeouts.client_head of request_timeout and request_start_timeout.
void convert_client_head(draft& into, const statements& head, const statements& start);
/// limits.head_size of request_header_max_size and reply_header_max_size.
void convert_head_size(draft& into, const statements& requests, const statements& replies);

}  // namespace reprise::from_squid
