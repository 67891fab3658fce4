// Siblings that are found by DNS: one name for all nodes of a fleet, as a Kubernetes headless
// service gives it.

#include "tests/scenario/fleet.hpp"
#include "tests/support/fake_dns.hpp"

#include <algorithm>

TEST_SUITE("scenario/sibling_names") {

    using namespace reprise::tests;

    namespace {

    constexpr const char* name = "fleet.example.test";
    const std::string one = std::string{name} + "/127.0.0.1";
    const std::string two = std::string{name} + "/127.0.0.2";

    json peers_by(std::uint16_t port) {
        return json::array({{{"dns", name}, {"port", port}, {"refresh", "1s"}, {"timeout", "2s"}}});
    }

    /// Of a node, "" for a sibling that it does not know.
    std::string state_of(const proxy_process& node, const std::string& sibling) {
        const auto stats = node.stats();
        const json::json_pointer place{"/siblings/state"};
        return stats.contains(place) ? stats.at(place).value(sibling, std::string{})
                                     : std::string{};
    }

    bool is_in_state(const proxy_process& node, const std::string& sibling, const char* state) {
        return eventually([&] { return state_of(node, sibling) == state; }, 3 * patience);
    }

    }  // namespace

    TEST_CASE("nodes find each other by one name, leave themselves out, and follow its changes") {
        fake_origin origin;
        origin.otherwise([](origin_request& request, origin_connection& connection) {
            connection.send(ok("Cache-Control: max-age=600\r\n", "body of " + request.target));
        });
        fake_dns dns;
        dns.add(name, "127.0.0.1", std::chrono::seconds{1});

        auto settings = node_settings();
        settings["dns"] = {{"servers", json::array({dns.endpoint()})}, {"timeout", "2s"}};
        // Nobody but the origin may be asked: peers of the settings are exempt.
        settings["access"]["allow_destinations"] = json::array({origin.authority()});
        settings["peers"] = peers_by(1);
        const proxy_process first{settings};
        settings["peers"] = peers_by(first.port());
        first.rewrite_settings(settings);
        first.signal(SIGHUP);
        CHECK(is_in_state(first, one, "itself"));
        CHECK(first.get(origin.url("/a")).status == 200);

        // The same port at another address; the first listener is this test's.
        settings["listeners"] = json::array(
            {json{{"address", "127.0.0.1:0"}},
             json{{"address", "127.0.0.2:" + std::to_string(first.port())}}});
        const proxy_process second{settings};
        CHECK(is_in_state(second, one, "current"));
        CHECK(state_of(first, two).empty());
        dns.add(name, "127.0.0.2", std::chrono::seconds{1});
        CHECK(is_in_state(first, two, "current"));
        CHECK(is_in_state(second, two, "itself"));
        CHECK(state_of(first, one) == "itself");

        const auto listed = [&](const proxy_process& node, const std::string& sibling) {
            const auto stats = node.stats();
            const auto& estimates = stats.at("siblings").at("estimated_objects");
            return estimates.contains(sibling) && estimates.at(sibling).is_number() &&
                   estimates.at(sibling).get<double>() > 0.5;
        };
        REQUIRE(eventually([&] { return listed(second, one); }));
        CHECK(second.get(origin.url("/a")).body == "body of /a");
        CHECK(second.logged("/a").at("peer") == one);
        CHECK(second.get(origin.url("/b")).body == "body of /b");
        REQUIRE(eventually([&] {
            return json::parse(first.admin("/explain?url=" + origin.url("/b"))
                                   .body)["siblings"]["claims"] == json::array({two});
        }));
        CHECK(first.get(origin.url("/b")).body == "body of /b");
        CHECK(origin.count("/a") == 1);
        CHECK(origin.count("/b") == 1);
        for (const auto* node : {&first, &second}) {
            // It is no sibling, and in no figure of siblings.
            const auto siblings = node->stats().at("siblings");
            const auto& itself = node == &first ? one : two;
            CHECK(siblings.at("state").at(itself) == "itself");
            for (const auto* of : {"usable", "asked", "url", "estimated_objects", "named"}) {
                CAPTURE(of);
                CHECK(siblings.at(of).size() == 1);
                CHECK_FALSE(siblings.at(of).contains(itself));
            }
        }

        dns.forget(name);
        CHECK(eventually([&] { return state_of(second, one).empty(); }, 3 * patience));
        CHECK(second.get(origin.url("/c")).body == "body of /c");
    }

    TEST_CASE("a node that finds itself takes none of the 256 places") {
        fake_dns dns;
        dns.add(name, "127.0.0.1", std::chrono::seconds{60});
        for (int i = 0; i < 256; ++i) {
            dns.add(name, "127.0.1." + std::to_string(i), std::chrono::seconds{60});
        }
        auto settings = node_settings();
        settings["dns"] = {{"servers", json::array({dns.endpoint()})}, {"timeout", "2s"}};
        settings["peers"] = peers_by(1);
        const proxy_process node{settings};
        settings["peers"] = peers_by(node.port());
        node.rewrite_settings(settings);
        node.signal(SIGHUP);
        CHECK(is_in_state(node, one, "itself"));
        CHECK(eventually([&] { return node.stats().at("siblings").at("usable").size() == 256; }));
        CHECK(node.stats().at("siblings").at("state").size() == 257);
    }

    TEST_CASE("of a name with many addresses 256 are siblings, and the log says so") {
        fake_origin origin;
        origin.on("/a", ok("Cache-Control: max-age=600\r\n", "hello"));
        for (const int addresses : {70, 256, 300, 600}) {
            CAPTURE(addresses);
            fake_dns dns;
            for (int i = 0; i < addresses; ++i) {
                const auto at = std::to_string(1 + i / 256) + "." + std::to_string(i % 256);
                dns.add(name, "127.0." + at, std::chrono::seconds{60});
            }
            auto settings = node_settings();
            settings["dns"] = {{"servers", json::array({dns.endpoint()})}, {"timeout", "2s"}};
            settings["peers"] = peers_by(1);
            const proxy_process node{settings};
            REQUIRE(eventually(
                [&] { return !state_of(node, std::string{name} + "/127.0.1.0").empty(); }));
            CHECK(node.stats().at("siblings").at("state").size() ==
                  static_cast<std::size_t>(std::min(addresses, 256)));
            CHECK(node.get(origin.url("/a")).body == "hello");
            if (addresses > 256) {
                const auto known = std::to_string(std::min(addresses, 512));  // of a name, at most
                CHECK(node.says("peers: " + known + " siblings are known"));
            } else {
                CHECK(node.errors().find("siblings are known") == std::string::npos);
            }
        }
    }
}
