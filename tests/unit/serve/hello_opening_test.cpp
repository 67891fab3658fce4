#include "tests/unit/net/tls_bench.hpp"
#include "tests/unit/serve/hello_waits.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

// What is opened, or was to be.

namespace reprise::proxy::serve::test::of_hello_wait {

TEST_SUITE_BEGIN("serve/hello_opening");

TEST_CASE("a hello is answered when its last byte has come, in whatever pieces") {
    const std::string hellos[]{hello_of("a.test"), long_hello()};
    REQUIRE(hellos[1].size() > 2 * 4096);
    for (const auto& hello : hellos) {
        const bool is_long = hello.size() > 4096;
        CAPTURE(is_long);
        far_end far;
        waiting one{opening(far.port())};
        one.begin();
        const auto step = is_long ? hello.size() - 1 : 1;
        for (std::size_t said = 0; said + 1 < hello.size(); said += step) {
            one.says(hello.substr(said, step));
            REQUIRE(one.goes_on_until([&] { return one.stream.input().size() == said + step; }));
        }
        CHECK(one.shaking_hands() == 0);
        CHECK(one.told == 0);
        one.says(hello.substr(hello.size() - 1));
        REQUIRE(one.is_shaking_hands());
        CHECK(one.stream.input().empty());
        CHECK(one.read(one.here.theirs, 1) == "\x16");
        CHECK(!one.how);
        one.here.theirs.close();
        REQUIRE(one.is_over());
        CHECK(one.how == ended::gone);
        CHECK(one.shaking_hands() == 0);
        CHECK(one.at.w.counts.tunnels_refused.read() == 1);
        CHECK(one.at.w.counts.tunnels_passed_on.read() == 0);
        CHECK(far.has_nobody());
    }
}

TEST_CASE("a tunnel that is opened is the connection's from then on, and nobody is dialled") {
    far_end far;
    waiting one{opening(far.port())};
    one.begin();
    auto client = one.client(net::root_of_the_test().certificate());
    bool shook = false;
    one.client_does([&] { shook = client.shake_hands() && client.send("question"); });
    CAPTURE(client.why());
    CHECK(shook);
    REQUIRE(one.is_over());
    CHECK(one.how == ended::keep);
    CHECK(one.nexts == 0);
    auto& ours = one.stream.socket();
    REQUIRE(ours.is_encrypted());
    CHECK(ours.protocol() == "http/1.1");
    CHECK(!one.stream.reply_under_way());
    CHECK(one.stream.input().empty());
    CHECK(!one.stream.patience().armed());
    REQUIRE(one.who.inside);
    CHECK(one.who.inside->host == "a.test");
    CHECK(one.who.inside->port == far.port());
    CHECK(one.who.inside->counts);
    CHECK(one.who.opened != steady_time{});
    std::string heard;
    (void)one.goes_on_until([&] {
        std::array<char, 64> room{};
        error_code error;
        const auto got = ours.try_read(asio::buffer(room), error);
        heard.append(room.data(), got);
        return heard.size() >= 8 || error;
    });
    CHECK(heard == "question");
    const auto figures = one.figures();
    CHECK(figures.opened == 1);
    CHECK(figures.leaves == 1);
    CHECK(figures.refused == 0);
    CHECK(figures.passed_on.empty());
    CHECK(one.at.w.counts.tunnels_opened.read() == 1);
    CHECK(one.shaking_hands() == 0);
    CHECK(one.counted(outcome::tunnel) == 1);
    CHECK(!one.knows_refusal());
    CHECK(far.has_nobody());
}

TEST_CASE(
    "a client that does not take our certificate is remembered, where it is to be tunnelled") {
    const tests::test_authority another;
    for (const auto answer :
         {reprise::config::refusal_answer::tunnel, reprise::config::refusal_answer::fail}) {
        const bool tunnels = answer == reprise::config::refusal_answer::tunnel;
        CAPTURE(tunnels);
        far_end far;
        auto options = opening(far.port());
        options.intercept->on_refusal = answer;
        waiting one{options};
        one.begin();
        auto client = one.client(another.certificate());
        bool shook = true;
        one.client_does([&] { shook = client.shake_hands(); });
        CHECK(!shook);
        REQUIRE(one.is_over());
        CHECK(one.how == ended::gone);
        CHECK(!one.is_broken);
        CHECK(!one.who.inside);
        CHECK(one.at.w.counts.tunnels_refused.read() == 1);
        CHECK(one.at.w.counts.tunnels_opened.read() == 0);
        CHECK(one.figures().refused == 1);
        CHECK(one.shaking_hands() == 0);
        CHECK(one.knows_refusal() == tunnels);
        CHECK(far.has_nobody());
    }
}

TEST_CASE("a handshake has as long as a head, and five seconds at most; out of time it refuses "
          "nothing") {
    for (const bool by_setting : {true, false}) {
        CAPTURE(by_setting);
        far_end far;
        auto options = opening(far.port());
        options.timeouts.client_head = by_setting ? 1ms : 1h;
        waiting one{options};
        one.begin(hello_of("a.test"));
        if (by_setting) {
            const auto late = steady_now() + 1ms;
            auto now = steady_now();
            for (; now < late; now = steady_now()) {
            }
            one.at.w.timer.tick(now);
        } else {
            REQUIRE(one.shaking_hands() == 1);
            one.at.w.timer.tick(steady_now() + 5s);
        }
        one.settle();
        CHECK(one.how == ended::gone);
        CHECK(one.shaking_hands() == 0);
        CHECK(one.at.w.counts.tunnels_refused.read() == 1);
        if (by_setting) {
            CHECK(!one.knows_refusal());
        }
    }
}

TEST_CASE(
    "of a client that reaches us by TLS the connection is open for as long as it is carried") {
    far_end far;
    waiting one{opening(far.port())};
    auto outer = tests::tls_peer::client(
        one.here.theirs.release(),
        {.trusted = net::known_authority().certificate(), .host = "a.test"});
    std::optional<attempt<net::byte_stream>> secured;
    auto shaking = net::accept_tls(one.stream.socket().take_socket(),
                                   net::identity_for(net::known_authority().issue("DNS:a.test")),
                                   one.at.w.timer,
                                   net::late());
    asio::co_spawn(one.at.w.io,
                   net::test_loop::put_into(std::move(shaking), secured),
                   [](const std::exception_ptr& thrown) { CHECK(!thrown); });
    bool shook = false;
    one.client_does([&] { shook = outer.shake_hands(); });
    REQUIRE(shook);
    REQUIRE(one.goes_on_until([&] { return secured.has_value(); }));
    REQUIRE(secured->has_value());
    one.stream.go_on_over(std::move(**secured));
    one.has_asked();
    one.begin_alone();
    one.stream.patience().expire_after(1h);
    CHECK(one.open.use_count() == 1);
    REQUIRE(outer.send(hello_of("a.test")));
    REQUIRE(one.is_shaking_hands());
    CHECK(one.open.use_count() == 2);
    outer.reset();
    REQUIRE(one.is_over());
    CHECK(one.how == ended::gone);
    CHECK(one.goes_on_until([&] { return one.open.use_count() == 1; }));
}

namespace {

net::address_bytes in_crowd(std::uint32_t number) {
    return net::canonical(asio::ip::address_v4{0xC0000200u + number});
}

/// So many handshakes that have begun before, each of another client where `whose` is none.
void crowd(waiting& one, std::uint32_t others, std::optional<net::address_bytes> whose = {}) {
    for (std::uint32_t i = 0; i < others; ++i) {
        REQUIRE(one.at.common.shaking_hands.enter(whose.value_or(in_crowd(i)), 384, 384));
    }
}

/// It is passed on, and tells why.
void is_passed_on_among(waiting& one, far_end& far, const std::string& hello) {
    const auto others = one.shaking_hands();
    one.begin(hello);
    REQUIRE(one.is_passed_on());
    auto there = far.accept();
    CHECK(one.read(there, hello.size()) == hello);
    CHECK(one.why_passed_on() == "too many handshakes");
    CHECK(one.shaking_hands() == others);
    CHECK(one.at.settings->leaves->made() == 0);
}

}  // namespace

TEST_CASE("so many shake hands at once, and who comes then is passed on") {
    for (const std::uint32_t others : {383u, 384u}) {
        CAPTURE(others);
        const auto hello = hello_of("a.test");
        far_end far;
        waiting one{opening(far.port())};
        crowd(one, others);
        if (others == 384) {
            is_passed_on_among(one, far, hello);
            continue;
        }
        one.begin(hello);
        CHECK(one.shaking_hands() == 384);
        CHECK(one.read(one.here.theirs, 1) == "\x16");
    }
}

TEST_CASE(
    "of one client a quarter shake hands, so that others are opened; a front has no such share") {
    const auto hello = hello_of("a.test");
    far_end far;
    auto options = opening(far.port());
    bool is_opened = true;
    std::uint32_t others = 96;
    SUBCASE("the client's last place") {
        others = 95;
    }
    SUBCASE("one too many") {
        is_opened = false;
    }
    SUBCASE("of another") {
        waiting one{options};
        one.who.at = net::canonical(asio::ip::address_v4::loopback());
        crowd(one, others, in_crowd(1));
        one.begin(hello);
        CHECK(one.shaking_hands() == others + 1);
        return;
    }
    SUBCASE("of a front") {
        options.access.fronts.push_back({net::canonical(asio::ip::address_v4::loopback()), 128});
    }
    waiting one{options};
    one.who.at = net::canonical(asio::ip::address_v4::loopback());
    crowd(one, others, one.who.at);
    if (is_opened) {
        one.begin(hello);
        CHECK(one.shaking_hands() == others + 1);
        CHECK(one.read(one.here.theirs, 1) == "\x16");
    } else {
        is_passed_on_among(one, far, hello);
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_hello_wait
