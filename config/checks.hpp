#pragma once
// What must hold between settings, beyond the bounds of each.
// A check speaks up only about members that were read without a mistake, so that one slip is
// reported once; and about a default only where the file cannot have meant it.

#include "config/options.hpp"
#include "config/table.hpp"

#include <string_view>
#include <vector>

namespace reprise::config {

namespace detail {
void check_shadowed(const std::vector<std::string_view>& patterns, const place& rules);
}  // namespace detail

/// "nth-hit" needs "hits", which no other policy has.
void check_hits(const admission_choice& choice, const given& members, const place& here);

/// An accelerator needs an upstream, a forward listener has none. An address that was wrong is put
/// aside, so that it is not taken for another listener's.
void check_listener(listener& into, const given& members, const place& here);

void check_disk(disk_options& into, const given& members, const place& here);
void check_memory(memory_options& into, const given& members, const place& here);
void check_limits(const limit_options& into, const given& members, const place& here);
void check_origins(const origin_options& into, const given& members, const place& here);
void check_dns(const dns_options& into, const given& members, const place& here);

/// A rule changes something, and its times do not contradict each other.
void check_freshness_rule(const freshness_rule& into, const given& members, const place& here);

/// No rule of `rules`, which have a `url` each, comes behind one that matches all that it does.
template <class Rule>
void check_shadowed(const std::vector<Rule>& rules, const given& members, const place& here) {
    if (members.is_sound("rules")) {
        std::vector<std::string_view> patterns;
        for (const auto& one : rules) {
            patterns.push_back(one.url);
        }
        detail::check_shadowed(patterns, here.member("rules"));
    }
}

/// No address is listened on twice, port 0 excepted; no rule is for URLs that no listener serves.
/// With a disk, settings of the store that are not written are others than without one.
void check_options(options& into, const given& members, const place& here);

}  // namespace reprise::config
