// https where parents are the only way out: tunnels that parents make, parents behind TLS, and whose certificate was
// bad.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/ways_out.hpp"

#include <chrono>
#include <deque>
#include <map>
#include <memory>

TEST_SUITE("scenario/https_by_parents") {

    using namespace reprise::tests;

    namespace {

    const test_authority& authority() {
        static const test_authority one;
        return one;
    }

    /// An https origin of many names, which parents that make tunnels know, and a proxy behind them
    /// that knows none.
    struct https_behind {
        static constexpr int most = 20;
        temp_dir files;
        fake_origin origin{{.identity = authority().issue("DNS:*.hosts.test")}};
        std::deque<proxy_process> parents;
        json settings;
        std::unique_ptr<proxy_process> proxy;

        explicit https_behind(std::size_t count, const json& from = storing_settings()) {
            std::string known = "127.0.0.1";
            for (int i = 0; i < most; ++i) {
                known += ' ' + host(i);
            }
            auto parent = storing_settings();
            parent["access"]["connect_ports"] = json::array({origin.port()});
            parent["dns"]["hosts_file"] = files.write("hosts", known + '\n');
            auto ways = json::array();
            for (std::size_t i = 0; i < count; ++i) {
                ways.push_back(
                    way_out("p" + std::to_string(i), parents.emplace_back(parent).port()));
            }
            settings = from;
            settings["peers"] = ways;
            settings["peering"] = {{"never_direct", true}};
            settings["origins"]["ca_file"] = files.write("ca", authority().certificate());
            proxy = std::make_unique<proxy_process>(settings);
        }
        [[nodiscard]] static std::string host(int i) {
            return 'h' + std::to_string(i) + ".hosts.test";
        }
        [[nodiscard]] std::string url(int i, std::string_view path) const {
            return "https://" + host(i) + ':' + std::to_string(origin.port()) + std::string{path};
        }
    };

    /// A parent behind TLS that answers by itself, whatever it is.
    struct https_parent {
        temp_dir files;
        fake_origin as;

        explicit https_parent(const made_certificate& made) : as{{.identity = made}} {}
        [[nodiscard]] json way(std::string_view name) const {
            return {{"name", name}, {"url", "https://" + as.authority()}, {"kind", "parent"}};
        }
        [[nodiscard]] json settings(json parents) const {
            auto out = only_by(std::move(parents));
            out["freshness"]["stale_on_error"] = "1h";
            out["origins"]["ca_file"] = files.write("ca", authority().certificate());
            return out;
        }
    };

    void check_parents_certificate_is_named(const response& got) {
        CHECK(got.status == 502);
        CHECK(got.get("Proxy-Status").find("tls_certificate_error") != std::string::npos);
        CHECK(got.body.find("p: ") != std::string::npos);
        CHECK(got.body.find("self-signed") != std::string::npos);
    }

    std::size_t times(std::string_view what, std::string_view in) {
        std::size_t count = 0;
        for (auto at = in.find(what); at != std::string_view::npos; at = in.find(what, at + 1)) {
            ++count;
        }
        return count;
    }

    }  // namespace

    TEST_CASE("an https URL is fetched through a parent, over one connection, and stored") {
        https_behind w{1};
        w.origin.otherwise([](origin_request& request, origin_connection& connection) {
            connection.send(ok("Cache-Control: max-age=600\r\n", "body of " + request.target));
        });
        auto one = w.proxy->connect();  // on one thread
        for (const std::string path : {"/a", "/b", "/c"}) {
            CHECK(one.ask(absolute_request("GET", w.url(1, path))).body == "body of " + path);
        }
        CHECK(is_hit(one.ask(absolute_request("GET", w.url(1, "/a")))));
        CHECK(w.origin.connections() == 1);
        CHECK(w.origin.count("/a") == 1);
        CHECK(w.proxy->logged("/a").at("peer") == "p0");
        CHECK(w.proxy->logged("/a").at("origin") ==
              "127.0.0.1:" + std::to_string(w.parents[0].port()));
        one.connection().reset();
        w.proxy->stop();
        const auto tunnel = w.parents[0].logged(w.host(1));
        CHECK(tunnel.at("method") == "CONNECT");
    }

    TEST_CASE(
        "https goes around a parent that is not there, and each origin through the same one") {
        https_behind w{2};
        w.origin.otherwise([](origin_request&, origin_connection& connection) {
            connection.send(ok("Cache-Control: no-store\r\n", "hello"));
        });
        const auto peers_of_all = [&](std::string_view path) {
            std::map<std::string, int> by;
            for (int i = 0; i < w.most; ++i) {
                CHECK(w.proxy->get(w.url(i, path)).body == "hello");
                ++by[w.proxy->logged(w.url(i, path)).at("peer").get<std::string>()];
            }
            return by;
        };
        const auto both = peers_of_all("/a");
        CHECK(both.size() == 2);  // of twenty tosses all the same: one run in half a million
        CHECK(peers_of_all("/b") == both);
        w.parents[0].kill();
        CHECK(peers_of_all("/c") == std::map<std::string, int>{{"p1", w.most}});
        w.parents[1].kill();
        const auto none = w.proxy->get(w.url(0, "/d"));
        CHECK(none.status == 503);
        CHECK(none.body.find("connect_refused") != std::string::npos);
    }

    TEST_CASE(
        "an origin's bad certificate behind a parent is the origin's, and no parent's failure") {
        https_behind w{2};
        w.origin.on("/a", ok("Cache-Control: max-age=600\r\n", "hello"));
        w.origin.identify_as(self_signed("DNS:*.hosts.test"));
        const auto got = w.proxy->get(w.url(0, "/a"));
        CHECK(got.status == 502);
        CHECK(got.body.find("the certificate of h0.hosts.test: self-signed") != std::string::npos);
        CHECK(w.origin.connections() == 1);  // no other parent was asked
        CHECK(figure(w.proxy->stats(), "/parents/up/p0") == 1);
        CHECK(figure(w.proxy->stats(), "/parents/up/p1") == 1);
        w.origin.identify_as(authority().issue("DNS:*.hosts.test"));
        CHECK(w.proxy->get(w.url(0, "/a")).body == "hello");
        CHECK(w.origin.count("/a") == 1);
    }

    TEST_CASE("nobody waits with a client that has used its share of what a parent leads to") {
        auto settings = storing_settings();
        settings["threads"] = 1;
        settings["origins"] = {{"connections", 8}, {"connections_per_client", 1}};
        settings["timeouts"]["origin_connect"] = "1m";  // who waits for a share waits as long
        https_behind w{1, settings};
        auto& stalled = w.origin.make_gate();
        w.origin.on("/stall", [&stalled](origin_request&, origin_connection& connection) {
            stalled.wait(std::chrono::minutes{1});
            connection.send(ok("", "at last"));
        });
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        // Not from the parents' address, which is no one client's.
        client greedy{w.proxy->port(), "127.0.0.2"}, waits{w.proxy->port(), "127.0.0.2"};
        client modest{w.proxy->port(), "127.0.0.3"};
        greedy.send(absolute_request("GET", w.url(0, "/stall")));
        REQUIRE(eventually([&] { return w.origin.count("/stall") == 1; }));
        const auto request = absolute_request("GET", w.url(0, "/a"));
        waits.send(request);
        CHECK(never_within_a_moment([&] { return w.origin.count("/a") > 0; }));
        CHECK(modest.ask(request).body == "hello");
        stalled.open();
        CHECK(greedy.read().body == "at last");
        CHECK(waits.read().body == "hello");
    }

    TEST_CASE("a parent's bad certificate is a 502 with the reason, and nothing stale stands in") {
        https_parent p{authority().issue("IP:127.0.0.1")};
        const std::string stale = "Cache-Control: max-age=60\r\nAge: 100\r\nConnection: close\r\n";
        serve_all(p.as, stale);
        const proxy_process proxy{p.settings(json::array({p.way("p")}))};
        const std::string url = "http://a.test/a";
        CHECK(proxy.get(url).body == "parent: GET " + url);
        const auto asked = p.as.asked();
        p.as.identify_as(self_signed("IP:127.0.0.1"));
        check_parents_certificate_is_named(proxy.get(url));
        check_parents_certificate_is_named(proxy.get("https://a.test/a"));
        check_parents_certificate_is_named(proxy.connect(connect_to("a.test:443")).read("CONNECT"));
        CHECK(p.as.asked() == asked);
        CHECK(
            eventually([&] { return times("a parent that is gone around", proxy.errors()) == 1; }));
        CHECK(proxy.says("self-signed"));
        p.as.identify_as(authority().issue("IP:127.0.0.1"));
        CHECK(proxy.get(url).body == "parent: GET " + url);
        p.as.stop();
        CHECK(proxy.get(url).body == "parent: GET " + url);  // refused: what is stale stands in
    }

    TEST_CASE(
        "another parent is asked in place of one with a bad certificate, which is logged once") {
        https_parent bad{self_signed("IP:127.0.0.1")};
        fake_origin good;
        serve_all(bad.as);
        serve_all(good, "Cache-Control: no-store\r\n");
        good.otherwise_at_head([](origin_request& request, origin_connection& connection) {
            if (request.method == "CONNECT") {
                connection.send("HTTP/1.1 200 OK\r\n\r\nSSH-2.0-far\r\n");
            } else {
                connection.send(ok("Cache-Control: no-store\r\n", "good"));
            }
            connection.close();
        });
        const proxy_process proxy{
            bad.settings(json::array({bad.way("bad"), way_out("good", good.port())}))};
        for (int i = 0; i < 12; ++i) {
            const auto host = 'h' + std::to_string(i) + ".test";
            CHECK(proxy.get("http://" + host + "/").body == "good");
            CHECK(proxy.connect(connect_to(host + ":443")).read_head("CONNECT").status == 200);
        }
        CHECK(bad.as.asked() == 0);
        CHECK(bad.as.connections() > 0);
        CHECK(proxy.says("bad: a parent that is gone around"));
        CHECK(times("bad: a parent that is gone around", proxy.errors()) == 1);
        CHECK(proxy.says("self-signed"));
    }
}
