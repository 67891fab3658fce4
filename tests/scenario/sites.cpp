// Another site, asked by way of its gateway: one digest of what all its nodes hold, and one hop there.

#include "tests/scenario/fleet.hpp"

#include <string>

TEST_SUITE("scenario/sites") {

    using namespace reprise::tests;

    namespace {

    json gateway_settings() {
        auto settings = node_settings();
        settings["peering"]["gateway_for"] = {"127.0.0.1"};
        return settings;
    }

    json site_at(std::string_view name, std::uint16_t port) {
        auto made = peer_at(name, port);
        made["kind"] = "site";
        return made;
    }

    /// Node 0 is of one site; node 1 is the gateway of another, whose other nodes are 2 and on.
    struct two_sites : fleet {
        explicit two_sites(std::size_t members = 2, const json& settings = node_settings())
            : fleet{0} {
            add(settings);
            auto gateway = settings;
            gateway["peering"]["gateway_for"] = {"127.0.0.1"};
            add(gateway);
            for (std::size_t i = 0; i < members; ++i) {
                add(settings);
            }
            serve_everything();
            tell(0, json::array({site_at("far", (*this)[1].port())}));
            for (std::size_t i = 1; i < nodes.size(); ++i) {
                auto peers = json::array();
                for (std::size_t j = 1; j < nodes.size(); ++j) {
                    if (i != j) {
                        peers.push_back(peer_at("n" + std::to_string(j), nodes[j].first.port()));
                    }
                }
                tell(i, peers);
            }
        }

        /// Node `i` stores it.
        void store(std::size_t i, const std::string& path) {
            CHECK(cache_status_of(nodes.at(i).first.get(origin.url(path))).stored);
        }
        /// Node 0 is told that the far site holds it.
        [[nodiscard]] bool is_told(const std::string& path) {
            return eventually([&] { return claims(0, origin.url(path)); });
        }
        [[nodiscard]] std::int64_t gateway_figure(const char* place) {
            return figure(nodes.at(1).first.stats(), place);
        }
    };

    }  // namespace

    TEST_CASE("by ICP a gateway would be asked once, whatever it is asked for") {
        two_sites f{0};
        f.store(1, "/a");
        REQUIRE(f.is_told("/a"));
        CHECK(f[0].get(f.origin.url("/b")).status == 200);
        CHECK(figure(f[0].stats(), "/peering/icp_messages") == 2);
    }

    TEST_CASE("what a member of another site holds is one hop from its gateway") {
        two_sites f;
        f.store(2, "/a");
        f.store(3, "/b");
        REQUIRE(f.is_told("/a"));
        REQUIRE(f.is_told("/b"));
        const auto before = f.origin.count("/a") + f.origin.count("/b");
        for (const std::string path : {"/a", "/b"}) {
            const auto got = f[0].get(f.origin.url(path));
            CHECK(got.status == 200);
            CHECK(got.body == "body of " + path);
        }
        CHECK(f.origin.count("/a") + f.origin.count("/b") == before);
        CHECK(f.asked(0, "far~1members", "true-hit") == 2);
        CHECK(f.asked(0, "far", "true-hit") == 0);
        CHECK(f.gateway_figure("/sites/asked") == 2);
        // Counted behind the last byte, which the client may have by then.
        CHECK(eventually([&] { return f.gateway_figure("/sites/answered") == 2; }));
        // Nor are they sights of its own.
        const auto told = json::parse(f[1].admin("/explain?url=" + f.origin.url("/a")).body);
        CHECK(told.at("admission").at("seen_before") == 0);
        // The gateway keeps nothing of it, and counts no request of a client's.
        CHECK(f[1].ask("GET", f.origin.url("/a"), "Cache-Control: only-if-cached\r\n").status ==
              504);
        CHECK(f.gateway_figure("/members/joined") == 2);
        CHECK(f.asked(1, "n2", "true-hit") == 1);
        CHECK(f.asked(1, "n3", "true-hit") == 1);
    }

    TEST_CASE("what the gateway itself holds it is asked for as any sibling") {
        two_sites f{1};
        f.store(1, "/a");
        REQUIRE(f.is_told("/a"));
        CHECK(f[0].get(f.origin.url("/a")).body == "body of /a");
        CHECK(f.asked(0, "far", "true-hit") == 1);
        CHECK(f.gateway_figure("/sites/asked") == 0);
        CHECK(f.origin.count("/a") == 1);
    }

    TEST_CASE(
        "what is gone there is told, and what its digests say wrongly costs no origin twice") {
        two_sites f;
        f.store(2, "/a");
        REQUIRE(f.is_told("/a"));
        CHECK(f[2].ask("PURGE", f.origin.url("/a")).status == 200);
        CHECK(eventually([&] { return !f.claims(0, f.origin.url("/a")); }));
        // A member that has died is still named for a while.
        f.store(3, "/b");
        REQUIRE(f.is_told("/b"));
        f[3].kill();
        const auto got = f[0].get(f.origin.url("/b"));
        CHECK(got.body == "body of /b");
        CHECK(f.origin.count("/b") == 2);
        CHECK(f.gateway_figure("/sites/answered") == 0);
    }

    TEST_CASE("a node that is no gateway tells of itself alone, and asks nobody for others") {
        fleet f{3};
        f.serve_everything();
        f.tell(0, json::array({site_at("far", f[1].port())}));
        f.tell(1, json::array({peer_at("n0", f[0].port()), peer_at("n2", f[2].port())}));
        f.tell(2, json::array({peer_at("n1", f[1].port())}));
        (void)f[1].get(f.origin.url("/own"));
        CHECK(eventually([&] { return f.claims(0, f.origin.url("/own")); }));
        CHECK(eventually([&] {
            const auto stats = f[0].stats();
            const json::json_pointer place{"/siblings/in_trouble/far~1members"};
            return stats.contains(place) && stats.at(place).contains("no_digest");
        }));
        // Whoever asks it as a gateway gets what only-if-cached gets.
        (void)f[2].get(f.origin.url("/other"));
        CHECK(eventually([&] { return f.claims(1, f.origin.url("/other")); }));
        const auto asked = f.origin.count("/other");
        CHECK(f[1].ask("GET",
                       f.origin.url("/other"),
                       "Cache-Control: only-if-cached\r\nConnection: Reprise-Site\r\n"
                       "Reprise-Site: ?1\r\n")
                  .status == 504);
        CHECK(f.origin.count("/other") == asked);
        CHECK(f.asked(1, "n2", "true-hit") == 0);
    }

    TEST_CASE("what a gateway asks members for has no other end than theirs") {
        two_sites f{1};
        f.store(2, "/a");
        REQUIRE(eventually([&] { return f.claims(1, f.origin.url("/a")); }));
        const auto question = [&](const std::string& path, const std::string& more = "") {
            return f[1].ask("GET",
                            f.origin.url(path),
                            "Cache-Control: only-if-cached\r\nConnection: Reprise-Site\r\n"
                            "Reprise-Site: ?1\r\n" +
                                more);
        };
        const auto whole = question("/a");
        CHECK(whole.status == 200);
        CHECK(whole.body == "body of /a");
        CHECK(whole.has("Age"));
        // A part of it, and what the asker holds already.
        const auto part = question("/a", "Range: bytes=5-6\r\n");
        CHECK(part.status == 206);
        CHECK(part.body == "of");
        CHECK(question("/never").status == 504);
        CHECK(question("/a", "Authorization: Basic eDp5\r\n").status == 504);
        CHECK(f.origin.count("/never") == 0);
        // A client's own field, which a sibling passed on beside a Connection of its own, is no site's.
        CHECK(f[1].ask("GET",
                       f.origin.url("/a"),
                       "Cache-Control: only-if-cached\r\nConnection: TE\r\nTE: trailers\r\n"
                       "Reprise-Site: ?1\r\n")
                  .status == 504);
        // Without the field it is what any sibling's question is.
        CHECK(f[1].ask("GET", f.origin.url("/a"), "Cache-Control: only-if-cached\r\n").status ==
              504);
    }

    TEST_CASE("what a member has is not told in the place of what its gateway has had since") {
        two_sites f{1};
        const auto version =
            [](std::chrono::seconds from_now, const std::string& fields, const std::string& body) {
                return raw_head("200 OK",
                                "Date: " + http_date(from_now) + "\r\n" + fields +
                                    "Content-Length: 2\r\n") +
                       body;
            };
        f.origin.on("/a",
                    version(std::chrono::seconds{-100}, "Cache-Control: max-age=3600\r\n", "v1"));
        f.store(2, "/a");
        REQUIRE(eventually([&] { return f.claims(1, f.origin.url("/a")); }));
        // Stale as it comes.
        f.origin.on("/a",
                    version(std::chrono::seconds{0},
                            "Age: 100\r\nCache-Control: max-age=60\r\nETag: \"2\"\r\n",
                            "v2"));
        const auto own = f[1].get(f.origin.url("/a"), "Cookie: a=b\r\n");
        CHECK(own.body == "v2");
        REQUIRE(own.get("Cache-Status").ends_with("; stored"));
        CHECK(f[1].ask("GET",
                       f.origin.url("/a"),
                       "Cache-Control: only-if-cached\r\nConnection: Reprise-Site\r\n"
                       "Reprise-Site: ?1\r\n")
                  .status == 504);
        CHECK(f.asked(1, "n2", "false-hit") == 1);
    }

    TEST_CASE("gateways that name each other in a ring ask nobody twice") {
        constexpr std::size_t gateways = 3;
        fleet f{0};
        for (std::size_t i = 0; i < gateways; ++i) {
            f.add(gateway_settings());
        }
        for (std::size_t i = 0; i < gateways; ++i) {
            f.add(node_settings());
        }
        f.serve_everything();
        // Each is the gateway of one node, and names both others as sites, and as themselves are named.
        for (std::size_t i = 0; i < gateways; ++i) {
            auto peers = json::array({peer_at("own", f[gateways + i].port())});
            for (std::size_t j = 0; j < gateways; ++j) {
                if (i != j) {
                    peers.push_back(site_at("s" + std::to_string(j), f[j].port()));
                }
            }
            f.tell(i, peers);
            f.tell(gateways + i, json::array({peer_at("gateway", f[i].port())}));
        }
        const auto url = f.origin.url("/a");
        (void)f[gateways].get(url);
        // What is two sites away is not told on: node 0 of site 1 hears of it from site 0 alone.
        for (const std::size_t i : {1, 2}) {
            REQUIRE(eventually([&] { return f.claims(i, url); }));
            const auto said = json::parse(f[i].admin("/explain?url=" + url).body);
            CHECK(said["siblings"]["claims"] == json::array({"s0/members"}));
        }
        const auto before = f.origin.count("/a");
        f[gateways].kill();
        for (const std::size_t i : {1, 2}) {
            CHECK(f[i].get(url).body == "body of /a");
        }
        CHECK(f.origin.count("/a") <= before + 2);
        std::int64_t asked = 0;
        for (std::size_t i = 0; i < gateways; ++i) {
            asked += figure(f[i].stats(), "/sites/asked");
        }
        CHECK(asked <= 2);
    }
}
