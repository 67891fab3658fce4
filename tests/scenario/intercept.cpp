// Tunnels that are opened for caching, and everything that passes byte for byte instead.

#include "tests/scenario/world.hpp"
#include "tests/support/tls_client.hpp"

#include <atomic>
#include <csignal>
#include <memory>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>

TEST_SUITE("scenario/intercept") {

    using namespace reprise::tests;

    namespace {

    /// What the origin's certificate comes from, and what the proxy's CA does: two roots.
    const test_authority& of_origins() {
        static const test_authority one;
        return one;
    }
    const test_authority& of_the_proxy() {
        static const test_authority one;
        return one;
    }

    std::string number(std::size_t value, int bytes) {
        std::string out;
        while (bytes-- > 0) {
            out += static_cast<char>(value >> (8 * bytes));
        }
        return out;
    }
    std::string extension(unsigned type, const std::string& body) {
        return number(type, 2) + number(body.size(), 2) + body;
    }
    /// A hello of TLS 1.3 (RFC 8446 4.1.2) for a.test, with these extensions too, in records.
    std::string hello_with(const std::string& more, bool names_host = true) {
        const std::string host = "a.test";
        const auto name = number(host.size() + 3, 2) + '\0' + number(host.size(), 2) + host;
        const auto extensions = (names_host ? extension(0, name) : "") +
                                extension(43, std::string{"\x02\x03\x04"}) + more;
        const auto body = "\x03\x03" + std::string(32, 'r') + '\0' + number(2, 2) + "\x13\x01" +
                          std::string{"\x01\x00", 2} + number(extensions.size(), 2) + extensions;
        const auto message = '\x01' + number(body.size(), 3) + body;
        std::string records;
        for (std::size_t at = 0; at < message.size(); at += 16'384) {
            const auto part = message.substr(at, 16'384);
            records += "\x16\x03\x01" + number(part.size(), 2) + part;
        }
        return records;
    }

    /// Carries a connection's bytes to the far end one by one, each in a segment of its own, and the
    /// answers as they come.
    class trickle {
    public:
        explicit trickle(stream far) : far_{std::move(far)} {
            int ends[2];
            REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
            near_ = stream{ends[0]};
            mine_ = stream{ends[1]};
            carries_ = std::thread{[this] { carry(); }};
        }
        ~trickle() {
            over_ = true;
            carries_.join();
        }
        [[nodiscard]] stream take() { return std::move(near_); }

    private:
        void carry() {
            using std::chrono::milliseconds;
            while (!over_) {
                std::string bytes;
                (void)mine_.read_some(bytes, milliseconds{1});
                for (const char byte : bytes) {
                    far_.send(std::string_view{&byte, 1});
                }
                bytes.clear();
                (void)far_.read_some(bytes, milliseconds{1});
                if (!bytes.empty()) {
                    mine_.send(bytes);
                }
            }
        }
        stream far_, near_{-1}, mine_{-1};
        std::atomic<bool> over_{false};
        std::thread carries_;
    };

    constexpr std::string_view cacheable = "Cache-Control: max-age=60\r\n";

    /// An https origin by the names a.test, b.test and c.test; the first two are listed.
    struct opened_world {
        temp_dir files;
        fake_origin origin;
        json settings;
        std::unique_ptr<proxy_process> proxy;

        explicit opened_world(const json& more = json::object(),
                              const json& from = storing_settings(),
                              const made_certificate& made = of_origins().issue(
                                  "DNS:a.test,DNS:b.test,DNS:x.b.test,DNS:c.test"),
                              const tls_peer::server_wishes& origins_tls = {})
            : origin{{.identity = made, .tls = origins_tls}},
              settings(from) {
            const auto ca = of_the_proxy().issue_authority();
            const auto key = files.write("ca.key", ca.key);
            REQUIRE(::chmod(key.c_str(), 0600) == 0);
            settings["intercept"] = {{"hosts", {"a.test", "b.test"}},
                                     {"clients", {"127.0.0.0/8"}},
                                     {"ports", {origin.port()}},
                                     {"ca_certificate", files.write("ca.pem", ca.certificate)},
                                     {"ca_key", key}};
            settings["intercept"].update(more);
            settings["access"]["connect_ports"] = settings["intercept"]["ports"];
            settings["origins"]["ca_file"] = files.write("origins.pem", of_origins().certificate());
            settings["dns"]["hosts_file"] = files.write(
                "hosts", "127.0.0.1 a.test\n127.0.0.1 b.test x.b.test\n127.0.0.1 c.test\n");
            proxy = std::make_unique<proxy_process>(settings);
        }
        [[nodiscard]] std::string at(const std::string& host) const {
            return host + ':' + std::to_string(origin.port());
        }
        [[nodiscard]] std::string connect_request(const std::string& host) const {
            return connect_request(host, origin.port());
        }
        [[nodiscard]] static std::string connect_request(const std::string& host,
                                                         std::uint16_t port) {
            const auto at = host + ':' + std::to_string(port);
            return "CONNECT " + at + " HTTP/1.1\r\nHost: " + at + "\r\n\r\n";
        }
        /// A connection that has had its 200.
        [[nodiscard]] stream connect(const std::string& host,
                                     const std::string& from = "127.0.0.1") const {
            return connect(host, origin.port(), from);
        }
        [[nodiscard]] stream connect(const std::string& host,
                                     std::uint16_t port,
                                     const std::string& from = "127.0.0.1") const {
            auto one = stream::connect(proxy->port(), from);
            one.send(connect_request(host, port));
            std::string head;
            while (head.find("\r\n\r\n") == std::string::npos) {
                REQUIRE(one.read_some(head, patience, 1) == read_end::data);
            }
            REQUIRE(head.starts_with("HTTP/1.1 200 "));
            return one;
        }
        [[nodiscard]] tls_peer::wishes wishes(const std::string& host) const {
            tls_peer::wishes wanted;
            wanted.trusted = of_the_proxy().certificate();
            wanted.host = host;
            return wanted;
        }
        [[nodiscard]] std::unique_ptr<tls_client> enter(
            const std::string& host, const std::string& from = "127.0.0.1") const {
            return std::make_unique<tls_client>(connect(host, from), wishes(host));
        }
        [[nodiscard]] std::string get(const std::string& host,
                                      const std::string& path,
                                      const std::string& fields = "") const {
            return "GET " + path + " HTTP/1.1\r\nHost: " + at(host) + "\r\n" + fields + "\r\n";
        }
        /// Through a tunnel, to the origin's own certificate.
        void check_passed_on(const std::string& host) const {
            auto wanted = wishes(host);
            wanted.trusted = of_origins().certificate();
            tls_client one{connect(host), wanted};
            CHECK(one.ask(get(host, "/a")).body == "hello");
        }
        /// The settings with other members of intercept, and the proxy told.
        void reload(const json& more) {
            settings["intercept"].update(more);
            proxy->reload(settings);
        }
        [[nodiscard]] std::uint64_t figure(const char* name) const {
            return proxy->stats()["intercept"][name].get<std::uint64_t>();
        }
    };

    }  // namespace

    TEST_CASE("what a listed host says is stored, and hit with the origin stopped") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        const auto one = w.enter("a.test");
        const auto first = one->ask(w.get("a.test", "/a"));
        CHECK(first.body == "hello");
        CHECK(cache_status_of(first).stored);
        CHECK(is_hit(one->ask(w.get("a.test", "/a"))));
        w.origin.stop();
        const auto hit = w.enter("a.test")->ask(w.get("a.test", "/a"));
        CHECK(is_hit(hit));
        CHECK(hit.body == "hello");
        CHECK(w.origin.count("/a") == 1);
        CHECK(w.figure("opened") == 2);
        CHECK(w.proxy->logged("/a")["url"] == "https://" + w.at("a.test") + "/a");
        // The key is that of the URL itself.
        CHECK(is_hit(w.proxy->get("https://" + w.at("a.test") + "/a")));
    }

    TEST_CASE("a host that is not listed passes, and so does one that is excepted") {
        opened_world w{{{"hosts", {"a.test", "*.b.test"}}, {"except", {"x.b.test"}}}};
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        w.check_passed_on("c.test");
        w.check_passed_on("x.b.test");
        w.check_passed_on("c.test");
        CHECK(w.origin.count("/a") == 3);
        CHECK(w.figure("opened") == 0);
    }

    TEST_CASE("a client that does not take our certificate is tunnelled the next time, it alone") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        auto pinned = w.wishes("a.test");
        pinned.trusted = of_origins().certificate();
        CHECK_THROWS_AS((tls_client{w.connect("a.test"), pinned}), std::runtime_error);
        REQUIRE(eventually([&] { return w.figure("refused") == 1; }));
        w.check_passed_on("a.test");
        // Another host of the same client is opened.
        CHECK(w.enter("b.test")->ask(w.get("b.test", "/a")).body == "hello");
        CHECK(w.figure("opened") == 1);
    }

    TEST_CASE("what one client refuses is opened for another, and for it where it shall fail") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        auto pinned = w.wishes("a.test");
        pinned.trusted = of_origins().certificate();
        CHECK_THROWS_AS((tls_client{w.connect("a.test"), pinned}), std::runtime_error);
        REQUIRE(eventually([&] { return w.figure("refused") == 1; }));
        CHECK(w.enter("a.test", "127.0.0.2")->ask(w.get("a.test", "/a")).body == "hello");
        w.check_passed_on("a.test");
        w.reload({{"on_refusal", "fail"}});
        CHECK(is_hit(w.enter("a.test")->ask(w.get("a.test", "/a"))));
    }

    TEST_CASE("a client that reaches us by TLS has its tunnels opened inside that") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        const auto own = of_the_proxy().issue("IP:127.0.0.1");
        w.settings["listeners"] = json::array(
            {json{{"address", "127.0.0.1:0"},
                  {"tls",
                   {{"certificate", w.files.write("own.pem", own.certificate)},
                    {"key", w.files.write("own.key", own.key)}}}}});
        w.proxy = std::make_unique<proxy_process>(w.settings);
        tls_peer::wishes of_listener;
        of_listener.trusted = of_the_proxy().certificate();
        for (int i = 0; i < 2; ++i) {
            tls_client outer{w.proxy->port(), of_listener};
            outer.http().send(w.connect_request("a.test"));
            REQUIRE(outer.http().read_head("CONNECT").status == 200);
            tls_client inner{stream{outer.http().connection().release()}, w.wishes("a.test")};
            const std::string large(300 * kib, 'x');
            w.origin.on("/large", ok(std::string{cacheable}, large));
            CHECK(inner.ask(w.get("a.test", "/a")).body == "hello");
            CHECK(inner.ask(w.get("a.test", "/large")).body == large);
        }
        CHECK(w.origin.count("/a") == 1);
        CHECK(w.origin.count("/large") == 1);
        CHECK(w.figure("opened") == 2);
    }

    TEST_CASE("what the guard refuses is refused at CONNECT, and no tunnel opened to it") {
        opened_world w;
        w.settings["access"]["deny_destinations"] = json::array({"127.0.0.1"});
        w.settings["access"].erase("allow_destinations");
        w.proxy = std::make_unique<proxy_process>(w.settings);
        auto one = stream::connect(w.proxy->port());
        one.send(w.connect_request("a.test"));
        client asks{std::move(one)};
        CHECK(asks.read("CONNECT").status == 403);
        CHECK(w.figure("opened") == 0);
    }

    TEST_CASE("a host that is listed from a reload on is refused inside a tunnel that is open") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        const auto one = w.enter("a.test");
        CHECK(one->ask(w.get("a.test", "/a")).status == 200);
        w.settings["access"]["block_lists"] = {w.files.write("listed", "a.test\n")};
        w.proxy->reload(w.settings);
        CHECK(one->ask(w.get("a.test", "/a")).status == 403);
    }

    TEST_CASE("a websocket passes inside an opened tunnel") {
        opened_world w;
        w.origin.on("/ws", [](origin_request&, origin_connection& connection) {
            connection.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "
                            "websocket\r\nSec-WebSocket-Accept: "
                            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello");
            std::string got;
            while (got.size() < 4 && connection.read_some(got) == read_end::data) {
            }
            connection.send("got " + got);
            connection.close();
        });
        const auto one = w.enter("a.test");
        one->http().send(
            w.get("a.test",
                  "/ws",
                  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"));
        CHECK(one->http().read_head().status == 101);
        CHECK(one->http().read_raw(5) == "hello");
        one->http().send("ping");
        CHECK(one->http().read_raw(8) == "got ping");
    }

    TEST_CASE("what is asked in an opened tunnel is limited by limits.client_rate") {
        auto settings = storing_settings();
        settings["limits"]["client_rate"] = "1MiB";
        opened_world w{json::object(), settings};
        const auto body = patterned(512 * kib);
        w.origin.on("/a", ok(std::string{cacheable}, body));
        const auto one = w.enter("a.test");
        CHECK(one->ask(w.get("a.test", "/a")).body == body);
        const auto waited = w.proxy->stats()["clients"]["rate_waits"].get<int>();
        CHECK(waited > 0);
        CHECK(hit_body(one->ask(w.get("a.test", "/a"))) == body);
        CHECK(w.proxy->stats()["clients"]["rate_waits"].get<int>() > waited);
    }

    TEST_CASE("what went stale stands in for an origin that is down, inside too") {
        opened_world w;
        w.origin.on("/a", ok("Cache-Control: max-age=0, stale-if-error=600\r\n", "hello"));
        CHECK(w.enter("a.test")->ask(w.get("a.test", "/a")).body == "hello");
        w.origin.stop();
        const auto got = w.enter("a.test")->ask(w.get("a.test", "/a"));
        CHECK(got.status == 200);
        CHECK(got.body == "hello");
    }

    TEST_CASE("a host that a new intermediate allows is opened from the reload on") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        w.check_passed_on("c.test");
        authority_wishes wider;
        wider.constraints =
            "critical,permitted;DNS:a.test,permitted;DNS:b.test,permitted;DNS:c.test,"
            "excluded;IP:0.0.0.0/0.0.0.0,excluded;IP:::/::";
        const auto ca = of_the_proxy().issue_authority(wider);
        w.files.write("ca.pem", ca.certificate);
        w.files.write("ca.key", ca.key);
        w.reload({{"hosts", {"a.test", "b.test", "c.test"}}});
        CHECK(w.enter("c.test")->ask(w.get("c.test", "/a")).body == "hello");
        CHECK(w.figure("opened") == 1);
    }

    TEST_CASE("a client that leaves at once, and without a word, has refused our certificate") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        const auto asks = w.enter("b.test");
        CHECK(asks->ask(w.get("b.test", "/a")).body == "hello");
        asks->leave(false);
        const auto says_so = w.enter("a.test");
        says_so->http().connection().finish_sending();
        REQUIRE(eventually([&] { return w.figure("refused") == 1; }));
        w.check_passed_on("a.test");
        // Who has asked has not: the host is opened for it again.
        CHECK(is_hit(w.enter("b.test")->ask(w.get("b.test", "/a"))));
        CHECK(w.figure("refused") == 1);
        w.enter("b.test", "127.0.0.3")->leave(true);
        REQUIRE(eventually([&] { return w.figure("refused") == 2; }));
    }

    TEST_CASE("a spare connection that a client leaves has refused nothing") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        const auto spare = w.enter("a.test");
        const auto one = w.enter("a.test");
        CHECK(one->ask(w.get("a.test", "/a")).body == "hello");
        spare->leave(false);
        one->leave(false);
        REQUIRE(eventually([&] { return w.proxy->stats()["clients"]["open"] == 0; }));
        CHECK(is_hit(w.enter("a.test")->ask(w.get("a.test", "/a"))));
        CHECK(w.figure("refused") == 0);
    }

    TEST_CASE("a client that leaves an opened tunnel later has refused nothing") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        const auto early = w.enter("a.test");
        const auto one = w.enter("b.test");
        std::this_thread::sleep_for(std::chrono::milliseconds{1'500});
        early->leave(true);
        CHECK(one->ask(w.get("b.test", "/a")).body == "hello");
        CHECK(w.enter("a.test")->ask(w.get("a.test", "/a")).body == "hello");
        CHECK(w.figure("refused") == 0);
    }

    TEST_CASE("hellos that are not ours to answer pass with every byte") {
        opened_world w;
        w.origin.on("/a", ok("", "hello"));
        auto other = w.wishes("b.test");
        other.trusted = of_origins().certificate();
        tls_client by_name{w.connect("a.test"), other};  // SNI is not CONNECT's host
        CHECK(by_name.ask(w.get("b.test", "/a")).body == "hello");
        CHECK(w.figure("passed_on") == 1);
        CHECK(w.figure("opened") == 0);
    }

    TEST_CASE("a client that speaks no TLS, and a server that speaks first, get every byte") {
        // A plain server on the port that is listed.
        acceptor server;
        const auto names = json{{"ports", {server.port()}}};
        auto settings = storing_settings();
        opened_world w{names, settings};
        settings = w.settings;
        settings["access"]["connect_ports"] = json::array({server.port()});
        w.proxy->reload(settings);
        const auto to = "a.test:" + std::to_string(server.port());
        for (const bool server_first : {true, false}) {
            auto one = stream::connect(w.proxy->port());
            one.send("CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n\r\n");
            std::string got;
            while (got.find("\r\n\r\n") == std::string::npos) {
                REQUIRE(one.read_some(got, patience, 1) == read_end::data);
            }
            if (!server_first) {
                one.send("SSH-2.0-client\r\n");
            }
            auto far = server.accept(patience);
            far.send("SSH-2.0-server\r\n");
            CHECK(one.read_at_least(16) == "SSH-2.0-server\r\n");
            if (server_first) {
                one.send("SSH-2.0-client\r\n");
            }
            CHECK(far.read_at_least(16) == "SSH-2.0-client\r\n");
        }
        CHECK(w.figure("opened") == 0);
        CHECK(w.figure("passed_on") == 2);
    }

    TEST_CASE("a hello in segments of a byte is read, and opened") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        trickle by_bytes{w.connect("a.test")};
        tls_client one{by_bytes.take(), w.wishes("a.test")};
        CHECK(one.ask(w.get("a.test", "/a")).body == "hello");
        CHECK(w.figure("opened") == 1);
    }

    TEST_CASE("no name, another protocol, and TLS of old are passed on, each counted by why") {
        opened_world w{
            json::object(), storing_settings(), of_origins().issue("DNS:a.test"), {.weak = true}};
        w.origin.on("/a", ok("", "hello"));
        const auto ask = [&](auto&& change) {
            auto wanted = w.wishes("a.test");
            wanted.trusted = of_origins().certificate();
            change(wanted);
            tls_client one{w.connect("a.test"), wanted};
            CHECK(one.ask(w.get("a.test", "/a")).body == "hello");
        };
        ask([](auto& wanted) { wanted.host.clear(); });
        ask([](auto& wanted) { wanted.alpn = "\x02h2"; });
        ask([](auto& wanted) {
            wanted.weak = true;
            wanted.newest = TLS1_1_VERSION;
        });
        CHECK(w.figure("opened") == 0);
        const auto why = w.proxy->stats()["intercept"]["hosts"]["passed_on"]["a.test"];
        CHECK(why == json{{"sni", 1}, {"alpn", 1}, {"tls-version", 1}});
    }

    TEST_CASE("hellos too large, without a name, or half of one: every byte arrives") {
        acceptor server;
        opened_world w{json{{"ports", {server.port()}}}};
        auto settings = w.settings;
        settings["access"]["connect_ports"] = json::array({server.port()});
        w.proxy->reload(settings);
        const auto to = "a.test:" + std::to_string(server.port());
        const auto whole = hello_with({});
        for (const auto& said : {hello_with(extension(21, std::string(20'000, '\0'))),
                                 hello_with({}, false),
                                 whole.substr(0, whole.size() / 2)}) {
            CAPTURE(said.size());
            auto one = stream::connect(w.proxy->port());
            one.send("CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n\r\n");
            std::string head;
            while (head.find("\r\n\r\n") == std::string::npos) {
                REQUIRE(one.read_some(head, patience, 1) == read_end::data);
            }
            one.send(said);
            auto far = server.accept(patience);
            CHECK(far.read_at_least(said.size()) == said);
            far.send("answer");
            CHECK(one.read_at_least(6) == "answer");
        }
        CHECK(w.figure("opened") == 0);
    }

    TEST_CASE("a client that says nothing is passed on after a second, and holds nobody up") {
        opened_world w;
        w.origin.on("/a", ok("", "hello"));
        auto silent = w.connect("a.test");
        const auto one = w.enter("a.test");
        CHECK(one->ask(w.get("a.test", "/a")).body == "hello");
        REQUIRE(eventually([&] { return w.origin.connections() == 2; }));  // the silent one's
        CHECK(w.figure("opened") == 1);
    }

    // 8,000 of them are 40 MiB at most.
    TEST_CASE("who stalls before its hello is over takes little memory, waited for and passed on") {
        constexpr std::size_t count = 1'500, each = (40u << 20) / 8'000;
        acceptor far;  // whose connections nobody accepts
        auto from = storing_settings();
        from["limits"]["client_connections"] = 2 * count;
        from["limits"]["connections_per_client"] = 2 * count;
        opened_world w{{{"ports", {far.port()}}, {"on_refusal", "fail"}}, from};
        const auto resident = [&] {
            return w.proxy->stats()["process"]["resident_bytes"].get<std::uint64_t>();
        };
        std::string host = "a.test", said;
        SUBCASE("nothing is said") {}
        SUBCASE("half a hello") {
            said = hello_with("").substr(0, 40);
        }
        SUBCASE("of a host that is not listed") {
            host = "c.test";
        }
        CAPTURE(host);
        CAPTURE(said.size());
        const auto begin = [&](std::vector<stream>& into, std::size_t n) {
            for (std::size_t i = 0; i < n; ++i) {
                into.push_back(w.connect(host, far.port()));
                into.back().send(said);
            }
        };
        {
            std::vector<stream> first;
            begin(first, 64);  // what few take is there from then on
        }
        const auto before = resident();
        std::vector<stream> all;
        begin(all, count / 2);
        auto most = resident();
        begin(all, count - count / 2);
        most = std::max(most, resident());
        if (host == "a.test") {
            REQUIRE(eventually([&] { return w.figure("passed_on") >= count; }));
            most = std::max(most, resident());
        }
        if (!sanitized) {
            CHECK(most < before + count * each);
        }
    }

    TEST_CASE("inside, a request is for CONNECT's host and for no other") {
        opened_world w;
        w.origin.on("/a", ok("", "hello"));
        const auto one = w.enter("a.test");
        CHECK(one->ask(w.get("b.test", "/a")).status == 421);
        const auto two = w.enter("a.test");
        CHECK(two->ask("CONNECT " + w.at("b.test") + " HTTP/1.1\r\nHost: " + w.at("a.test") +
                       "\r\n\r\n")
                  .status == 400);
        const auto three = w.enter("a.test");
        CHECK(three
                  ->ask("GET http://" + w.at("a.test") + "/a HTTP/1.1\r\nHost: " + w.at("a.test") +
                        "\r\n\r\n")
                  .status == 400);
        CHECK(w.origin.asked() == 0);
        // Pages for peers are none of an opened host's paths.
        const auto four = w.enter("a.test");
        CHECK(four->ask(w.get("a.test", "/a")).body == "hello");
    }

    TEST_CASE("what answers a Cookie inside is stored with a stated lifetime and leave to share") {
        opened_world w;
        w.origin.on("/max-age", ok("Cache-Control: max-age=60\r\n", "hello"));
        w.origin.on("/public", ok("Cache-Control: public, max-age=60\r\n", "hello"));
        w.origin.on("/heuristic",
                    ok("Cache-Control: public\r\nLast-Modified: Mon, 01 Jan 2001 00:00:00 GMT\r\n",
                       "hello"));
        const auto one = w.enter("a.test");
        const auto stored = [&](const std::string& path, const std::string& fields) {
            (void)one->ask(w.get("a.test", path, fields));
            return is_hit(one->ask(w.get("a.test", path, fields)));
        };
        CHECK_FALSE(stored("/max-age", "Cookie: a=b\r\n"));
        CHECK_FALSE(stored("/heuristic", "Cookie: a=b\r\n"));
        CHECK(stored("/public", "Cookie: a=b\r\n"));
        CHECK(stored("/max-age", ""));
    }

    TEST_CASE("ways past us are not told, what protects the client is") {
        opened_world w;
        w.origin.on(
            "/a", ok("Alt-Svc: h3=\":443\"\r\nStrict-Transport-Security: max-age=1\r\n", "hello"));
        const auto got = w.enter("a.test")->ask(w.get("a.test", "/a"));
        CHECK(got.get("Alt-Svc").empty());
        CHECK(got.get("Strict-Transport-Security") == "max-age=1");
    }

    TEST_CASE("an origin with a bad certificate is a 502 inside, and nothing is stored") {
        opened_world w{json::object(), storing_settings(), self_signed("DNS:a.test")};
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        const auto got = w.enter("a.test")->ask(w.get("a.test", "/a"));
        CHECK(got.status == 502);
        CHECK(got.body.find("self-signed") != std::string::npos);
        CHECK(w.origin.asked() == 0);
    }

    TEST_CASE("an expired certificate, or another host's, is a 502 inside, and the next good one "
              "serves") {
        using std::chrono::hours;
        for (const auto& bad : {of_origins().issue("DNS:a.test", {-hours{48}, -hours{1}}),
                                of_origins().issue("DNS:other.test")}) {
            opened_world w{json::object(), storing_settings(), bad};
            w.origin.on("/a", ok(std::string{cacheable}, "hello"));
            const auto one = w.enter("a.test");
            CHECK(one->ask(w.get("a.test", "/a")).status == 502);
            CHECK(w.origin.asked() == 0);
            w.origin.identify_as(of_origins().issue("DNS:a.test"));
            CHECK(one->ask(w.get("a.test", "/a")).body == "hello");
        }
    }

    TEST_CASE("what a CA must not be is said at once, and a reload keeps the old") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        CHECK(w.enter("a.test")->ask(w.get("a.test", "/a")).body == "hello");
        REQUIRE(::chmod(w.files.file("ca.key").c_str(), 0644) == 0);
        w.proxy->signal(SIGHUP);
        CHECK(w.proxy->says("intercept.ca_key"));
        CHECK(is_hit(w.enter("a.test")->ask(w.get("a.test", "/a"))));
    }

    TEST_CASE("a server that asks for a client's certificate is not asked in its client's place") {
        using asking = tls_peer::server_wishes::asking;
        for (const auto how : {asking::asks, asking::insists}) {
            for (const int newest : {TLS1_2_VERSION, TLS1_3_VERSION}) {
                CAPTURE(static_cast<int>(how));
                CAPTURE(newest);
                opened_world w{json::object(),
                               storing_settings(),
                               of_origins().issue("DNS:a.test,DNS:b.test"),
                               {.newest = newest, .client = how}};
                w.origin.on("/a", ok(std::string{cacheable}, "hello"));
                const auto got = w.enter("a.test")->ask(w.get("a.test", "/a"));
                CHECK(got.status == 502);
                CHECK(got.body.find("intercept.except") != std::string::npos);
                CHECK(lower(got.get("Connection")) == "close");  // the next is passed on
                CHECK(w.origin.asked() == 0);
                const auto told = w.proxy->admin("/explain?method=CONNECT&url=" + w.at("a.test"));
                CHECK(json::parse(told.body)["opened"]["why"] == "host-refused");
                // From now on who asks is known to the server, or isn't, as it was before us.
                auto wanted = w.wishes("a.test");
                wanted.trusted = of_origins().certificate();
                if (how == asking::asks) {
                    w.check_passed_on("a.test");
                } else {
                    auto peer = tls_peer::client(w.connect("a.test").release(), wanted);
                    (void)peer.shake_hands();
                }
                CHECK(w.figure("opened") == 1);
                const auto why = w.proxy->stats()["intercept"]["hosts"]["passed_on"]["a.test"];
                CHECK(why == json{{"host-refused", 1}});
            }
        }
    }

    TEST_CASE("outside of tunnels a server that asks for a certificate may answer without one") {
        for (const int newest : {TLS1_2_VERSION, TLS1_3_VERSION}) {
            using asking = tls_peer::server_wishes::asking;
            const auto got_from = [newest](asking how) {
                opened_world w{json::object(),
                               storing_settings(),
                               of_origins().issue("DNS:a.test"),
                               {.newest = newest, .client = how}};
                w.origin.on("/a", ok(std::string{cacheable}, "hello"));
                return w.proxy->get("https://" + w.at("a.test") + "/a");
            };
            CHECK(got_from(asking::asks).body == "hello");
            const auto refused = got_from(asking::insists);
            CHECK(refused.status == 502);
            CHECK(cache_status_of(refused).detail == "tls_client_certificate");
        }
    }

    TEST_CASE("each host's tunnels are told of, and what would open those with most bytes") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        for (int i = 0; i < 2; ++i) {
            const auto one = w.enter("a.test");
            (void)one->ask(w.get("a.test", "/a"));
            (void)one->ask(w.get("a.test", "/a"));
        }
        w.check_passed_on("c.test");
        REQUIRE(eventually([&] { return !w.proxy->stats()["tunnels"]["advice"].empty(); }));
        const auto stats = w.proxy->stats();
        const auto& hosts = stats["intercept"]["hosts"];
        CHECK(hosts["opened"] == json{{"a.test", 2}});
        CHECK(hosts["requests"] == json{{"a.test", 4}});
        CHECK(hosts["hits"] == json{{"a.test", 3}});
        CHECK(hosts["leaves"] == json{{"a.test", 1}});
        CHECK(stats["intercept"]["ca_validity_seconds"].get<double>() >= 0);
        const auto& advice = stats["tunnels"]["advice"][0];
        CHECK(advice["host"] == "c.test");
        CHECK(advice["why"] == "not-listed");
        CHECK(advice["bytes"].get<std::uint64_t>() > 500);  // a certificate went by
        CHECK(advice["line"] == R"("hosts": ["a.test","b.test","c.test"])");
        const auto metrics = w.proxy->admin("/metrics").body;
        CHECK(metrics.find(R"(reprise_intercept_host_hits_total{host="a.test"} 3)") !=
              std::string::npos);
    }

}  // TEST_SUITE
