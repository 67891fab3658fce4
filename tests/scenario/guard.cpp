// Where requests may go and who may ask: safe before anybody has configured anything.

#include "tests/scenario/world.hpp"

#include <csignal>

TEST_SUITE("scenario/guard") {

    using namespace reprise::tests;

    namespace {

    /// No exceptions: what an operator has who sets nothing.
    json guarded_settings() {
        auto settings = basic_settings();
        settings["access"].erase("allow_destinations");
        return settings;
    }

    }  // namespace

    TEST_CASE("loopback is refused by default, and the page names the setting that allows it") {
        world w{guarded_settings()};
        const auto answer = w.get("/a");
        CHECK(answer.status == 403);
        CHECK(answer.body.find("access.allow_destinations") != std::string::npos);
        CHECK(answer.get("Proxy-Status").find("destination_ip_prohibited") != std::string::npos);
        CHECK(w.origin.connections() == 0);
    }

    TEST_CASE("every spelling of loopback, of this machine and of cloud metadata is refused") {
        world w{guarded_settings()};
        const auto port = ":" + std::to_string(w.origin.port());
        for (const std::string host : {"127.0.0.1",
                                       "127.1.2.3",
                                       "localhost",
                                       "LOCALHOST",
                                       "[::1]",
                                       "[::]",
                                       "0.0.0.0",
                                       "0.1.2.3",
                                       "[::ffff:127.0.0.1]",
                                       "[::ffff:7f00:1]",
                                       "[::127.0.0.1]",
                                       "[64:ff9b::127.0.0.1]",
                                       "[2002:7f00:1::]",
                                       "169.254.169.254",
                                       "169.254.170.2",
                                       "169.254.1.1",
                                       "100.100.100.200",
                                       "[fd00:ec2::254]",
                                       "[fd00:ec2::23]",
                                       "[fd20:ce::254]",
                                       "168.63.129.16",
                                       "192.0.0.192",
                                       "[2001:0:808:808::80ff:fffe]",
                                       "[2001:0:7f00:1::f7f7:f7f7]",
                                       "[fd00::5efe:127.0.0.1]",
                                       "192.0.0.1",
                                       "240.0.0.1",
                                       "[::ffff:169.254.169.254]",
                                       "[64:ff9b::a9fe:a9fe]",
                                       "[fe80::1]",
                                       "224.0.0.1",
                                       "255.255.255.255",
                                       "[ff02::1]"}) {
            CAPTURE(host);
            const auto answer = w.proxy.get("http://" + host + port + "/a");
            CHECK(answer.status == 403);
        }
        CHECK(w.origin.connections() == 0);
    }

    TEST_CASE("odd numbers for a host reach nothing on loopback") {
        world w{guarded_settings()};
        const auto port = ":" + std::to_string(w.origin.port());
        for (const std::string host : {"2130706433",
                                       "0x7f000001",
                                       "0x7f.1",
                                       "017700000001",
                                       "127.1",
                                       "127.0.1",
                                       "0177.0.0.1",
                                       "0"}) {
            CAPTURE(host);
            const auto answer = w.proxy.get("http://" + host + port + "/a");
            CHECK(answer.status >= 400);
            CHECK(answer.complete());
        }
        CHECK(w.origin.connections() == 0);
    }

    TEST_CASE("CONNECT is guarded as requests are") {
        fake_origin origin;
        auto settings = guarded_settings();
        settings["access"]["connect_ports"] = json::array({origin.port()});
        const proxy_process proxy{settings};
        for (const std::string host : {"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::1]"}) {
            CAPTURE(host);
            auto one = proxy.connect();
            const auto authority = host + ":" + std::to_string(origin.port());
            CHECK(one.ask("CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n")
                      .status == 403);
        }
        CHECK(origin.connections() == 0);
    }

    TEST_CASE("an exception may name one address and port") {
        fake_origin allowed;
        fake_origin other;
        auto settings = guarded_settings();
        settings["access"]["allow_destinations"] = json::array({allowed.authority()});
        const proxy_process proxy{settings};
        allowed.on("/a", ok("", "hello"));
        other.on("/a", ok("", "hello"));
        CHECK(proxy.get(allowed.url("/a")).body == "hello");
        CHECK(proxy.get(other.url("/a")).status == 403);
        CHECK(other.connections() == 0);
    }

    TEST_CASE("access.deny_destinations refuses further ones") {
        fake_origin origin;
        auto settings = basic_settings();
        const temp_dir directory;
        settings["dns"] = {{"hosts_file",
                            directory.write("hosts",
                                            "127.0.0.1 good.test\n127.0.0.1 bad.test\n"
                                            "127.0.0.1 ads.tracker.test\n")}};
        settings["access"]["deny_destinations"] = json::array({"bad.test", "*.tracker.test"});
        const proxy_process proxy{settings};
        origin.on("/a", ok("", "hello"));
        const auto at = [&](const std::string& host) {
            return proxy.get("http://" + host + ":" + std::to_string(origin.port()) + "/a");
        };
        CHECK(at("good.test").body == "hello");
        const auto refused = at("bad.test");
        CHECK(refused.status == 403);
        CHECK(refused.body.find("deny_destinations") != std::string::npos);
        CHECK(at("BAD.test").status == 403);
        CHECK(at("ads.tracker.test").status == 403);
    }

    TEST_CASE("requests go to the ports of access.request_ports alone") {
        world w{basic_settings()};
        const auto answer = w.proxy.get("http://127.0.0.1:22/");
        CHECK(answer.status == 403);
        CHECK(answer.body.find("access.request_ports") != std::string::npos);
        CHECK(w.proxy.get("http://127.0.0.1:25/").status == 403);
    }

    TEST_CASE("a client that access.clients does not have is refused with 403") {
        auto settings = basic_settings();
        settings["access"]["clients"] = json::array({"127.0.0.1/32"});
        world w{settings};
        w.origin.on("/a", ok("", "hello"));
        CHECK(w.get("/a").body == "hello");
        client stranger{w.proxy.port(), "127.0.0.2"};
        const auto answer = stranger.ask(w.request("/a"));
        CHECK(answer.status == 403);
        CHECK(answer.body.find("access.clients") != std::string::npos);
        CHECK(stranger.is_closed_by_proxy());
        CHECK(w.origin.count("/a") == 1);
    }

    TEST_CASE("what was stored is not served once its destination is denied by name") {
        auto settings = storing_settings();
        world w{settings};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(w.get("/a").status == 200);
        CHECK(is_hit(w.get("/a")));
        settings["access"]["deny_destinations"] = json::array({"127.0.0.1"});
        settings["access"]["allow_destinations"] = json::array();
        w.proxy.reload(settings);
        CHECK(w.get("/b").status == 403);
        CHECK(w.get("/a").status == 403);
    }

    TEST_CASE("an address that a reload denies is reached by no name, until another allows it") {
        const temp_dir directory;
        fake_origin origin;
        auto settings = basic_settings();
        settings["threads"] = 1;  // which keeps the connection to the origin, for all that follow
        settings["dns"] = {{"hosts_file", directory.write("hosts", "127.0.0.1 good.test\n")}};
        const proxy_process proxy{settings};
        origin.otherwise(sends(ok("", "hello")));
        const auto request = [&](const std::string& path) {
            return absolute_request("GET",
                                    "http://good.test:" + std::to_string(origin.port()) + path);
        };
        auto kept = proxy.connect();
        CHECK(kept.ask(request("/a")).body == "hello");
        auto denying = settings;
        denying["access"]["deny_destinations"] = json::array({"127.0.0.0/8"});
        proxy.reload(denying);
        CHECK(kept.ask(request("/b")).status == 403);
        CHECK(proxy.connect().ask(request("/c")).status == 403);
        CHECK(origin.asked() == 1);
        proxy.reload(settings);
        CHECK(kept.ask(request("/d")).status == 200);
        CHECK(proxy.connect().ask(request("/e")).status == 200);
    }

}  // TEST_SUITE
