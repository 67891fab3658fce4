// Load balancers and proxies that say whose connections they pass on (the PROXY protocol), and whose
// requests (X-Forwarded-For).

#include "tests/scenario/opened_world.hpp"
#include "tests/scenario/world.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/proxy_headers.hpp"
#include "tests/support/tls_client.hpp"

#include <memory>
#include <string>
#include <sys/stat.h>

TEST_SUITE("scenario/fronts") {

    using namespace reprise::tests;

    namespace {

    json fronted(const json& trusted = json::array({"127.0.0.0/8"})) {
        auto settings = storing_settings();
        settings["listeners"][0]["proxy_protocol"] = true;
        settings["access"]["trusted_fronts"] = trusted;
        settings["access"]["clients"] = json::array({"10.0.0.0/8"});
        return settings;
    }

    // Serves 10.0.0.0/8 alone; its fronts say by request whom they ask for.
    json fronted_by_field() {
        auto settings = fronted();
        settings["listeners"][0].erase("proxy_protocol");
        return settings;
    }

    const std::string inside{"\x0a\x01\x02\x03", 4}, outside{"\xc6\x33\x64\x07", 4};

    }  // namespace

    TEST_CASE("who is served, and who the log names, is the client and not its front") {
        world w{fronted()};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        auto to = w.proxy.connect(proxied_from(inside));
        CHECK(to.ask(w.request("/a")).status == 200);
        CHECK(to.ask(w.request("/a")).body == "hello");  // the header comes once
        CHECK(w.proxy.logged("/a").at("client") == "10.1.2.3:4321");
        auto other = w.proxy.connect(proxied_from(outside));
        CHECK(other.ask(w.request("/a")).status == 403);
        // The front itself (LOCAL) is nobody of access.clients.
        auto own = w.proxy.connect(proxy_header(0x20, 0x00, ""));
        CHECK(own.ask(w.request("/a")).status == 403);
    }

    TEST_CASE("an IPv6 client has its network's share, by whichever address of it it comes") {
        auto settings = fronted();
        settings["access"]["clients"] = json::array({"2001:db8::/32"});
        settings["limits"] = {{"connections_per_client", 2}};
        world w{settings};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        const auto from = [&](char network, char host) {
            std::string at("\x20\x01\x0d\xb8", 4);
            at.append(3, '\0').append(1, network).append(7, '\0').append(1, host);
            const std::string ports("\x10\xe1\x0c\x38", 4);
            return w.proxy.connect(proxy_header(0x21, 0x21, at + at + ports));
        };
        auto one = from(1, 1), two = from(1, 2);
        CHECK(one.ask(w.request("/a")).status == 200);
        CHECK(two.ask(w.request("/a")).status == 200);
        CHECK(from(1, 3).ask(w.request("/a")).status == 503);
        CHECK(from(2, 1).ask(w.request("/a")).status == 200);
    }

    TEST_CASE("a header in pieces is waited for, and what follows at once is its request") {
        world w{fronted()};
        w.origin.on("/a", ok("", "hello"));
        const auto header = proxied_from(inside);
        auto to = w.proxy.connect(header.substr(0, 7));
        to.send(header.substr(7, 12));
        CHECK(to.ask(header.substr(19) + w.request("/a")).status == 200);
        auto at_once = w.proxy.connect();
        CHECK(at_once.ask(header + w.request("/a")).status == 200);
    }

    TEST_CASE("the header comes before TLS's first byte") {
        const temp_dir at;
        const auto made = self_signed("DNS:proxy.test");
        auto settings = fronted();
        const auto key = at.write("key", made.key);
        REQUIRE(::chmod(key.c_str(), 0600) == 0);
        settings["listeners"][0]["tls"] = {
            {"certificate", at.write("certificate", made.certificate)}, {"key", key}};
        world w{settings};
        w.origin.on("/a", ok("", "hello"));
        auto bare = stream::connect(w.proxy.port());
        bare.send(proxied_from(inside));
        tls_peer::wishes wanted;
        wanted.trusted = made.certificate;
        wanted.host = "proxy.test";
        tls_client to{std::move(bare), wanted};
        CHECK(to.ask(w.request("/a")).status == 200);
        CHECK(w.proxy.logged("/a").at("client") == "10.1.2.3:4321");
    }

    TEST_CASE("what is no header, and a front that is not trusted, is closed without an answer") {
        {
            world w{fronted()};
            auto to = w.proxy.connect(w.request("/a"));
            CHECK(to.is_closed_by_proxy());
            auto words = w.proxy.connect("PROXY TCP4 10.1.2.3 10.0.0.1 4321 3128\r\n");
            CHECK(words.is_closed_by_proxy());
            CHECK(w.origin.count("/a") == 0);
        }
        world w{fronted(json::array({"192.0.2.0/24"}))};
        auto to = w.proxy.connect(proxied_from(inside));
        CHECK(to.is_closed_by_proxy());
    }

    TEST_CASE("a front that says nothing is closed when a head would have been due") {
        auto settings = fronted();
        settings["timeouts"]["client_head"] = "200ms";
        world w{settings};
        auto to = w.proxy.connect("\r\n\r\n");
        CHECK(to.is_closed_by_proxy());
    }

    TEST_CASE("proxy_protocol without a trusted front is a mistake of the settings") {
        const temp_dir at;
        auto settings = fronted(json::array());
        const auto checked = run_reprise({"check", at.write("settings", settings.dump())});
        CHECK(checked.exit_status == 1);
        CHECK(checked.errors.find("listeners[0].proxy_protocol: nobody could connect") !=
              std::string::npos);
    }

    TEST_CASE("X-Forwarded-For says of each request of a connection whose it is") {
        auto settings = fronted_by_field();
        settings["forwarding"] = {{"client_address", "forwarded"}};
        world w{settings};
        w.origin.on("/a", ok("", "hello"));
        w.origin.on("/b", ok("", "hello"));
        auto to = w.proxy.connect();
        CHECK(to.ask(w.request("/a", "X-Forwarded-For: 10.1.2.3:99\r\n")).status == 200);
        CHECK(to.ask(w.request("/b", "X-Forwarded-For: 10.4.5.6\r\n")).status == 200);
        CHECK(w.proxy.logged("/a").at("client") == "10.1.2.3:99");
        CHECK(w.proxy.logged("/b").at("client") == "10.4.5.6:0");
        CHECK(w.origin.requests("/b").at(0).get("Forwarded") == "for=10.4.5.6");
        // Who is not served, and the front itself, which is nobody of access.clients. Such an answer
        // ends the connection.
        CHECK(to.ask(w.request("/a", "X-Forwarded-For: 198.51.100.7\r\n")).status == 403);
        for (const std::string field : {"", "X-Forwarded-For: 10.1.2.3, unknown\r\n"}) {
            CHECK(w.get("/a", field).status == 403);
        }
    }

    TEST_CASE("the client is the last that is no front, in the last line of the field") {
        world w{fronted_by_field()};
        w.origin.on("/a", ok("", "hello"));
        CHECK(w.get("/a", "X-Forwarded-For: 10.1.2.3, 198.51.100.7, 127.0.0.2\r\n").status == 403);
        CHECK(
            w.get("/a", "X-Forwarded-For: 10.1.2.3\r\nX-Forwarded-For: 198.51.100.7\r\n").status ==
            403);
        CHECK(
            w.get("/a", "X-Forwarded-For: 198.51.100.7\r\nX-Forwarded-For: 10.1.2.3, 127.0.0.2\r\n")
                .status == 200);
    }

    TEST_CASE("behind a PROXY header the field counts where that names a front") {
        world w{fronted(json::array({"127.0.0.0/8", "198.51.100.7/32"}))};
        w.origin.on("/a", ok("", "hello"));
        auto by_front = w.proxy.connect(proxied_from(outside));
        CHECK(by_front.ask(w.request("/a", "X-Forwarded-For: 10.9.9.9\r\n")).status == 200);
        CHECK(w.proxy.logged("/a").at("client") == "10.9.9.9:0");
        auto by_client = w.proxy.connect(proxied_from(inside));
        CHECK(by_client.ask(w.request("/a", "X-Forwarded-For: 198.51.100.9\r\n")).status == 200);
    }

    TEST_CASE("what a front has said of a connection holds while it is trusted, and no longer") {
        const auto trusting = [](const json& fronts) { return fronted(fronts); };
        world w{trusting({"127.0.0.1/32", "127.0.0.2/32"})};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        const auto by = [&](const std::string& front) {
            client to{w.proxy.port(), front};
            CHECK(to.ask(proxied_from(inside) + w.request("/a")).status == 200);
            return to;
        };
        auto one = by("127.0.0.1"), other = by("127.0.0.2");
        w.proxy.reload(trusting({"127.0.0.0/24"}));  // both are still
        CHECK(one.ask(w.request("/a")).status == 200);
        CHECK(other.ask(w.request("/a")).status == 200);
        w.proxy.reload(trusting({"127.0.0.1/32"}));
        CHECK(one.ask(w.request("/a")).status == 200);
        CHECK(other.ask(w.request("/a")).status == 403);
        CHECK(other.is_closed_by_proxy());
        CHECK(one.ask(w.request("/a")).status == 200);
    }

    TEST_CASE("so does what it has said of whom a tunnel was opened for") {
        for (const bool by_header : {true, false}) {
            CAPTURE(by_header);
            auto settings = by_header ? fronted() : fronted_by_field();
            const json in_tunnels{{"clients", {"10.0.0.0/8"}}};
            opened_world w{in_tunnels, settings};
            w.origin.on("/a", ok(std::string{cacheable}, "hello"));
            const auto at = w.at("a.test");
            const auto connect = "CONNECT " + at + " HTTP/1.1\r\nHost: " + at + "\r\n";
            const auto enter = [&](const std::string& front) {
                return w.in_time([&] {
                    client to{w.proxy->port(), front};
                    to.send(by_header ? proxied_from(inside) + connect + "\r\n"
                                      : connect + "X-Forwarded-For: 10.1.2.3\r\n\r\n");
                    REQUIRE(to.read_head("CONNECT").status == 200);
                    return std::make_unique<tls_client>(stream{to.connection().release()},
                                                        w.wishes("a.test"));
                });
            };
            const auto one = enter("127.0.0.1"), other = enter("127.0.0.2");
            CHECK(one->ask(w.get("a.test", "/a")).body == "hello");
            CHECK(other->ask(w.get("a.test", "/a")).body == "hello");
            w.settings["access"]["trusted_fronts"] = json::array({"127.0.0.1/32"});
            w.proxy->reload(w.settings);
            CHECK(is_hit(one->ask(w.get("a.test", "/a"))));
            CHECK(other->ask(w.get("a.test", "/a")).status == 403);
            CHECK(other->end() == tls_end::closed);
            CHECK(is_hit(one->ask(w.get("a.test", "/a"))));
        }
    }

    TEST_CASE("who is no trusted front is who he is, whatever the field says") {
        auto settings = storing_settings();
        settings["access"]["trusted_fronts"] = json::array({"192.0.2.0/24"});
        world w{settings};
        w.origin.on("/a", ok("", "hello"));
        CHECK(w.get("/a", "X-Forwarded-For: 198.51.100.7\r\n").status == 200);
        const std::string client = w.proxy.logged("/a").at("client");
        CHECK(client.substr(0, 10) == "127.0.0.1:");
    }

    TEST_CASE("nothing that came by a front counts as this machine's") {
        auto settings = storing_settings();
        settings["access"]["trusted_fronts"] = json::array({"127.0.0.0/8"});
        world w{settings};
        const auto https = "GET https" + w.origin.url("/a").substr(4) + " HTTP/1.1\r\nHost: x\r\n";
        for (const std::string field : {"", "X-Forwarded-For: 127.0.0.1\r\n"}) {
            auto to = w.proxy.connect();
            CHECK(to.ask(https + field + "\r\n").status == 501);
        }
        auto plain = storing_settings();
        plain["timeouts"]["origin_connect"] = "300ms";  // which speaks no TLS
        w.proxy.reload(plain);
        auto to = w.proxy.connect();
        CHECK(to.ask(https + "\r\n").status != 501);  // from this machine it would be asked for
    }

    TEST_CASE("nor does a client whom a PROXY header places at an address of this machine's") {
        auto settings = fronted(json::array({"127.0.0.1/32"}));
        settings["access"]["clients"] = json::array({"127.0.0.0/8"});
        world w{settings};
        w.origin.on("/a", ok("", "hello"));
        auto to = w.proxy.connect(proxied_from({"\x7f\x00\x00\x02", 4}));
        CHECK(to.ask(w.request("/a")).body == "hello");
        CHECK(w.proxy.logged("/a").at("client") == "127.0.0.2:4321");
        CHECK(to.ask("GET https" + w.origin.url("/a").substr(4) + " HTTP/1.1\r\nHost: x\r\n\r\n")
                  .status == 501);
        CHECK(w.origin.connections() == 1);
    }

    TEST_CASE("a request that can't be read is the front's, not the client's before") {
        world w{fronted_by_field()};
        w.origin.on("/a", ok("", "hello"));
        auto to = w.proxy.connect();
        CHECK(to.ask(w.request("/a", "X-Forwarded-For: 10.1.2.3\r\n")).status == 200);
        CHECK(to.ask("GET\r\n\r\n").status == 400);
        CHECK(eventually([&] {
            for (const auto& line : w.proxy.access_log()) {
                const std::string client = line.at("client");
                if (line.at("status") == 400) {
                    return client.substr(0, 10) == "127.0.0.1:";
                }
            }
            return false;
        }));
    }
}
