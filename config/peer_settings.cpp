#include "config/peer_settings.hpp"

#include "config/url.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

// The rows of peers, of what is published for them and of how they are asked, and those of TLS.
// Whether names are unique, and siblings few enough, is checked over the whole list.

namespace reprise::config {
namespace {

using namespace std::chrono_literals;
using enum change;

constexpr std::size_t most_peers = 512;

kind<std::string> peer_url() {
    return text_kind<std::string>(
        "http[s]://host:port", parse_peer_url, [](const std::string& url) { return url; });
}

kind<std::string> peer_name() {
    return text_kind<std::string>(
        "name",
        [](std::string_view text) -> parsed<std::string> {
            const bool word = std::all_of(text.begin(), text.end(), [](char c) {
                return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
            });
            if (text.empty() || text.size() > 64 || !word) {
                return refusal{"must be 1 to 64 letters, digits, '-', '_' or '.'"};
            }
            return std::string{text};
        },
        [](const std::string& name) { return name; });
}

void check_peer(const peer_options& into, const given& members, const place& here) {
    const bool has_url = members.has("url");
    const bool has_dns = members.has("dns");
    if (!has_url && !has_dns) {
        here.member("url").wrong("missing: write \"url\": \"http://host:port\", or \"dns\": "
                                 "\"name\" for all addresses that a name has");
    }
    if (has_url && has_dns) {
        here.member("dns").wrong("a peer has a url or is found by dns: write one of them");
    }
    if (has_url && members.has("port")) {
        here.member("port").wrong("belongs to \"dns\" alone: a url has its port in it");
    }
    if (has_url && !has_dns && !members.has("name")) {
        here.member("name").wrong("missing: a peer is told apart in logs and metrics by its name");
    }
    if (has_dns && members.is_sound("kind") && into.kind == peer_kind::parent) {
        here.member("kind").wrong("peers found by dns are siblings: name each parent by its url");
    }
    if (has_dns && members.is_sound("kind") && into.kind == peer_kind::site) {
        here.member("kind").wrong(
            "peers found by dns are siblings: a site is named by its gateway's url");
    }
    if (members.is_sound("kind") && members.is_sound("protocol") && into.kind == peer_kind::site &&
        into.protocol == peer_protocol::squid) {
        here.member("protocol")
            .wrong("a Squid is no gateway: it tells nobody what its siblings hold");
    }
    if (members.has("proxy_only") && members.is_sound("kind") && into.kind == peer_kind::parent) {
        here.member("proxy_only")
            .wrong("belongs to siblings: what a parent fetches is nowhere "
                   "near, so it is stored here like an origin's");
    }
    if (into.max_age && members.is_sound("kind") && into.kind == peer_kind::parent) {
        here.member("max_age").wrong("belongs to siblings: freshness.rules bound what parents and "
                                     "origins say");
    }
    if (members.has("refresh") && members.is_sound("kind") && into.kind == peer_kind::parent) {
        here.member("refresh").wrong("belongs to siblings: no digest is asked of a parent");
    }
    if (members.has("timeout") && members.is_sound("kind") && into.kind == peer_kind::parent) {
        here.member("timeout").wrong(
            "belongs to siblings: a parent has timeouts.origin_connect and origin_head");
    }
    if (!into.credentials_file.empty() && members.is_sound("credentials_file") &&
        members.is_sound("kind") && into.kind != peer_kind::parent) {
        here.member("credentials_file")
            .wrong("belongs to parents: siblings know each other by digest.secret_file");
    }
}

object_table<peer_options> peer_table() {
    return {
        {
            by_default("that of dns",
                       value("name",
                             &peer_options::name,
                             peer_name(),
                             live,
                             "What it is called in logs and metrics. No two share one.")),
            by_default("none",
                       value("url",
                             &peer_options::url,
                             peer_url(),
                             live,
                             "Where it listens. With https what passes between is encrypted, "
                             "and its certificate must be valid for the host and lead to an "
                             "authority of the system's trust store (or of the file that "
                             "SSL_CERT_FILE names in the environment) or of origins.ca_file; "
                             "origins.crl_file is heeded.")),
            by_default("none",
                       value("dns",
                             &peer_options::dns,
                             host_name(),
                             live,
                             "In place of a url: every address of this name is a sibling, without "
                             "TLS, looked up again as its TTL says. A node leaves itself out.")),
            value("port",
                  &peer_options::port,
                  port(),
                  live,
                  "The port at the addresses that dns has."),
            value(
                "kind",
                &peer_options::kind,
                one_of<peer_kind>({{"sibling", peer_kind::sibling},
                                   {"parent", peer_kind::parent},
                                   {"site", peer_kind::site}}),
                live,
                "A sibling is asked for what its digest says it has; a parent for whatever no "
                "sibling has, in place of the origin. Several parents share URLs by their "
                "hash, and stand in for each other. An address that access refuses, in whatever "
                "spelling, localhost and this machine's own are asked of neither; where any other "
                "name leads is a parent's to judge. A parent that fails, refuses us (407) or leads "
                "back here (508) is gone around for a second, longer each further time. A site "
                "is another fleet, named by its gateway (peering.gateway_for there): a sibling "
                "that tells of its own siblings too, in one digest, and asks them for us."),
            value("protocol",
                  &peer_options::protocol,
                  one_of<peer_protocol>(
                      {{"reprise", peer_protocol::reprise}, {"squid", peer_protocol::squid}}),
                  live,
                  "Whose digests it has and takes. Squid's have no key: whoever reads one can "
                  "test any URL against it."),
            value("proxy_only",
                  &peer_options::proxy_only,
                  yes_or_no(),
                  live,
                  "Whether what this sibling answers is never stored here too. True holds more "
                  "different objects in the fleet; each use costs a round trip again."),
            by_default(
                "none",
                value("max_age",
                      &peer_options::max_age,
                      optional(seconds_between(1s, std::chrono::hours{24 * 366})),
                      live,
                      "No response that this sibling answers is fresh here for longer, counted "
                      "from when its origin made it, and none is taken that is older by its Age. "
                      "So a sibling that says something wrong is believed for at most this long. "
                      "Less asks origins more for what lasts long.")),
            value("credentials_file",
                  &peer_options::credentials_file,
                  path_or_off(),
                  live,
                  "A file with user:password on one line, which this parent alone is sent "
                  "(Proxy-Authorization: Basic). Read at the start and on a reload; nobody else "
                  "should be able to read it. With a parent of http it passes in the clear."),
            value("refresh",
                  &peer_options::refresh,
                  time_between(1s, 24h),
                  live,
                  "How often a sibling's digest is asked for. More often finds what is new there "
                  "sooner; an unchanged one costs some hundred bytes. A Squid's is asked for when "
                  "it expires, and no more often than this. A parent has none."),
            value(
                "timeout",
                &peer_options::timeout,
                time_between(10ms, 1min),
                live,
                "How long a sibling may take to begin its answer, and before that its turn to come "
                "where all connections to it are in use; then the next source is asked. Longer "
                "waits for distant ones; of a site's gateway it has to cover the way "
                "there and back and what its siblings may take. A parent has none: it has "
                "timeouts.origin_connect and origin_head."),
        },
        {},
        check_peer};
}

void check_peers(std::vector<peer_options>& peers, const place& here) {
    std::map<std::string, std::size_t> named;
    std::size_t siblings = 0;
    for (std::size_t i = 0; i < peers.size(); ++i) {
        auto& one = peers[i];
        if (one.name.empty()) {
            one.name = one.dns;
        }
        // A site has two digests: its gateway's, and that of the gateway's siblings.
        siblings += one.kind == peer_kind::sibling ? 1 : one.kind == peer_kind::site ? 2 : 0;
        if (one.name.empty()) {
            continue;  // what is wrong with it was said
        }
        const auto [other, is_new] = named.emplace(one.name, i);
        if (!is_new) {
            here.element(i).member("name").wrong("peers[" + std::to_string(other->second) +
                                                 "] has the name " + one.name +
                                                 " already: write another");
        }
    }
    if (siblings > most_siblings) {
        here.wrong(std::to_string(siblings) + " siblings, of which a site is two; at most " +
                   std::to_string(most_siblings) + " are followed");
    }
}

}  // namespace

object_table<digest_options> digest_table() {
    return {{
        value("false_positive_rate",
              &digest_options::false_positive_rate,
              fraction_between(0.0001, 0.2),
              restart,
              "The share of what this cache lacks that siblings ask it for in vain. Less wastes "
              "fewer round trips and makes the digest longer: 9 bits an object travel at 0.01, "
              "14 at 0.001."),
        value("publish_after_change",
              &digest_options::publish_after_change,
              fraction_between(0.0001, 1),
              restart,
              "A new digest is made when this share of what it lists has changed. Less shows "
              "siblings sooner what is new and what is gone, and sends more bytes."),
        value("publish_after",
              &digest_options::publish_after,
              seconds_between(1s, 24h),
              restart,
              "Or when so long has passed and anything has changed."),
        value("secret_file",
              &digest_options::secret_file,
              path_or_off(),
              restart,
              "A file of at least 32 random bytes that all siblings have: digests are keyed by it "
              "and served only to requests signed with it. \"off\": any peer of the settings, "
              "known by its address, may read what is stored here."),
        value("squid",
              &digest_options::squid,
              yes_or_no(),
              restart,
              "Whether peers with the protocol \"squid\" are served a digest in their format. It "
              "takes some 24 bytes more of memory an object."),
        value(
            "site_nodes",
            &digest_options::site_nodes,
            small_count_between(1, most_site_nodes, "nodes"),
            restart,
            "Of how many nodes' digests a gateway makes one for other sites "
            "(peering.gateway_for): to be set alike on all of them. One digest of N errs as if it "
            "were N times as full, so each has so many times the bits (rounded up to a power of "
            "two), and the one of all has false_positive_rate again. An object then takes "
            "24 bytes with 2 nodes and 48 with 4, in place of 12. At 1 the digest of "
            "4 nodes names 3 to 12 % of what none has, that of 8 11 to 32 %; what is asked in vain "
            "costs a round trip between the sites."),
    }};
}

object_table<peering_options> peering_table() {
    return {{
        value("budget",
              &peering_options::budget,
              time_between(1ms, 1min),
              live,
              "How long siblings may take altogether; then the origin is asked beside them and "
              "the first good answer counts. Longer has more siblings' hits and makes what they "
              "do not have slower."),
        value("hit_worth",
              &peering_options::hit_worth,
              time_between(0ms, 1min),
              live,
              "What a hit in a sibling is worth beside the time it saves: the origin's bytes and "
              "work. A sibling that answers later than origins do by more than this is asked less "
              "often. Longer where origins are metered or easily overloaded, 0 where time alone "
              "counts."),
        value("never_direct",
              &peering_options::never_direct,
              yes_or_no(),
              live,
              "Whether parents are the only way out, as with Squid's never_direct: no origin is "
              "connected to, and none of their names is looked up, but for the upstreams of "
              "accelerators. CONNECT goes through a parent too. While no parent can be reached "
              "what is not stored is a 503; false asks origins then. A reload that sets it where "
              "there were no peers at the start leads nowhere until the next start."),
        value("homes",
              &peering_options::homes,
              yes_or_no(),
              live,
              "Whether each URL has a home, one node of those that live, by rendezvous hashing of "
              "their forwarding.pseudonym: what is not stored here is asked of it, it alone "
              "fetches it and has it on disk, and the others keep copies in memory alone. A fleet "
              "of N disks then has N times the room, and asks the origin once; what it costs is a "
              "way through the home for what is not in memory here. A home that does not answer "
              "within peering.budget is passed by. To be set on all nodes."),
        value("news",
              &peering_options::news,
              time_between(0ms, 1min),
              restart,
              "Within which siblings are told of what came here or left: each keeps a request open "
              "that is answered when something changed. Longer sends fewer and larger answers. "
              "Where fewer than sixteen follow, they are told sooner as a rule: seven in seven "
              "sixteenths of it, which is as many answers a second as sixteen get. What is being "
              "fetched goes first, at once unless much of that came lately. 0: this instance "
              "neither tells nor follows so, "
              "and digests are fetched every peers[].refresh."),
        value("gateway_for",
              &peering_options::gateway_for,
              list_of(network_kind(), 0, 10'000),
              restart,
              "Nodes of other sites, by address or network, that name this one as a site "
              "(peers[].kind), and that access.clients has too: nodes, not their clients, since "
              "whoever asks from there may read what "
              "is stored here and at the siblings, without a password. They are told in one digest "
              "what all siblings of this node hold, "
              "so that one crosses the way between instead of one for each sibling, and what they "
              "want of it is asked of these siblings, with only-if-cached, and handed on. Nobody "
              "but its own clients is asked any farther for. It takes the bits of all siblings' "
              "digests once more. Empty: it is no gateway."),
    }};
}

object_table<tls_options> tls_table() {
    return {{
        required(value("certificate",
                       &tls_options::certificate,
                       path_kind(),
                       live,
                       "A PEM file: the certificate and those that lead to its authority, in "
                       "this order.")),
        required(value("key",
                       &tls_options::key,
                       path_kind(),
                       live,
                       "A PEM file: the certificate's private key, without a passphrase.")),
    }};
}

row<options> peers_row() {
    return objects("peers",
                   &options::peers,
                   peer_table(),
                   0,
                   most_peers,
                   live,
                   "Other caches. A sibling is asked for what its digest lists, before "
                   "parents and origins. Where there were none at the start, the first "
                   "come at the next restart.",
                   check_peers);
}

}  // namespace reprise::config
