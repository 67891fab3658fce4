#include "tests/unit/from_squid/converted.hpp"

#include <doctest/doctest.h>

#include <string>

namespace reprise::from_squid {

namespace {

const std::string intranet = "acl i dstdomain .a.example\nacl ftp proto FTP\n";
// A parent that Squid asks for all that it asks any parent for: of that alone nothing is told.
const std::string behind_parent = intranet +
                                  "cache_peer p.example parent 3128 0 no-query name=edge\n"
                                  "nonhierarchical_direct off\n";
const std::string beside_sibling = intranet + "cache_peer s.example sibling 3128 0 no-query\n";
const std::string before_upstream =
    intranet + "http_port 80 accel vhost\n"
               "cache_peer 192.0.2.1 parent 80 0 no-query originserver name=web\n";

std::size_t laxer_lines(const std::string& text) {
    return settings_of(text).count(fate::laxer);
}

}  // namespace

TEST_SUITE("from_squid/ways_out") {
    TEST_CASE("what was always asked of its origin, and now of peers, is told") {
        for (const auto& peer : {behind_parent, beside_sibling, before_upstream}) {
            CAPTURE(peer);
            const auto base = laxer_lines(peer);
            CHECK(base == 0);
            const auto r = settings_of(peer + "always_direct allow i\n");
            CHECK(r.count(fate::laxer) == 1);
            CHECK(r.says(fate::laxer, "peers are asked for these too"));
            CHECK(laxer_lines(peer + "always_direct allow all\n") == 1);
            // The opposite of the last line is for all the rest.
            CHECK(laxer_lines(peer + "always_direct deny i\n") == 1);
            CHECK(laxer_lines(peer + "always_direct deny i\nalways_direct allow all\n") == 1);
            CHECK(laxer_lines(peer + "always_direct deny all\nalways_direct allow i\n") == 0);
            CHECK(laxer_lines(peer + "always_direct allow ftp\nalways_direct deny all\n") == 0);
        }
        // Nobody else is asked there or here.
        CHECK(laxer_lines(intranet + "always_direct allow i\n") == 0);
    }

    TEST_CASE("what a peer was not to be asked for, and is, is told") {
        struct kept {
            const std::string &peer, name;
            const char* why;
        };
        for (const auto& each : {kept{behind_parent, "edge", "a parent is asked for whatever"},
                                 kept{beside_sibling, "s.example", "whatever its digest lists"},
                                 kept{before_upstream, "web", "whatever host a client names"}}) {
            CAPTURE(each.name);
            const auto with = [&](const std::string& rest) {
                return settings_of(each.peer + "cache_peer_access " + each.name + ' ' + rest +
                                   '\n');
            };
            CHECK(with("deny i").count(fate::laxer) == 1);
            CHECK(with("deny i").says(fate::laxer, each.why));
            CHECK(with("allow i").count(fate::laxer) == 1);
            CHECK(with("allow all").count(fate::laxer) == 0);
            CHECK(
                with("allow i\ncache_peer_access " + each.name + " deny all").count(fate::laxer) ==
                1);
            CHECK(
                with("allow all\ncache_peer_access " + each.name + " deny i").count(fate::laxer) ==
                0);
            CHECK(settings_of(each.peer + "cache_peer_domain " + each.name + " .a.example\n")
                      .count(fate::laxer) == 1);
        }
        // Each peer has a list of its own.
        CHECK(laxer_lines(behind_parent + "cache_peer q.example parent 3128 0\n"
                                          "cache_peer_access edge deny i\n"
                                          "cache_peer_access q.example allow all\n"
                                          "cache_peer_access edge allow all\n") == 1);
        const auto unknown = settings_of(behind_parent + "cache_peer_access p.example deny i\n");
        CHECK(unknown.count(fate::laxer) == 0);
        CHECK(unknown.says(fate::left_out, "no peer here has this name"));
        // Without an accelerator nobody asks it.
        CHECK(laxer_lines(
                  "cache_peer w parent 80 0 originserver\ncache_peer_access w deny all\n") == 0);
    }

    TEST_CASE("tunnels lead to no parent, so that nothing of them is told") {
        const std::string ssl = "acl ssl method CONNECT\n";
        CHECK(laxer_lines(ssl + behind_parent + "always_direct allow ssl\n") == 0);
        CHECK(laxer_lines(ssl + behind_parent +
                          "cache_peer_access edge deny CONNECT\n"
                          "cache_peer_access edge allow all\n") == 0);
        CHECK(laxer_lines(ssl + behind_parent +
                          "always_direct allow ssl\nnever_direct allow all\n") == 1);
    }

    TEST_CASE("never_direct holds for all, and what it was not for is told") {
        const auto all = settings_of(behind_parent + "never_direct allow all\n");
        CHECK(all.options.peering.never_direct);
        CHECK(all.count(fate::laxer) == 0);
        for (const std::string rules :
             {"never_direct deny i\nnever_direct allow all\n", "never_direct deny i\n"}) {
            CAPTURE(rules);
            const auto r = settings_of(behind_parent + rules);
            CHECK(r.options.peering.never_direct);
            CHECK(r.count(fate::laxer) == 1);
            CHECK(r.says(fate::laxer, "a parent is asked for these too"));
            // Without a parent it is refused, which is told, and what it was not for goes as before.
            CHECK(laxer_lines(intranet + rules) == 1);
        }
        CHECK(laxer_lines(behind_parent + "never_direct deny ftp\nnever_direct allow all\n") == 0);
        // Squid's own example.
        const auto both = settings_of(behind_parent + "acl e dstdomain e.a.example\n"
                                                      "always_direct deny e\n"
                                                      "always_direct allow i\n"
                                                      "never_direct allow all\n");
        CHECK(both.options.peering.never_direct);
        CHECK(both.count(fate::laxer) == 1);
    }

    TEST_CASE("never_direct for some holds for none, which is told") {
        for (const std::string rules :
             {"never_direct allow i\n", "never_direct allow i\nnever_direct deny all\n"}) {
            CAPTURE(rules);
            const auto r = settings_of(behind_parent + rules);
            CHECK_FALSE(r.options.peering.never_direct);
            CHECK(r.count(fate::laxer) == 1);
        }
        CHECK(laxer_lines(behind_parent + "never_direct deny all\n") == 0);
        const auto covered = settings_of(behind_parent +
                                         "never_direct allow i\nnever_direct allow all\n");
        CHECK(covered.options.peering.never_direct);
        CHECK(covered.count(fate::laxer) == 0);
    }

    TEST_CASE("what Squid asks a parent for last, or not at all, is told") {
        const std::string parent = "cache_peer p.example parent 3128 0 no-query\n";
        const auto usual = settings_of(parent);
        CHECK(usual.count(fate::laxer) == 1);
        CHECK(usual.says(fate::laxer, "what can't be cached"));
        CHECK(laxer_lines(parent + "nonhierarchical_direct on\n") == 1);
        CHECK(laxer_lines(parent + "nonhierarchical_direct off\n") == 0);
        CHECK(laxer_lines(parent + "never_direct allow all\n") == 0);
        CHECK(laxer_lines(behind_parent + "prefer_direct on\n") == 1);
        CHECK(laxer_lines(behind_parent + "prefer_direct on\nnever_direct allow all\n") == 0);
        CHECK(laxer_lines(behind_parent + "neighbor_type_domain edge sibling .a.example\n") == 1);
        CHECK(laxer_lines(behind_parent + "hierarchy_stoplist cgi-bin ?\n") == 1);
        CHECK(laxer_lines(beside_sibling + "prefer_direct on\nhierarchy_stoplist cgi-bin ?\n"
                                           "neighbor_type_domain s.example parent .au\n") == 1);
        CHECK(laxer_lines("prefer_direct on\nhierarchy_stoplist cgi-bin ?\n") == 0);
    }
}

}  // namespace reprise::from_squid
