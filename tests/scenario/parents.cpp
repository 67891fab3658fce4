// Parents: requests go through them, each URL through the same one, and around those that are down.

#include "tests/scenario/liar.hpp"

#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <deque>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/resource.h>

TEST_SUITE("scenario/parents") {

    using namespace reprise::tests;

    namespace {
    /// Nodes whose logs hold nothing but what parents are asked.
    struct strangers : fleet {
        explicit strangers(std::size_t count) : fleet{0} {
            for (std::size_t i = 0; i < count; ++i) {
                add(node_settings());
            }
        }
    };

    /// An address of this machine that others could reach; empty: it has none.
    std::string own_address() {
        std::string out;
        ifaddrs* first = nullptr;
        if (::getifaddrs(&first) != 0) {
            return out;
        }
        for (const auto* each = first; each != nullptr; each = each->ifa_next) {
            std::array<char, INET_ADDRSTRLEN> text{};
            if (each->ifa_addr != nullptr && each->ifa_addr->sa_family == AF_INET &&
                (each->ifa_flags & IFF_LOOPBACK) == 0) {
                const auto* const at = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
                out = ::inet_ntop(AF_INET, &at->sin_addr, text.data(), text.size());
            }
        }
        ::freeifaddrs(first);
        return out;
    }

    }  // namespace

    TEST_CASE("requests go to parents in absolute form, each URL to the same one") {
        strangers f{3};
        f.serve_everything("Cache-Control: no-store\r\n");
        f.tell(0, json::array({parent_at("p1", f[1].port()), parent_at("p2", f[2].port())}));
        REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].size() == 2; }));
        for (int turn = 0; turn < 2; ++turn) {
            for (int i = 0; i < 40; ++i) {
                const auto path = "/" + std::to_string(i);
                CHECK(f[0].get(f.origin.url(path)).body == "body of " + path);
            }
        }
        const auto logged = [&] { return f[1].access_log().size() + f[2].access_log().size(); };
        CHECK(eventually([&] { return logged() == 80; }));
        const auto one = f[1].access_log();
        const auto two = f[2].access_log();
        CHECK(one.size() > 10);  // of forty tosses fewer than six: one run in a million
        CHECK(two.size() > 10);
        for (const auto& line : one) {
            CHECK(std::count_if(two.begin(), two.end(), [&](const json& other) {
                      return other.at("url") == line.at("url");
                  }) == 0);
        }
        CHECK(f[0].logged("/1").at("peer").get<std::string>().starts_with("p"));
        // Other methods too.
        CHECK(f[0].ask("POST", f.origin.url("/post"), "Content-Length: 0\r\n").status == 200);
        CHECK(eventually([&] { return logged() == 81; }));
    }

    TEST_CASE("what this machine knows to be refused goes to no parent") {
        // The parent would connect from where it stands: to its own loopback, to the metadata of
        // its cloud, or back to this machine.
        strangers f{0};
        fake_origin parent;
        parent.otherwise([](origin_request& request, origin_connection& connection) {
            connection.send(ok("Cache-Control: no-store\r\n", "parent: " + request.target));
        });
        const temp_dir directory;
        directory.write("hosts", "127.0.0.1 here.test\n10.9.8.7 there.test\n");
        auto settings = node_settings();
        settings["access"].erase("allow_destinations");
        settings["access"]["deny_destinations"] = {"denied.test", "10.1.0.0/16"};
        settings["dns"]["hosts_file"] = directory.file("hosts");
        f.add(settings);
        f.tell(0, json::array({parent_at("p", parent.port())}));
        REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].contains("p"); }));
        std::vector<std::string> hosts{"127.0.0.1:8080",
                                       "127.0.0.1.:8080",
                                       "127.1",
                                       "2130706433",
                                       "0x7f.1:8080",
                                       "[::1]",
                                       "[::ffff:127.0.0.1]",
                                       "0.0.0.0",
                                       "169.254.169.254",
                                       "169.254.43518",
                                       "[fd00:ec2::254]",
                                       "localhost:8080",
                                       "LOCALHOST.",
                                       "a.localhost",
                                       "here.test",
                                       "denied.test",
                                       "10.1.2.3",
                                       "10.1.2.3.",
                                       "10.66051"};
        if (const auto own = own_address(); !own.empty()) {
            hosts.push_back(own);
        }
        for (const auto& host : hosts) {
            CAPTURE(host);
            const auto url = "http://" + host + "/a";
            CHECK(f[0].get(url).status == 403);
            CHECK(f[0].ask("POST", url, "Content-Length: 0\r\n").status == 403);
            CHECK(f[0].get(url,
                           "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: "
                           "13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
                      .status == 403);
        }
        // To a Squid all dots at the end are none, and leading zeros are octal to one and nothing to
        // another.
        for (const std::string host : {"127.0.0.1..:8080",
                                       "127.0.0.1...",
                                       "localhost..",
                                       ".localhost",
                                       "169.254.169.254..",
                                       "denied.test..",
                                       ".denied.test",
                                       "denied..test"}) {
            CAPTURE(host);
            const auto url = "http://" + host + "/a";
            CHECK(f[0].get(url).status == 400);
            CHECK(f[0].ask("POST", url, "Content-Length: 0\r\n").status == 400);
        }
        for (const std::string host :
             {"0127.0.0.1:8080", "127.0.0.09", "0169.254.169.254", "4294967297"}) {
            CAPTURE(host);
            const auto url = "http://" + host + "/a";
            CHECK(f[0].get(url).status == 502);
            CHECK(f[0].ask("POST", url, "Content-Length: 0\r\n").status == 502);
        }
        // Nor a method that one takes for another: it would carry out what is refused here.
        for (const std::string method : {"purge", "Trace"}) {
            CHECK(f[0].ask(method, "http://only-the-parent-knows.test/a").status == 400);
        }
        CHECK(parent.requests().empty());
        for (const std::string host : {"10.2.0.1", "there.test", "only-the-parent-knows.test"}) {
            CAPTURE(host);
            const auto url = "http://" + host + "/a";
            CHECK(f[0].get(url).body == "parent: " + url);
        }
    }

    TEST_CASE("a parent that is down is gone around, all of them to the origin") {
        strangers f{3};
        f.serve_everything("Cache-Control: no-store\r\n");
        f.tell(0, json::array({parent_at("p1", f[1].port()), parent_at("p2", f[2].port())}));
        REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].size() == 2; }));
        f[1].kill();
        for (int i = 0; i < 20; ++i) {
            CHECK(f[0].get(f.origin.url("/" + std::to_string(i))).status == 200);
        }
        CHECK(eventually([&] { return f[2].access_log().size() == 20; }));
        CHECK(figure(f[0].stats(), "/parents/up/p1") == 0);
        f[2].kill();
        for (int i = 0; i < 20; ++i) {
            CHECK(f[0].get(f.origin.url("/" + std::to_string(i))).status == 200);
        }
        CHECK(f.origin.requests().size() == 40);
    }

    TEST_CASE("a parent that ends the connection without a word is gone around") {
        strangers f{1};
        f.serve_everything();
        fake_origin mute;
        mute.otherwise([](auto&, auto& connection) { connection.close(); });
        f.tell(0, json::array({parent_at("mute", mute.port())}));
        REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].contains("mute"); }));
        CHECK(f[0].get(f.origin.url("/a")).body == "body of /a");
        CHECK(f.origin.count("/a") == 1);
    }

    TEST_CASE("a parent whose origin hangs is not down, and one that says nothing at all is") {
        for (const bool lives : {true, false}) {
            CAPTURE(lives);
            auto settings = node_settings();
            settings["timeouts"]["origin_head"] = "2500ms";  // the origin's, too
            settings["timeouts"]["origin_connect"] = lives ? "10s" : "1s";
            fleet f{0};
            f.add(settings);
            f.serve_everything("Cache-Control: no-store\r\n");
            fake_origin parent;
            parent.otherwise([lives](origin_request& request, origin_connection& connection) {
                if (lives && request.method == "OPTIONS") {
                    CHECK(request.target == "*");
                    connection.send(ok("", "here"));
                } else {
                    (void)connection.is_closed_by_proxy(patience);
                }
            });
            f.tell(0, json::array({parent_at("p", parent.port())}));
            REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].contains("p"); }));
            CHECK(f[0].get(f.origin.url("/a")).body == "body of /a");
            CHECK(figure(f[0].stats(), "/parents/up/p") == (lives ? 1 : 0));
            CHECK(f.origin.count("/a") == 1);
            // That it lives says little of its way out, where nothing ever comes of that.
            for (unsigned again = 1; lives && again <= 3; ++again) {
                CHECK(figure(f[0].stats(), "/parents/up/p") == 1);
                CHECK(f[0].get(f.origin.url("/a")).body == "body of /a");
            }
            CHECK(figure(f[0].stats(), "/parents/up/p") == 0);
        }
    }

    TEST_CASE("a parent that is down is left alone while the origin may be asked") {
        strangers f{1};
        f.serve_everything("Cache-Control: no-store\r\n");
        fake_origin mute;
        mute.otherwise([](auto&, auto& connection) { connection.close(); });
        f.tell(0, json::array({parent_at("mute", mute.port())}));
        REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].contains("mute"); }));
        for (int i = 0; i < 40; ++i) {
            CHECK(f[0].get(f.origin.url("/" + std::to_string(i))).status == 200);
        }
        // It is tried after a second, two, four: whatever this machine makes of forty requests.
        CHECK(mute.requests().size() < 10);
        CHECK(f.origin.requests().size() == 40);
    }

    TEST_CASE("a parent that does not know us is gone around where the origin may be asked") {
        // A Squid's own pages have its Via.
        for (const std::string via : {"", "Via: 1.1 gate (squid)\r\n"}) {
            CAPTURE(via);
            strangers f{1};
            f.serve_everything("Cache-Control: no-store\r\n");
            fake_origin gate;
            gate.otherwise([via](auto&, auto& connection) {
                connection.send(answer("407 Proxy Authentication Required",
                                       via + "Proxy-Authenticate: Basic realm=\"x\"\r\n",
                                       "who?"));
            });
            f.tell(0, json::array({parent_at("gate", gate.port())}));
            REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].contains("gate"); }));
            CHECK(f[0].get(f.origin.url("/a")).body == "body of /a");
            CHECK(f[0].ask("DELETE", f.origin.url("/b")).body == "body of /b");
            CHECK(f.text(0, "/parents/trouble/gate") == "parent_refused");
            CHECK(eventually([&] {
                return f[0].errors().find("gate: a parent that is gone around from now on: "
                                          "parent_refused") != std::string::npos;
            }));
        }
    }

    TEST_CASE("an origin's 407 is the client's answer, and none of the parent's doing") {
        strangers f{2};
        f.origin.otherwise([](auto&, auto& connection) {
            connection.send(answer("407 Proxy Authentication Required",
                                   "Proxy-Authenticate: Basic realm=\"x\"\r\n",
                                   "the origin's"));
        });
        f.tell(0, json::array({parent_at("p", f[1].port())}));
        REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].contains("p"); }));
        for (const std::string method : {"GET", "DELETE"}) {
            CAPTURE(method);
            const auto got = f[0].ask(method, f.origin.url("/" + method));
            CHECK(got.status == 407);
            CHECK(got.body == "the origin's");
            CHECK_FALSE(got.has("Proxy-Authenticate"));
            CHECK(f.origin.count("/" + method) == 1);
        }
        CHECK(figure(f[0].stats(), "/parents/up/p") == 1);
        CHECK(f[0].errors().find("gone around") == std::string::npos);
    }

    TEST_CASE("a head that is too much with the parent's own lines has no connection distrusted") {
        auto settings = node_settings();
        settings["threads"] = 1;  // each has connections of its own
        settings["limits"]["fields"] = 40;
        fleet f{0};
        f.add(settings);
        f.add(node_settings());
        f.serve_everything("Cache-Control: no-store\r\n");
        std::string many;
        for (unsigned i = 0; i < 40; ++i) {
            many += "X-" + std::to_string(i) + ": 1\r\n";
        }
        f.origin.on("/many", ok(many, "many"));
        f.tell(0, json::array({parent_at("p", f[1].port())}));
        REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].contains("p"); }));
        CHECK(f[0].get(f.origin.url("/a")).body == "body of /a");
        const auto got = f[0].get(f.origin.url("/many"));
        CHECK(got.status == 502);
        CHECK(got.body.find("response_head_too_large") != std::string::npos);
        CHECK(f[0].get(f.origin.url("/b")).body == "body of /b");
        const auto reused = figure(f[0].stats(), "/origins/reused");
        CHECK(f[0].get(f.origin.url("/c")).body == "body of /c");
        CHECK(figure(f[0].stats(), "/origins/reused") == reused + 1);
        CHECK(figure(f[0].stats(), "/origins/surplus") == 0);
        CHECK(figure(f[0].stats(), "/parents/up/p") == 1);
    }

    TEST_CASE("requests that one outage meets together are one failure of the parent") {
        strangers f{1};
        f.serve_everything("Cache-Control: no-store\r\n");
        constexpr std::size_t together = 32;  // of which half go to the one
        std::atomic<bool> well{false};
        fake_origin parent, other;
        auto& outage = parent.make_gate();
        parent.otherwise([&](auto&, auto& connection) {
            if (well) {
                connection.send(ok("Cache-Control: no-store\r\n", "of the parent"));
                return;
            }
            (void)outage.wait();
            connection.close();
        });
        other.otherwise([](auto&, auto& connection) {
            connection.send(ok("Cache-Control: no-store\r\n", "of the other"));
        });
        f.tell(0, json::array({parent_at("p", parent.port()), parent_at("other", other.port())}));
        REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].contains("p"); }));
        std::deque<client> asking;
        for (std::size_t i = 0; i < together; ++i) {
            asking.emplace_back(f[0].port())
                .send(absolute_request("GET", f.origin.url("/" + std::to_string(i))));
        }
        REQUIRE(eventually(
            [&] { return parent.requests().size() + other.requests().size() == together; }));
        const auto met = parent.requests();
        REQUIRE(met.size() > 1);
        outage.open();
        for (auto& one : asking) {
            CHECK(one.read().body == "of the other");
        }
        CHECK(figure(f[0].stats(), "/parents/up/p") == 0);
        well = true;
        // After so many failures it would be away for a minute.
        CHECK(eventually([&] { return f[0].get(met.front().target).body == "of the parent"; }));
    }

    TEST_CASE("a parent whose connections are all in use is not down") {
        auto settings = node_settings();
        settings["threads"] = 1;  // each has connections of its own
        settings["origins"]["connections"] = 1;
        settings["timeouts"]["origin_connect"] = "200ms";
        fleet f{0};
        f.add(settings);
        f.serve_everything("Cache-Control: no-store\r\n");
        fake_origin parent;
        auto& busy = parent.make_gate();
        parent.otherwise([&](auto&, auto& connection) {
            (void)busy.wait();
            connection.send(ok("Cache-Control: no-store\r\n", "of the parent"));
        });
        f.tell(0, json::array({parent_at("p", parent.port())}));
        REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].contains("p"); }));
        client first{f[0].port()};
        first.send(absolute_request("GET", f.origin.url("/a")));
        REQUIRE(eventually([&] { return parent.requests().size() == 1; }));
        CHECK(f[0].get(f.origin.url("/b")).body == "body of /b");
        CHECK(figure(f[0].stats(), "/parents/up/p") == 1);
        busy.open();
        CHECK(first.read().body == "of the parent");
    }

    // UBSan asks through a pipe whether memory may be read.
    TEST_CASE("a parent that can't be asked for want of descriptors is not down" *
              doctest::skip(sanitized)) {
        strangers f{1};
        fake_origin parent;
        parent.otherwise([](auto&, auto& connection) {
            connection.send(
                ok("Cache-Control: no-store\r\nConnection: close\r\n", "of the parent"));
            connection.close();
        });
        f.tell(0, json::array({parent_at("p", parent.port())}));
        REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].contains("p"); }));
        client one{f[0].port()};
        const auto asked = absolute_request("GET", f.origin.url("/a"));
        REQUIRE(one.ask(asked).body == "of the parent");
        rlimit before{};
        REQUIRE(::prlimit(f[0].pid(), RLIMIT_NOFILE, nullptr, &before) == 0);
        auto none = before;
        none.rlim_cur = 1;  // those that are open stay
        REQUIRE(::prlimit(f[0].pid(), RLIMIT_NOFILE, &none, nullptr) == 0);
        CHECK(one.ask(asked).status == 503);
        REQUIRE(::prlimit(f[0].pid(), RLIMIT_NOFILE, &before, nullptr) == 0);
        CHECK(figure(f[0].stats(), "/parents/up/p") == 1);
        CHECK(one.ask(asked).body == "of the parent");
    }

    TEST_CASE("parents that a reload took away while a sibling answered are asked no more") {
        fleet f{2};
        const std::string body(1000, 'p');
        f.origin.on("/a", ok("Cache-Control: max-age=600\r\n", body));
        const auto half =
            raw_head("200 OK", "Cache-Control: max-age=600\r\nAge: 5\r\nContent-Length: 1000\r\n") +
            body.substr(500);
        gate* breaks_off = nullptr;
        liar as{f, 0, [&](origin_request&, origin_connection& connection) {
                    connection.send(half);
                    (void)breaks_off->wait();
                    connection.close();
                }};
        breaks_off = &as.as.make_gate();
        CHECK(f[0].get(f.origin.url("/a")).status == 200);
        fake_origin parent;
        const auto sibling = peer_at("liar", as.as.port());
        auto peers = json::array({sibling});
        for (int i = 0; i < 16; ++i) {  // the first in the list is seldom the first to be asked
            peers.push_back(parent_at("p" + std::to_string(i), parent.port()));
        }
        f.tell(1, peers);
        REQUIRE(f.holds(1, "liar", 1));
        client asking{f[1].port()};
        asking.send(absolute_request("GET", f.origin.url("/a")));
        auto got = asking.read_head();
        CHECK(got.status == 200);
        f.tell(1, json::array({sibling}));
        REQUIRE(eventually([&] { return f[1].stats()["parents"]["up"].empty(); }));
        breaks_off->open();
        asking.read_body(got, body.size());
        CHECK(got.body == body);
        CHECK(f.origin.count("/a") == 2);
        CHECK(parent.connections() == 0);
    }
}
