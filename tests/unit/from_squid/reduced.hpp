#pragma once
// A chain of http_access as the translator reduces it.

#include "tools/from_squid/access.hpp"

#include <optional>
#include <string>
#include <vector>

namespace reprise::from_squid {

struct reduced {
    reduced_access access;
    notes told;

    [[nodiscard]] std::vector<std::string> clients() const { return as_settings(access.clients); }
    [[nodiscard]] std::size_t count(fate what) const {
        std::size_t out = 0;
        for (const auto& each : told) {
            out += each.what == what ? 1 : 0;
        }
        return out;
    }
};

/// With a file "empty" that lists nothing, as a list of hosts may be.
inline reduced of(const std::string& text, bool has_users = false) {
    const file_source files{[&](const std::string& path) -> std::optional<std::string> {
                                return path == "main"    ? std::optional{text}
                                       : path == "empty" ? std::optional{std::string{"# none\n"}}
                                                         : std::nullopt;
                            },
                            [](const std::string&) { return std::vector<std::string>{}; }};
    const auto conf = read_squid_conf("main", files);
    acl_table acls;
    std::vector<const statement*> rules;
    for (const auto& each : conf.statements) {
        if (each.name() == "acl") {
            acls.add(each, files);
        } else {
            rules.push_back(&each);
        }
    }
    reduced out;
    out.access = reduce(rules, acls, has_users, out.told);
    return out;
}

}  // namespace reprise::from_squid
