// The pool's connections with TLS: kept apart, and only under those who are believed now.

#include "tests/unit/net/pool_bench.hpp"

#include <openssl/ssl.h>
#include <string>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace reprise;

TEST_SUITE_BEGIN("net/origin_pool_tls");

TEST_CASE("a connection with TLS is kept for the next, and apart from one without") {
    pool_bench bench;
    bench.pool.set_trust(trust_of_the_test());
    waiting first;
    const auto peer = bench.shake_hands_with(known_authority().issue("IP:127.0.0.1"), first);
    REQUIRE(first);
    REQUIRE(first->has_value());
    auto lease = std::move(**first);
    CHECK(lease.endpoint().starts_with("127.0.0.1:"));
    REQUIRE_FALSE(bench.finish(write_text(lease.socket(), "question")));
    std::string heard;
    std::thread far{[&] {
        heard = peer->read(8);
        peer->send("answer");
    }};
    CHECK(bench.finish(read_exactly(lease.socket(), 6)) == "answer");
    far.join();
    CHECK(heard == "question");
    lease.give_back();

    CHECK_FALSE(bench.pool.try_acquire({"127.0.0.1", bench.port, false, false}));
    auto again = bench.pool.try_acquire({"127.0.0.1", bench.port, false, true});
    REQUIRE(again);
    CHECK(again.reused());
    again.give_back();

    // Its end is noticed before it is used again.
    peer->finish_sending();
    bench.run_until([&] {
        auto idle = bench.pool.try_acquire({"127.0.0.1", bench.port, false, true});
        const bool gone = !idle;
        idle.give_back();
        return gone;
    });
    CHECK(bench.pool.figures().stale == 1);
    CHECK(bench.open() == 0);
}

TEST_CASE("a body that TLS did not end is not taken for whole") {
    pool_bench bench;
    bench.pool.set_trust(trust_of_the_test());
    waiting got;
    const auto peer = bench.shake_hands_with(known_authority().issue("IP:127.0.0.1"), got);
    REQUIRE(got);
    REQUIRE(got->has_value());
    auto lease = std::move(**got);
    REQUIRE_FALSE(bench.finish(write_text(lease.socket(), "question")));
    std::thread far{[&] {
        static_cast<void>(peer->read(8));
        peer->send("half an ans");
        peer->truncate();
    }};
    const auto heard = bench.finish(read_until_end(lease.socket()));
    far.join();
    CHECK(heard.bytes == "half an ans");
    CHECK(heard.end == asio::error::connection_reset);
}

TEST_CASE("a bad certificate is a failed dial that leaves no connection open") {
    pool_bench bench;
    bench.pool.set_trust(trust_of_the_test());
    waiting got;
    const auto peer = bench.shake_hands_with(tests::self_signed("IP:127.0.0.1"), got);
    REQUIRE(got);
    REQUIRE(got->has_error());
    CHECK(got->error().code == failure_code::tls_certificate);
    CHECK(bench.pool.figures().failures == 1);
    CHECK(bench.open() == 0);
}

namespace {

/// A word of the far side's, and with it what it sends behind the handshake.
void hear_from(pool_bench& bench, tests::tls_peer& peer, origin_lease& lease) {
    REQUIRE(peer.send("hello"));
    CHECK(bench.finish(read_exactly(lease.socket(), 5)) == "hello");
}

}  // namespace

TEST_CASE("an idle connection is used no more when those that are believed have changed") {
    pool_bench bench;
    const auto trust = trust_of_the_test();
    bench.pool.set_trust(trust);
    waiting got;
    const auto peer = bench.shake_hands_with(known_authority().issue("IP:127.0.0.1"), got);
    REQUIRE((got && got->has_value()));
    (*got)->give_back();
    const origin_address to{"127.0.0.1", bench.port, false, true};
    bench.pool.set_trust(trust);
    auto again = bench.pool.try_acquire(to);
    REQUIRE(again);
    again.give_back();
    bench.pool.set_trust(trust_of_the_test());
    CHECK_FALSE(bench.pool.try_acquire(to));
    CHECK(bench.open() == 0);
}

TEST_CASE("those who are believed at the handshake judge it, not those at the dial's beginning") {
    const auto shown = known_authority().issue("DNS:a.test,IP:127.0.0.1");
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        CAPTURE(version);
        const tests::tls_peer::server_wishes server{.ticket_keys = std::string(80, 'k'),
                                                    .newest = version};
        pool_bench bench;
        bench.pool.set_trust(trust_of_the_test());
        const auto list = known_authority().revoke(shown.certificate);
        waiting first, second;
        auto peer = bench.shake_hands_with(
            shown, first, server, [&] { bench.pool.set_trust(heeding(list)); });
        REQUIRE(first);
        CHECK(first->has_error());
        if (first->has_value()) {
            hear_from(bench, *peer, **first);
            (*first)->close();
        }
        // Nor is there a session by which a revoked certificate would not be looked at.
        peer = bench.shake_hands_with(shown, second, server, [] {});
        REQUIRE((second && second->has_error()));
        CHECK(second->error().detail == "the certificate of a.test: certificate revoked");
        CHECK_FALSE(peer->resumed());
    }
}

TEST_CASE("a connection is kept under those who judged it, and so is its session") {
    const auto shown = known_authority().issue("DNS:a.test,IP:127.0.0.1");
    const tests::tls_peer::server_wishes server{.ticket_keys = std::string(80, 'k')};
    pool_bench bench;
    bench.pool.set_trust(trust_of_the_test());
    waiting first, second;
    auto peer = bench.shake_hands_with(
        shown, first, server, [&] { bench.pool.set_trust(trust_of_the_test()); });
    REQUIRE((first && first->has_value()));
    hear_from(bench, *peer, **first);
    (*first)->give_back();
    auto again = bench.pool.try_acquire({"a.test", bench.port, false, true});
    REQUIRE(again);
    again.close();
    peer = bench.shake_hands_with(shown, second, server, [] {});
    REQUIRE((second && second->has_value()));
    CHECK(peer->resumed());
}

TEST_SUITE_END();
