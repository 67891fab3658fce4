// cache_peer: whom else is asked. One with originserver is the upstream of the accelerators.

#include "tools/from_squid/draft.hpp"

#include <algorithm>
#include <iterator>
#include <set>

namespace reprise::from_squid {

namespace {

// What a cache_peer is here, one bit each, so that a row below can be for several.
constexpr unsigned an_upstream = 1, a_parent = 2, a_sibling = 4;
constexpr unsigned any_peer = an_upstream | a_parent | a_sibling;

struct peer_option {
    std::string_view name;
    unsigned of;  // what it is an option of
    fate what;
    std::string_view why;  // empty: it is said otherwise here, or is of what is not done here
};

constexpr std::string_view by_hash = "parents share URLs by their hash";
constexpr std::string_view one_trust = "authorities are named for all of TLS: see origins.ca_file";
constexpr std::string_view as_ever = "certificates are always checked, chain and name";
constexpr std::string_view revoked = "revocations are not read: see origins.crl_file";
constexpr std::string_view no_certificate = "no certificate of ours is shown";
constexpr std::string_view name_of_url = "its certificate must be for the host that is written";

constexpr peer_option peer_options[]{
    {"auth-no-keytab", any_peer, fate::changed, ""},  // beside login=
    {"background-ping", any_peer, fate::changed, ""},
    {"basetime", any_peer, fate::changed, ""},  // beside weighted-round-robin
    {"carp", a_parent, fate::approximated, by_hash},
    {"carp", an_upstream, fate::changed, ""},
    {"carp-key", any_peer, fate::changed, ""},  // beside carp
    {"closest-only", any_peer, fate::changed, ""},
    {"connect-timeout", any_peer, fate::left_out, "see timeouts.origin_connect"},
    {"connection-auth", any_peer, fate::changed, ""},
    {"default", a_parent, fate::approximated, "a parent is asked for whatever no sibling has"},
    {"default", an_upstream, fate::changed, ""},
    // Which of the sites behind the upstream is asked was not the client's to say.
    {"forceddomain",
     an_upstream,
     fate::laxer,
     "the upstream is asked for the host that a client names"},
    {"htcp", any_peer, fate::changed, ""},
    {"max-conn", any_peer, fate::left_out, "see origins.connections"},
    {"name", any_peer, fate::changed, ""},
    {"no-digest", any_peer, fate::changed, ""},
    {"no-netdb-exchange", any_peer, fate::changed, ""},
    {"no-query", any_peer, fate::changed, ""},
    {"no-tproxy", any_peer, fate::changed, ""},
    {"originserver", any_peer, fate::changed, ""},
    {"proxy-only", an_upstream | a_parent, fate::laxer, "what comes by it is stored"},
    {"proxy-only", a_sibling, fate::changed, ""},
    {"round-robin", a_parent, fate::approximated, by_hash},
    {"round-robin", an_upstream, fate::changed, ""},
    {"sourcehash", a_parent, fate::approximated, by_hash},
    {"sourcehash", an_upstream, fate::changed, ""},
    {"ssl", any_peer, fate::changed, ""},
    {"sslcafile", any_peer, fate::left_out, one_trust},
    {"sslcapath", any_peer, fate::left_out, one_trust},
    {"sslcert", any_peer, fate::left_out, no_certificate},
    {"sslcrlfile", any_peer, fate::laxer, revoked},
    {"ssldomain", any_peer, fate::left_out, name_of_url},
    {"sslflags", any_peer, fate::left_out, as_ever},
    {"sslkey", any_peer, fate::left_out, no_certificate},
    {"tls", any_peer, fate::changed, ""},
    {"tls-cafile", any_peer, fate::left_out, one_trust},
    {"tls-capath", any_peer, fate::left_out, one_trust},
    {"tls-cert", any_peer, fate::left_out, no_certificate},
    {"tls-crlfile", any_peer, fate::laxer, revoked},
    {"tls-default-ca", any_peer, fate::changed, ""},
    {"tls-domain", any_peer, fate::left_out, name_of_url},
    {"tls-flags", any_peer, fate::left_out, as_ever},
    {"tls-key", any_peer, fate::left_out, no_certificate},
    {"userhash", a_parent, fate::approximated, by_hash},
    {"userhash", an_upstream, fate::changed, ""},
    {"weight", a_parent, fate::approximated, "parents share URLs by their hash, evenly"},
    {"weight", an_upstream, fate::changed, ""},
    {"weighted-round-robin", a_parent, fate::approximated, by_hash},
    {"weighted-round-robin", an_upstream, fate::changed, ""},
};

// Where a login comes from is the value's to say: from the line itself, or from what clients show.
void take_login(
    draft& into, const statement& from, unsigned of, std::string_view value, const char* at) {
    const bool from_clients = value == "PASS" || value == "PASSTHRU";
    if (of == an_upstream && from_clients) {
        return;  // their Authorization goes on in any case
    }
    if (of == an_upstream) {
        into.say(fate::left_out, from, "login: no name and password of ours is shown to it", at);
    } else if (from_clients) {
        into.say(fate::left_out, from, "login: what clients show is not handed on to a peer", at);
    } else if (of == a_parent) {
        into.say(fate::left_out,
                 from,
                 "login: write user:password into a file, and its name as credentials_file",
                 at);
    } else {
        into.say(fate::left_out, from, "login: a sibling is shown no password", at);
    }
}

// A note for each option that is lost. Of its value no note speaks: it may be a secret.
void take_options(draft& into, const statement& from, unsigned of, const char* at) {
    for (std::size_t i = 5; i < from.words.size(); ++i) {
        const std::string_view text = from.words[i].text;
        const auto name = text.substr(0, text.find('='));
        const auto value = text.substr(std::min(name.size() + 1, text.size()));
        if (name == "login") {
            take_login(into, from, of, value, at);
            continue;
        }
        if (text == "tls-default-ca=off" || text == "tls-no-default-ca" ||
            value.find("NO_DEFAULT_CA") != value.npos) {
            into.say(fate::laxer,
                     from,
                     std::string{name} + ": the system's authorities are trusted in any case",
                     at);
            continue;
        }
        const auto* found = std::find_if(
            std::begin(peer_options), std::end(peer_options), [&](const peer_option& one) {
                return one.name == name && (one.of & of) != 0;
            });
        if (found == std::end(peer_options)) {
            into.say(fate::left_out, from, std::string{name} + " has no counterpart", at);
        } else if (!found->why.empty()) {
            into.say(found->what, from, std::string{name} + ": " + std::string{found->why}, at);
        }
    }
}

// As any option of TLS has it, "tls-cafile=" as well as "tls" alone.
bool has_tls(const statement& from) {
    const auto first = from.words.begin() + std::min<std::ptrdiff_t>(5, std::ssize(from.words));
    return std::any_of(first, from.words.end(), [](const word& each) {
        const bool of_tls = each.text.starts_with("ssl") || each.text.starts_with("tls");
        return of_tls && !each.text.ends_with("disable");
    });
}

// A name as peers have it, of letters, digits and -_. alone.
std::string peer_name(const std::string& text, std::set<std::string>& taken) {
    std::string out = text.substr(0, 50);
    std::replace_if(
        out.begin(),
        out.end(),
        [](char c) {
            return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_' || c == '.');
        },
        '-');
    out = out.empty() ? "peer" : out;
    const auto first = out;
    for (int i = 2; !taken.insert(out).second; ++i) {
        out = first + '-' + std::to_string(i);
    }
    return out;
}

std::string url_of(const statement& peer) {
    const auto& host = word_at(peer, 1);
    const bool ipv6 = host.find(':') != std::string::npos && !host.starts_with('[');
    return (has_tls(peer) ? "https://" : "http://") + (ipv6 ? '[' + host + ']' : host) + ':' +
           word_at(peer, 3);
}

}  // namespace

std::string upstream_of(draft& into, const statements& peers) {
    constexpr const char* where = "listeners";
    std::string out;
    for (const auto* each : peers) {
        if (!has_word(*each, "originserver")) {
            continue;
        }
        if (!out.empty()) {
            into.say(fate::left_out, *each, "an accelerator has one upstream: the first", where);
            continue;
        }
        out = url_of(*each);
        take_options(into, *each, an_upstream, where);
    }
    return out;
}

void convert_peers(draft& into, const statements& peers) {
    constexpr const char* where = "peers";
    auto list = ordered_json::array();
    std::set<std::string> taken;
    bool siblings = false;
    std::size_t parents = 0;
    for (const auto* each : peers) {
        const auto& host = word_at(*each, 1);
        const auto& kind = word_at(*each, 2);
        if (has_word(*each, "originserver")) {
            continue;  // an accelerator's upstream
        }
        if (kind != "parent" && kind != "sibling") {
            into.say(fate::left_out, *each, "peers are siblings or parents", where);
            continue;
        }
        ordered_json one{{"name", peer_name(option_of(*each, "name").value_or(host), taken)},
                         {"url", url_of(*each)}};
        if (kind == "parent") {
            one["kind"] = "parent";
            take_options(into, *each, a_parent, where);
            if (++parents == 2) {
                into.say(fate::approximated,
                         *each,
                         "several parents share URLs by their hash, where Squid asks the first "
                         "that is up unless it is told otherwise",
                         where);
            }
        } else {
            siblings = true;
            one["protocol"] = "squid";
            if (has_word(*each, "proxy-only")) {
                one["proxy_only"] = true;
            }
            take_options(into, *each, a_sibling, where);
            const auto& icp = word_at(*each, 4);
            if (icp != "0" && !has_word(*each, "no-query")) {
                into.say(fate::changed,
                         *each,
                         "a sibling is asked by its digest; ICP is not spoken",
                         where);
            }
            if (has_word(*each, "no-digest")) {
                into.say(fate::left_out,
                         *each,
                         "no-digest: without its digest a sibling is never asked",
                         where);
            }
        }
        list.push_back(std::move(one));
    }
    if (list.empty()) {
        return;
    }
    into.settings["peers"] = std::move(list);
    if (siblings) {
        into.settings["digest"]["squid"] = true;
    }
}

}  // namespace reprise::from_squid
