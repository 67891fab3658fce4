// Who is asked for what: always_direct, never_direct and what restricts one cache_peer.
// Ours asks a parent for every http URL that no sibling has, whatever the request, with its cookies and its
// Authorization; a sibling, without these, for what its digest lists; an upstream for all that comes to its
// listener. That can't be bound to some requests. So what Squid kept from a peer is told to it here, and
// said to be (fate::laxer); where there is no peer these lines mean nothing, here as there.

#include "tools/from_squid/draft.hpp"
#include "tools/from_squid/rule_chains.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace reprise::from_squid {

namespace {

constexpr const char* setting_of_peers = "peers";

// Whom a cache_peer is here.
enum class role { nobody, upstream, parent, sibling };

std::string access_name_of(const statement& peer) {
    return lower_case(option_of(peer, "name").value_or(word_at(peer, 1)));
}

class ways_out {
public:
    ways_out(draft& into, const statements& peers) : into_{into} {
        const auto& listeners = into.settings["listeners"];
        // The first originserver is the upstream of all accelerators.
        bool has_upstream = std::none_of(
            listeners.begin(), listeners.end(), [](const ordered_json& one) {
                return one.value("mode", "") == "accelerator";
            });
        for (const auto* each : peers) {
            auto as = role::nobody;
            if (has_word(*each, "originserver")) {
                as = has_upstream ? role::nobody : role::upstream;
                has_upstream = true;
            } else if (word_at(*each, 2) == "parent") {
                as = role::parent;
            } else if (word_at(*each, 2) == "sibling") {
                as = role::sibling;
            }
            peers_.push_back({access_name_of(*each), as, each});
        }
    }

    void take(const ways_out_lines& lines) {
        take_never_direct(lines.never_direct);
        take_always_direct(lines.always_direct);
        take_preference(lines.prefer_direct, lines.nonhierarchical_direct);
        for (const auto& each : by_name(lines.peer_access)) {
            take_peer_access(each);
        }
        for (const auto* each : lines.peer_domain) {
            take_peer_domain(*each);
        }
        for (const auto* each : lines.type_of_domain) {
            take_type_of_domain(*each);
        }
        if (has(role::parent) || has(role::sibling)) {
            for (const auto* each : lines.stoplist) {
                into_.say(fate::laxer,
                          *each,
                          "peers are asked for these URLs too; Squid 5 takes no notice of the line",
                          setting_of_peers);
            }
        }
    }

private:
    struct known_peer {
        std::string name;
        role as;
        const statement* from;
    };

    // The first of this role; null: there is none.
    [[nodiscard]] const statement* first(role what) const {
        const auto found = std::find_if(
            peers_.begin(), peers_.end(), [&](const known_peer& one) { return one.as == what; });
        return found == peers_.end() ? nullptr : found->from;
    }
    [[nodiscard]] bool has(role what) const { return first(what) != nullptr; }

    [[nodiscard]] role role_of(const std::string& name) const {
        const auto found = std::find_if(peers_.begin(), peers_.end(), [&](const known_peer& one) {
            return one.name == lower_case(name);
        });
        return found == peers_.end() ? role::nobody : found->as;
    }

    // Without those that are for CONNECT alone, while tunnels lead to no parent.
    void drop_tunnels(verdict_lines& lines, std::size_t at) const {
        if (!never_direct_) {
            std::erase_if(lines.lines, [&](const statement* each) {
                return is_of_connect(*each, at, into_.acls);
            });
        }
    }

    void take_never_direct(const statements& rules) {
        const auto allowed = lines_with("allow", rules, 1, into_.acls);
        const bool by_line = !allowed.lines.empty() && is_for_all(*allowed.lines.back(), 1);
        never_direct_ = by_line || allowed.opposite != nullptr;
        if (!never_direct_) {
            for (const auto* each : allowed.lines) {
                into_.say(fate::laxer,
                          *each,
                          "holds for all requests or for none: here for none",
                          "peering");
            }
            return;
        }
        into_.settings["peering"]["never_direct"] = true;
        if (!has(role::parent)) {
            return;  // the setting is refused, and said to be
        }
        for (const auto* each : lines_with("deny", rules, 1, into_.acls).lines) {
            into_.say(fate::laxer,
                      *each,
                      "holds for all requests or for none: a parent is asked for these too, and "
                      "never their origin",
                      "peering");
        }
    }

    void take_always_direct(const statements& rules) {
        if (!has(role::parent) && !has(role::sibling) && !has(role::upstream)) {
            return;
        }
        auto direct = lines_with("allow", rules, 1, into_.acls);
        drop_tunnels(direct, 1);
        say_lost(into_,
                 direct,
                 "peers are asked for these too, whom Squid tells nothing of them",
                 setting_of_peers);
    }

    // By default Squid asks a parent for what may be stored, and the origin for the rest.
    void take_preference(const statements& prefer_direct, const statements& nonhierarchical) {
        if (!has(role::parent) || never_direct_) {
            return;
        }
        for (const auto* each : prefer_direct) {
            if (word_at(*each, 1) == "on") {
                into_.say(fate::laxer,
                          *each,
                          "a parent is asked before the origin, not when that has failed",
                          setting_of_peers);
            }
        }
        if (!nonhierarchical.empty() && word_at(*nonhierarchical.back(), 1) == "off") {
            return;
        }
        into_.say(
            fate::laxer,
            *first(role::parent),
            "parents are asked for what can't be cached too (POST, say): for that Squid asks the "
            "origin itself, unless nonhierarchical_direct is off",
            setting_of_peers);
    }

    void take_peer_access(const statements& rules) {
        const auto peer = role_of(word_at(*rules.front(), 1));
        auto denied = lines_with("deny", rules, 2, into_.acls);
        if (peer == role::nobody) {
            for (const auto* each : rules) {
                into_.say(fate::left_out, *each, "no peer here has this name", setting_of_peers);
            }
            return;
        }
        drop_tunnels(denied, 2);
        say_lost(into_, denied, whatever_is_asked(peer), where_of(peer));
    }

    // Squid 5 takes no notice of it; one that did asked this peer for these domains alone.
    void take_peer_domain(const statement& line) {
        const auto peer = role_of(word_at(line, 1));
        if (peer == role::nobody) {
            into_.say(fate::left_out, line, "no peer here has this name", setting_of_peers);
        } else {
            into_.say(fate::laxer, line, whatever_is_asked(peer), where_of(peer));
        }
    }

    void take_type_of_domain(const statement& line) {
        const auto peer = role_of(word_at(line, 1));
        if (peer == role::parent && word_at(line, 2) == "sibling") {
            into_.say(fate::laxer, line, whatever_is_asked(peer), setting_of_peers);
        } else {
            into_.say(fate::left_out, line, "a peer is the same for all domains", setting_of_peers);
        }
    }

    static std::string whatever_is_asked(role peer) {
        switch (peer) {
        case role::parent: return "a parent is asked for whatever no sibling has, for this too";
        case role::sibling: return "a sibling is asked for whatever its digest lists, for this too";
        case role::upstream:
        case role::nobody: break;
        }
        return "an upstream is asked for whatever host a client names, for this too";
    }

    static const char* where_of(role peer) {
        return peer == role::upstream ? "listeners" : setting_of_peers;
    }

    draft& into_;
    std::vector<known_peer> peers_;
    bool never_direct_ = false;
};

}  // namespace

void convert_ways_out(draft& into, const ways_out_lines& lines, const statements& peers) {
    ways_out{into, peers}.take(lines);
}

}  // namespace reprise::from_squid
