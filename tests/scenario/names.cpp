// Names become addresses: hosts file, DNS with TTLs, negative answers, and a guard on the result.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"
#include "tests/support/fake_dns.hpp"

#include <optional>
#include <stdexcept>
#include <vector>

TEST_SUITE("scenario/names") {

    using namespace reprise::tests;

    namespace {

    /// An origin on loopback that is known by names, and a DNS server that says so.
    struct named_world {
        fake_origin origin;
        fake_dns dns;
        temp_dir directory;

        /// Where its server answers, a question is asked again after a fifth of `timeout`, and is one more then.
        [[nodiscard]] json settings(const std::string& timeout = "30s") const {
            auto out = basic_settings();
            out["dns"] = {{"servers", json::array({dns.endpoint()})},
                          {"hosts_file", directory.file("hosts")},
                          {"negative_ttl", "5m"},
                          {"timeout", timeout}};
            return out;
        }
        [[nodiscard]] std::string url(const std::string& host,
                                      const std::string& path = "/a") const {
            return "http://" + host + ":" + std::to_string(origin.port()) + path;
        }
    };

    }  // namespace

    TEST_CASE("a name is asked for once in its time to live") {
        named_world w;
        w.dns.add("www.example.test", "127.0.0.1", std::chrono::seconds{300});
        w.origin.on("/a", ok("Connection: close\r\n", "hello"));
        const proxy_process proxy{w.settings()};
        for (int i = 0; i < 12; ++i) {
            CHECK(proxy.get(w.url("www.example.test")).body == "hello");
        }
        // Each thread may ask for itself.
        CHECK(w.dns.asked("www.example.test", dns_type::a) <= 2);
        CHECK(w.dns.asked("www.example.test", dns_type::a) >= 1);
        const auto stats = proxy.stats();
        CHECK(figure(stats, "/dns/queries") >= 1);
        CHECK(figure(stats, "/dns/cached") >= 10);
        CHECK(figure(stats, "/dns/failures") == 0);
        CHECK(w.origin.requests("/a").at(0).get("Host") ==
              "www.example.test:" + std::to_string(w.origin.port()));
    }

    TEST_CASE("a name is asked for again when its time to live is over") {
        named_world w;
        w.dns.add("www.example.test", "127.0.0.1", std::chrono::seconds{1});
        w.origin.on("/a", ok("Connection: close\r\n", "hello"));
        const proxy_process proxy{w.settings()};
        CHECK(proxy.get(w.url("www.example.test")).body == "hello");
        CHECK(eventually([&] {
            return proxy.get(w.url("www.example.test")).body == "hello" &&
                   w.dns.asked("www.example.test", dns_type::a) > 2;
        }));
    }

    TEST_CASE("a name that does not exist is 502 with dns_error, and not asked for at once again") {
        named_world w;
        const proxy_process proxy{w.settings()};
        const auto begun = std::chrono::steady_clock::now();
        for (int i = 0; i < 10; ++i) {
            const auto answer = proxy.get(w.url("nowhere.example.test"));
            CHECK(answer.status == 502);
            CHECK(answer.get("Proxy-Status").find("error=dns_error") != std::string::npos);
            CHECK(answer.body.find("nowhere.example.test") != std::string::npos);
        }
        // Where one family's answer is late, that there is no such name is believed for a second.
        const auto seconds = std::chrono::floor<std::chrono::seconds>(
            std::chrono::steady_clock::now() - begun);
        CHECK(w.dns.asked("nowhere.example.test", dns_type::a) <= 2 + seconds.count());
        CHECK(figure(proxy.stats(), "/dns/failures") >= 1);
    }

    TEST_CASE("a name server that is silent is 504 in bounded time") {
        named_world w;
        w.dns.be_silent();
        const proxy_process proxy{w.settings("2s")};
        const auto answer = proxy.get(w.url("www.example.test"));
        CHECK(answer.status == 504);
        CHECK(answer.get("Proxy-Status").find("error=dns_timeout") != std::string::npos);
    }

    TEST_CASE("the hosts file goes before DNS") {
        named_world w;
        w.directory.write("hosts",
                          "# comment\n127.0.0.1\tlocal.example.test  alias.example.test\n");
        w.origin.on("/a", ok("", "hello"));
        const proxy_process proxy{w.settings()};
        CHECK(proxy.get(w.url("local.example.test")).body == "hello");
        CHECK(proxy.get(w.url("alias.example.test")).body == "hello");
        CHECK(proxy.get(w.url("ALIAS.example.test")).body == "hello");
        CHECK(w.dns.asked("local.example.test", dns_type::a) == 0);
    }

    TEST_CASE("a name that DNS points at loopback is refused: rebinding gets nowhere") {
        named_world w;
        w.dns.add("rebind.example.test", "127.0.0.1", std::chrono::seconds{0});
        w.dns.add("metadata.example.test", "169.254.169.254", std::chrono::seconds{60});
        w.dns.add("mapped.example.test", "::ffff:127.0.0.1", std::chrono::seconds{60});
        auto settings = w.settings();
        settings["access"].erase("allow_destinations");
        const proxy_process proxy{settings};
        for (const std::string host :
             {"rebind.example.test", "metadata.example.test", "mapped.example.test"}) {
            CAPTURE(host);
            CHECK(proxy.get(w.url(host)).status == 403);
        }
        CHECK(w.origin.connections() == 0);
    }

    TEST_CASE("when one address refuses, the others are tried") {
        named_world w;
        w.dns.add(
            "two.example.test", "127.0.0.9", std::chrono::seconds{60});  // nobody listens there
        w.dns.add("two.example.test", "127.0.0.1", std::chrono::seconds{60});
        w.dns.add("both.example.test", "::1", std::chrono::seconds{60});
        w.dns.add("both.example.test", "127.0.0.1", std::chrono::seconds{60});
        auto settings = w.settings();
        settings["access"]["allow_destinations"] = json::array({"127.0.0.0/8", "::1"});
        settings["threads"] = 1;  // each has answers of its own
        w.origin.on("/a", ok("Connection: close\r\n", "hello"));
        const proxy_process proxy{settings};
        // An answer of one family is not waited for longer than 50 ms behind the other's, and kept when it comes.
        CHECK(eventually([&] { return proxy.get(w.url("both.example.test")).body == "hello"; }));
        for (int i = 0; i < 3; ++i) {
            CHECK(proxy.get(w.url("two.example.test")).body == "hello");
            CHECK(proxy.get(w.url("both.example.test")).body == "hello");
        }
    }

    TEST_CASE("many requests for one name at once are one question") {
        named_world w;
        w.dns.add("www.example.test", "127.0.0.1", std::chrono::seconds{60});
        w.origin.otherwise([](origin_request& request, origin_connection& connection) {
            connection.send(ok("", request.target));
        });
        const proxy_process proxy{w.settings()};
        std::vector<client> all;
        for (int i = 0; i < 20; ++i) {
            all.push_back(proxy.connect(
                absolute_request("GET", w.url("www.example.test", "/" + std::to_string(i)))));
        }
        for (int i = 0; i < 20; ++i) {
            CHECK(all[static_cast<std::size_t>(i)].read().body == "/" + std::to_string(i));
        }
        CHECK(w.dns.asked("www.example.test", dns_type::a) <= 2);
    }

    TEST_CASE("names that cannot be names are refused without asking") {
        named_world w;
        const proxy_process proxy{w.settings()};
        for (const std::string& host :
             {std::string(300, 'a'), std::string(64, 'a') + ".test", std::string{"a..b.test"}}) {
            CAPTURE(host);
            const auto answer = proxy.get(w.url(host));
            CHECK(answer.status >= 400);
            CHECK(answer.complete());
        }
    }

    TEST_CASE("an IPv6 origin is reached by its literal, which is part of the key") {
        std::optional<fake_origin> origin;
        try {
            origin.emplace(origin_options{.address = "::1"});
        } catch (const std::runtime_error&) {
            MESSAGE("skipped: this machine has no ::1");
            return;
        }
        auto settings = storing_settings();
        settings["access"]["allow_destinations"] = json::array({"::1"});
        const proxy_process proxy{settings};
        origin->on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(proxy.get(origin->url("/a")).body == "hello");
        CHECK(is_hit(proxy.get(origin->url("/a"))));
        CHECK(origin->requests("/a").at(0).get("Host") == origin->authority());
    }

}  // TEST_SUITE
