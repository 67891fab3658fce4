#include "tests/unit/serve/hello_waits.hpp"

#include <initializer_list>

// What is passed on, and what ends before that.

namespace reprise::proxy::serve::test::of_hello_wait {

namespace {

std::string bytes(std::initializer_list<int> all) {
    std::string out;
    for (const int one : all) {
        out += static_cast<char>(one);
    }
    return out;
}

}  // namespace

TEST_SUITE_BEGIN("serve/hello_wait");

TEST_CASE(
    "what is no hello, or none of ours to answer, is passed on with every byte, and told why") {
    const struct {
        std::string said, why;
    } rows[]{
        {"SSH-2.0-client\r\n", "no TLS"},
        {bytes({21, 3, 3, 0, 2, 2, 40}), "no TLS"},  // an alert
        {bytes({22, 3, 1, 0, 1, 2}), "TLS, but no ClientHello"},
        {bytes({22, 3, 1, 0, 0}), "a record's length is not one"},
        {bytes({22, 3, 1, 0, 4, 1, 16, 0, 0}), "the hello is too large"},  // as its header says
        {hello_of("x.b.test"), "sni"},
        {hello_of(nullptr), "sni"},
        {hello_of("a.test", "\x02h2"), "alpn"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.why);
        const auto said = row.said + "and what follows it";
        far_end far;
        waiting one{opening(far.port())};
        one.begin();
        one.says(said);
        REQUIRE(one.is_passed_on());
        CHECK(!one.stream.patience().armed());  // it would end the tunnel
        auto there = far.accept();
        CHECK(one.read(there, said.size()) == said);
        asio::write(there, asio::buffer("answer", 6));
        CHECK(one.read(one.here.theirs, 6) == "answer");
        error_code ignored;
        there.shutdown(tcp_socket::shutdown_send, ignored);
        one.here.theirs.shutdown(tcp_socket::shutdown_send, ignored);
        REQUIRE(one.is_over());
        CHECK(one.how == ended::close);
        CHECK(one.why_passed_on() == row.why);
        const auto& counts = one.at.w.counts;
        CHECK(counts.tunnels_passed_on.read() == 1);
        CHECK(counts.tunnels_opened.read() == 0);
        CHECK(counts.bytes_to_origins.read() == said.size());
        CHECK(counts.bytes_from_origins.read() == 6);
        CHECK(one.stream.bytes_in() == one.connect.size() + said.size());
        CHECK(one.counted(outcome::tunnel) == 1);
        CHECK(one.at.settings->leaves->made() == 0);
        CHECK(!one.who.inside);
    }
}

TEST_CASE("what came with CONNECT is looked at first, and passed on as what comes later is") {
    far_end far;
    waiting one{opening(far.port())};
    one.begin("SSH-2.0-");
    REQUIRE(one.is_passed_on());
    one.says("client\r\n");
    auto there = far.accept();
    CHECK(one.read(there, 16) == "SSH-2.0-client\r\n");
    CHECK(one.why_passed_on() == "no TLS");
}

TEST_CASE("a client that says nothing has a second, and then its server speaks first") {
    far_end far;
    waiting one{opening(far.port())};
    one.is_connected();
    const auto before = steady_now();
    one.begin_alone();
    const auto begun = steady_now();
    auto& patience = one.stream.patience();
    CHECK(patience.armed());
    one.at.w.timer.tick(before + 1s - 1ms);
    CHECK(!patience.expired());
    one.at.w.timer.tick(begun + 1s);
    CHECK(patience.expired());
    REQUIRE(one.is_passed_on());
    auto there = far.accept();
    asio::write(there, asio::buffer("SSH-2.0-server\r\n", 16));
    CHECK(one.read(one.here.theirs, 16) == "SSH-2.0-server\r\n");
    CHECK(one.why_passed_on() == "no hello in time");
}

TEST_CASE("bytes of a hello do not lengthen its time, and go on to whom it was passed") {
    const auto half = hello_of("a.test").substr(0, 100);
    far_end far;
    waiting one{opening(far.port())};
    one.is_connected();
    one.begin_alone();
    const auto begun = steady_now();
    for (std::size_t said = 0; said < half.size(); said += 25) {
        one.says(half.substr(said, 25));
        (void)one.goes_on_until([&] { return one.stream.input().size() > said || one.nexts > 0; });
    }
    one.at.w.timer.tick(begun + 1s);
    CHECK(one.stream.patience().expired());
    REQUIRE(one.is_passed_on());
    auto there = far.accept();
    CHECK(one.read(there, half.size()) == half);
    CHECK(one.why_passed_on() == "no hello in time");
}

TEST_CASE("a client that ends, or leaves, within its hello is not waited for") {
    const auto half = hello_of("a.test").substr(0, 100);
    for (const bool resets : {false, true}) {
        CAPTURE(resets);
        far_end far;
        waiting one{opening(far.port())};
        one.begin();
        one.says(half);
        REQUIRE(one.goes_on_until([&] { return one.stream.input().size() == half.size(); }));
        error_code ignored;
        if (resets) {
            one.here.theirs.set_option(asio::socket_base::linger{true, 0});
            one.here.theirs.close();
        } else {
            one.here.theirs.shutdown(tcp_socket::shutdown_send, ignored);
        }
        REQUIRE(one.is_passed_on());
        CHECK(one.why_passed_on() == "no hello in time");
        if (!resets) {
            auto there = far.accept();
            CHECK(one.read(there, half.size() + 1) == half);  // and then its end
        }
    }
}

TEST_CASE("where nobody listens the client, which has its 200, is broken off") {
    asio::io_context io{1};
    const net::closed_port nobody{io};
    waiting one{opening(nobody.port)};
    one.begin("SSH-2.0-client\r\n");
    REQUIRE(one.is_over());
    CHECK(one.how == ended::gone);
    CHECK(one.nexts == 0);
    CHECK(one.stream.failed());
    error_code over;
    CHECK(one.goes_on_until([&] {
        char none = 0;
        (void)one.here.theirs.read_some(asio::buffer(&none, 1), over);
        return over && over != asio::error::would_block;
    }));
    CHECK(over == asio::error::connection_reset);
    CHECK(one.counted(outcome::error) == 1);
    CHECK(one.counted(outcome::tunnel) == 0);
}

TEST_CASE(
    "a connection that is closed for the program's end is over, and nobody is dialled for it") {
    for (const bool by_then : {true, false}) {
        CAPTURE(by_then);
        far_end far;
        waiting one{opening(far.port())};
        error_code ignored;
        if (by_then) {
            one.is_connected(hello_of("a.test"));
            one.stream.socket().close(ignored);
            one.begin_alone();
        } else {
            one.begin();
            CHECK(!one.how);
            one.stream.socket().close(ignored);
        }
        REQUIRE(one.is_over());
        CHECK(one.how == ended::gone);
        CHECK(!one.is_broken);
        CHECK(one.at.w.counts.tunnels_passed_on.read() == 0);
        CHECK(one.at.w.counts.tunnels_refused.read() == 0);
        CHECK(one.at.settings->leaves->made() == 0);
        CHECK(far.has_nobody());
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_hello_wait
