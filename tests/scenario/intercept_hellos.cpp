// What begins a tunnel that might be opened: what is no hello, or not ours to answer, passes with every byte, and whoever
// stalls holds nobody up.

#include "tests/scenario/opened_world.hpp"

#include <algorithm>
#include <atomic>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <thread>
#include <vector>

TEST_SUITE("scenario/intercept_hellos") {

    using namespace reprise::tests;

    namespace {

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

    }  // namespace

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
        struct by_bytes {
            trickle carrier;
            tls_client client;
            explicit by_bytes(const opened_world& to)
                : carrier{to.connect("a.test")},
                  client{carrier.take(), to.wishes("a.test")} {}
        };
        const auto one = w.in_time([&w] { return std::make_unique<by_bytes>(w); });
        CHECK(one->client.ask(w.get("a.test", "/a")).body == "hello");
        CHECK(w.figure("opened") == 1);
    }

    TEST_CASE("no name, another protocol, and TLS of old are passed on, each counted by why") {
        opened_world w{
            json::object(), storing_settings(), of_origins().issue("DNS:a.test"), {.weak = true}};
        w.origin.on("/a", ok("", "hello"));
        const auto ask = [&](const std::string& why, auto&& change) {
            auto wanted = w.wishes("a.test");
            wanted.trusted = of_origins().certificate();
            change(wanted);
            // Until its hello is in time to be read.
            CHECK(eventually([&] {
                tls_client one{w.connect("a.test"), wanted};
                CHECK(one.ask(w.get("a.test", "/a")).body == "hello");
                return w.passed_on("a.test").contains(why);
            }));
        };
        ask("sni", [](auto& wanted) { wanted.host.clear(); });
        ask("alpn", [](auto& wanted) { wanted.alpn = "\x02h2"; });
        ask("tls-version", [](auto& wanted) {
            wanted.weak = true;
            wanted.newest = TLS1_1_VERSION;
        });
        CHECK(w.figure("opened") == 0);
        CHECK(w.passed_on("a.test") == json{{"sni", 1}, {"alpn", 1}, {"tls-version", 1}});
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
        REQUIRE(eventually([&] { return w.origin.connections() >= 2; }));  // the silent one's
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
}
