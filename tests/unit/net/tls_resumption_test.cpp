#include "proxy/net/tls_resumption.hpp"
#include "tests/unit/net/tls_bench.hpp"

#include <doctest/doctest.h>

#include <openssl/ssl.h>

namespace reprise::proxy::net::test::of_tls_resumption_test {
namespace {

using namespace std::chrono_literals;
using tests::made_certificate;
using tests::tls_peer;

constexpr int both_versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

/// A server of b.test that seals its tickets under these keys, whatever connection they come on.
struct server_side {
    made_certificate identity = known_authority().issue("DNS:b.test");
    tls_peer::server_wishes wanted;

    explicit server_side(int newest) {
        wanted.newest = newest;
        wanted.ticket_keys = std::string(80, 'k');
    }
};

/// One connection: what was said arrives, and what comes after the handshake is read.
struct visit {
    tls_bench bench;
    tls_peer peer;
    std::optional<byte_stream> stream;

    visit(const server_side& server, tls_server to)
        : peer{tls_peer::server(bench.far_socket(), server.identity, server.wanted)} {
        bool shook = false;
        bench.on_thread([&] { shook = peer.shake_hands(); });
        auto made = bench.connected(std::move(to), trust_of_the_test());
        bench.join_running();
        REQUIRE(made.has_value());
        REQUIRE(shook);
        stream.emplace(std::move(*made));
    }
    void talk() {
        REQUIRE(peer.send("hello"));
        CHECK(bench.finish(read_exactly(*stream, 5)) == "hello");
    }
};

/// Whether a whole connection resumed a session of an earlier one.
bool resumes(const server_side& server,
             tls_resumption& sessions,
             const std::string& host = "b.test",
             std::uint16_t port = 443) {
    visit one{server, {host, port, &sessions}};
    one.talk();
    return one.peer.resumed();
}

/// Whether a connection to b.test that begins at this time has a session to resume.
bool is_offered_at(steady_time now, tls_resumption& sessions) {
    const auto trust = trust_of_the_test();
    const auto connection = trust->begin("b.test");
    sessions.offer(connection.get(), "b.test:443", now);
    return SSL_get0_session(connection.get()) != nullptr;
}

}  // namespace

TEST_SUITE_BEGIN("net/tls_resumption");

TEST_CASE("the next connection to the same host and port resumes, and no other does") {
    for (const int version : both_versions) {
        CAPTURE(version);
        server_side server{version};
        server.identity = known_authority().issue("DNS:b.test,DNS:c.test");
        tls_resumption sessions;
        CHECK_FALSE(resumes(server, sessions));
        CHECK(sessions.size() > 0);
        CHECK_FALSE(resumes(server, sessions, "b.test", 8443));
        CHECK_FALSE(resumes(server, sessions, "c.test"));
        CHECK(resumes(server, sessions));
        CHECK(resumes(server, sessions, "b.test", 8443));
        CHECK(resumes(server, sessions, "c.test"));
        CHECK(resumes(server, sessions));
    }
}

TEST_CASE("without a table nothing is resumed") {
    const server_side server{0};
    for (int i = 0; i < 2; ++i) {
        visit one{server, {"b.test", 443, nullptr}};
        one.talk();
        CHECK_FALSE(one.peer.resumed());
    }
}

TEST_CASE("a session of TLS 1.3 resumes one connection, one of TLS 1.2 any number") {
    for (const int version : both_versions) {
        CAPTURE(version);
        const server_side server{version};
        tls_resumption sessions;
        CHECK_FALSE(resumes(server, sessions));
        const auto kept = sessions.size();
        REQUIRE(kept > 0);
        const bool once = version == TLS1_3_VERSION;
        for (std::size_t i = 1; i <= kept; ++i) {
            const visit open{server, {"b.test", 443, &sessions}};  // reads no further ticket
            CHECK(open.peer.resumed());
            CHECK(sessions.size() == (once ? kept - i : kept));
        }
        const visit next{server, {"b.test", 443, &sessions}};
        CHECK(next.peer.resumed() == !once);
    }
}

TEST_CASE("what was forgotten resumes nothing, nor what a connection from before brings") {
    for (const int version : both_versions) {
        CAPTURE(version);
        const server_side server{version};
        tls_resumption sessions;
        visit open{server, {"b.test", 443, &sessions}};
        static_cast<void>(resumes(server, sessions));
        CHECK(sessions.size() > 0);
        sessions.forget();
        CHECK(sessions.size() == 0);
        open.talk();  // with TLS 1.3 its tickets are read here
        CHECK(sessions.size() == 0);
        CHECK_FALSE(resumes(server, sessions));
        CHECK(resumes(server, sessions));
    }
}

TEST_CASE("a session is resumed for two hours, whatever its server allows") {
    for (const int version : both_versions) {
        CAPTURE(version);
        const server_side server{version};
        tls_resumption sessions;
        CHECK_FALSE(resumes(server, sessions));
        CHECK(is_offered_at(steady_now() + tls_resumption::longest - 1min, sessions));
        CHECK_FALSE(is_offered_at(steady_now() + tls_resumption::longest + 1min, sessions));
        CHECK(sessions.size() == 0);
    }
}

TEST_CASE(
    "a session is resumed until its server's certificate ends, and so is what comes of that") {
    for (const int version : both_versions) {
        server_side server{version};
        server.identity = known_authority().issue("DNS:b.test", {.until = 10min});
        for (const int visits : {1, 2}) {
            for (const auto& [later, is_offered] :
                 {std::pair{9min, true}, std::pair{11min, false}}) {
                CAPTURE(version);
                CAPTURE(visits);
                CAPTURE(later.count());
                tls_resumption sessions;
                for (int i = 0; i < visits; ++i) {
                    REQUIRE(resumes(server, sessions) == (i > 0));
                }
                REQUIRE(sessions.size() > 0);
                CHECK(is_offered_at(steady_now() + later, sessions) == is_offered);
            }
        }
    }
}

TEST_CASE("of one server some are kept, those of last") {
    const server_side server{TLS1_2_VERSION};
    tls_resumption sessions;
    // Each is a full handshake: nothing is known when it begins.
    std::vector<std::unique_ptr<visit>> open;
    for (std::size_t i = 0; i < tls_resumption::most_of_server; ++i) {
        open.push_back(std::make_unique<visit>(server, tls_server{"b.test", 443, &sessions}));
        open.back()->talk();
        REQUIRE(open.back()->peer.resumed() == (i > 0));
    }
    CHECK(sessions.size() == 1);
    // The server's keys change again and again: its newest ticket is the one it takes.
    for (int i = 0; i < 10; ++i) {
        auto changed = server;
        changed.wanted.ticket_keys = std::string(80, static_cast<char>('a' + i));
        CHECK_FALSE(resumes(changed, sessions));
        CHECK(resumes(changed, sessions));
        CHECK(sessions.size() <= tls_resumption::most_of_server);
    }
    CHECK(sessions.size() == tls_resumption::most_of_server);
}

TEST_CASE("of all servers some are kept, those of longest ago go first") {
    const server_side server{TLS1_2_VERSION};
    const auto port_of = [](std::size_t i) { return static_cast<std::uint16_t>(1000 + i); };
    tls_resumption sessions;
    for (std::size_t i = 0; i < tls_resumption::most + 3; ++i) {
        visit one{server, {"b.test", port_of(i), &sessions}};
        REQUIRE(sessions.size() == std::min(i + 1, tls_resumption::most));
    }
    const auto resumed = [&](std::size_t i) {
        const visit one{server, {"b.test", port_of(i), &sessions}};
        return one.peer.resumed();
    };
    CHECK(resumed(3));
    CHECK(resumed(tls_resumption::most + 2));
    CHECK_FALSE(resumed(2));
    CHECK_FALSE(resumed(3));  // gave way to the one before
    CHECK(sessions.size() == tls_resumption::most);
}

TEST_CASE("a session that would take much memory is not kept") {
    for (const int version : both_versions) {
        CAPTURE(version);
        server_side server{version};
        server.identity.certificate +=
            known_authority().issue_as("DNS:x.test", {.comment_bytes = 40'000}).certificate;
        tls_resumption sessions;
        CHECK_FALSE(resumes(server, sessions));
        CHECK(sessions.size() == 0);
        CHECK_FALSE(resumes(server, sessions));
    }
}

TEST_CASE("a connection that outlives the table is as before") {
    for (const int version : both_versions) {
        CAPTURE(version);
        const server_side server{version};
        auto sessions = std::make_unique<tls_resumption>();
        visit one{server, {"b.test", 443, sessions.get()}};
        sessions.reset();
        one.talk();
    }
}

TEST_CASE("a server that takes no ticket of its own any more shakes hands in full") {
    for (const int version : both_versions) {
        CAPTURE(version);
        server_side server{version};
        tls_resumption sessions;
        CHECK_FALSE(resumes(server, sessions));
        server.wanted.ticket_keys = std::string(80, 'n');
        CHECK_FALSE(resumes(server, sessions));
        CHECK(resumes(server, sessions));
        // It has also another version now, and another certificate.
        server.wanted.newest = version == TLS1_2_VERSION ? TLS1_3_VERSION : TLS1_2_VERSION;
        server.identity = known_authority().issue("DNS:b.test");
        CHECK_FALSE(resumes(server, sessions));
        CHECK(resumes(server, sessions));
    }
}

TEST_CASE("a session that began with its status is resumed without one") {
    for (const int version : both_versions) {
        CAPTURE(version);
        server_side server{version};
        server.identity = known_authority().issue_as("DNS:b.test", {.must_staple = true});
        server.wanted.stapled = known_authority().status_of(server.identity.certificate);
        tls_resumption sessions;
        CHECK_FALSE(resumes(server, sessions));
        server.wanted.stapled.clear();
        CHECK(resumes(server, sessions));
    }
}

TEST_CASE("of a server that is not believed no session is kept") {
    for (const int version : both_versions) {
        CAPTURE(version);
        server_side server{version};
        server.identity = known_authority().issue("DNS:c.test");
        tls_resumption sessions;
        tls_bench bench;
        auto peer = tls_peer::server(bench.far_socket(), server.identity, server.wanted);
        bench.on_thread([&] {
            if (peer.shake_hands()) {
                static_cast<void>(peer.read_to_end());
            }
        });
        CHECK(bench.connected({"b.test", 443, &sessions}, trust_of_the_test()).has_error());
        bench.join_running();
        CHECK(sessions.size() == 0);
    }
}

TEST_CASE("a certificate that is good for longer than a time can be ahead ends no session") {
    for (const int version : both_versions) {
        CAPTURE(version);
        server_side server{version};
        server.identity = known_authority().issue("DNS:b.test",
                                                  {.until = std::chrono::hours{24 * 365 * 1000}});
        tls_resumption sessions;
        CHECK_FALSE(resumes(server, sessions));
        CHECK(resumes(server, sessions));
        CHECK(is_offered_at(steady_now() + tls_resumption::longest - 1min, sessions));
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::net::test::of_tls_resumption_test
