// The whole fleet on one page: whichever node is asked knows the figures of all, also of those it does not list.

#include "tests/scenario/fleet.hpp"

#include <string>
#include <vector>

TEST_SUITE("scenario/fleet_figures") {

    using namespace reprise::tests;

    namespace {

    json fleet_page(proxy_process& node) {
        const auto page = node.admin("/stats?fleet=1");
        return page.status == 200 ? json::parse(page.body).at("fleet") : json{};
    }

    /// Settings of a node with a name of its own, by which others know it.
    json named(const std::string& name) {
        auto settings = node_settings();
        settings["forwarding"] = {{"pseudonym", name}};
        return settings;
    }

    /// Each node knows the next and the one before alone.
    void chain(fleet& f) {
        for (std::size_t i = 0; i < f.nodes.size(); ++i) {
            auto peers = json::array();
            for (std::size_t j = 0; j < f.nodes.size(); ++j) {
                if (i + 1 == j || j + 1 == i) {
                    peers.push_back(peer_at("n" + std::to_string(j), f[j].port()));
                }
            }
            f.tell(i, peers);
        }
    }

    struct three : fleet {
        three() : fleet{0} {
            for (const auto* const name : {"ann", "ben", "cai"}) {
                add(named(name));
            }
            chain(*this);
            serve_everything();
        }
        /// Every node's page comes to say so.
        [[nodiscard]] bool all_say(const json& wanted, std::chrono::milliseconds limit = patience) {
            for (std::size_t i = 0; i < nodes.size(); ++i) {
                json page;
                const auto is_as_wanted = [&] {
                    page = fleet_page((*this)[i]);
                    for (const auto& [name, value] : wanted.items()) {
                        if (!page.contains(name) || page.at(name) != value) {
                            return false;
                        }
                    }
                    return true;
                };
                const bool says = eventually(is_as_wanted, limit);
                if (!says) {
                    CAPTURE(i);
                    FAIL_CHECK(page.dump());
                    return false;
                }
            }
            return true;
        }
    };

    }  // namespace

    TEST_CASE("any node of a chain knows the sums of all, and they are exact") {
        three f;
        // At ann: two that origins have to give, and a hit. At ben: one from ann's store, which is no
        // further request at ann, and a hit of it. At cai: one that ann can't be asked for.
        std::size_t bytes = 0, stored = 0;
        const auto get = [&](std::size_t i, const std::string& path, bool from_store) {
            const auto got = f[i].get(f.origin.url(path));
            CHECK(got.status == 200);
            bytes += got.body.size();
            stored += from_store ? got.body.size() : 0;
        };
        get(0, "/a", false);
        get(0, "/b", false);
        get(0, "/a", true);
        REQUIRE(f.holds(1, "n0", 2));
        get(1, "/a", false);
        get(1, "/a", true);
        get(2, "/c", false);
        CHECK(f.origin.count("/a") == 1);
        REQUIRE(f.all_say({{"nodes_alive", 3},
                           {"nodes_known", 3},
                           {"requests", 6},
                           {"hits", 2},
                           {"sibling_hits", 1},
                           {"joined", 0},
                           {"hit_ratio", 0.5},
                           {"fetches_spared", 1},
                           {"body_bytes", bytes},
                           {"from_store_bytes", stored},
                           {"from_siblings_bytes", std::string{"body of /a"}.size()},
                           {"objects", 4}}));
        const auto page = fleet_page(f[0]);
        std::vector<std::string> names;
        for (const auto& node : page.at("nodes")) {
            names.push_back(node.at("name"));
            CHECK(node.at("alive") == true);
            CHECK(node.at("age_seconds").get<double>() < 30);
            CHECK(node.at("own") == (node.at("name") == "ann"));
            CHECK(node.at("up_seconds").get<double>() > 0);
        }
        CHECK(names == std::vector<std::string>{"ann", "ben", "cai"});
        CHECK(page.at("nodes").at(0).at("requests") == 3);
        CHECK(page.at("nodes").at(2).at("requests") == 1);

        // In the middle there are the digests of all: a, b, c, of which a is held twice.
        const auto distinct = [&](std::size_t i, unsigned nodes, double least, double most) {
            return eventually([&] {
                const auto now = fleet_page(f[i]);
                const auto keys = now.at("distinct_objects").get<double>();
                return now.at("/distinct_of/nodes"_json_pointer) == nodes && keys > least &&
                       keys < most;
            });
        };
        CHECK(distinct(1, 3, 2.5, 3.5));
        CHECK(distinct(0, 2, 1.5, 2.5));

        const auto metrics = f[2].admin("/metrics").body;
        CHECK(metrics.find("\nreprise_fleet_nodes_alive 3\n") != std::string::npos);
        CHECK(metrics.find("\nreprise_fleet_requests 6\n") != std::string::npos);
        CHECK(metrics.find("\nreprise_fleet_hit_ratio 0.5\n") != std::string::npos);
        CHECK(f[2].stats().at("/fleet/requests"_json_pointer) == 6);
    }

    TEST_CASE(
        "a node that ended is no longer heard of, and one that begins anew counts from nothing") {
        three f;
        CHECK(f[2].get(f.origin.url("/a")).status == 200);
        REQUIRE(f.all_say({{"nodes_alive", 3}, {"requests", 1}}));
        const auto age_of_cai = [&] {
            const auto page = fleet_page(f[0]);
            for (const auto& node : page.at("nodes")) {
                if (node.at("name") == "cai") {
                    return node.at("age_seconds").get<double>();
                }
            }
            return -1.0;
        };
        // It is alive for half a minute yet (unit/peer/fleet_table); but nothing makes it younger.
        f.nodes.pop_back();
        REQUIRE(eventually([&] { return age_of_cai() > 5; }));
        f.add(named("cai"));
        chain(f);
        // Whoever was asked in vain is left alone for two seconds, four, eight: for about as long as it was away.
        REQUIRE(f.all_say({{"nodes_alive", 3}, {"nodes_known", 3}, {"requests", 0}}, 3 * patience));
    }

    TEST_CASE("figures go to those whom a digest goes to, and without peers there is no fleet") {
        fleet f{2};
        const auto path = "GET /.well-known/reprise/figures HTTP/1.1\r\nHost: x\r\n";
        client peer{f[0].port()};
        CHECK(peer.ask(std::string{path} + "\r\n").status == 200);
        CHECK(peer.ask(std::string{path} + "Via: 1.1 somebody\r\n\r\n").status == 403);
        const auto there = "http://127.0.0.1:" + std::to_string(f[0].port());
        CHECK(f[1].get(there + "/.well-known/reprise/figures").status == 403);
        proxy_process alone{storing_settings()};
        CHECK(fleet_page(alone).is_null());
        CHECK(alone.admin("/metrics").body.find("\nreprise_fleet_nodes_alive ") ==
              std::string::npos);
    }
}
