#include "proxy/net/relay.hpp"
#include "tests/unit/net/loop.hpp"

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace std::chrono_literals;

namespace {

/// client <-> (a  tunnel  b) <-> origin
struct tunnel_bench final : test_loop, relaying::owner {
    socket_pair left = connected_pair(io);
    socket_pair right = connected_pair(io);
    tcp_socket& client = left.ours;
    tcp_socket& origin = right.ours;
    byte_stream a{std::move(left.theirs)};
    byte_stream b{std::move(right.theirs)};
    client_rates rates{0};
    counter waits;
    rate_share to_client{io, waits};
    relaying both{a, b, timer, *this, &to_client};
    std::optional<relay_result> result;

    void run(std::string from_a = {},
             std::string from_b = {},
             std::chrono::milliseconds idle = std::chrono::milliseconds{test_patience}) {
        begun = true;
        both.begin(std::move(from_a), std::move(from_b), idle);
        REQUIRE(!result);  // it is told of by the loop
    }
    ~tunnel_bench() {
        if (begun && !result) {
            timer.stop();
            (void)end();
        }
    }
    bool begun = false;
    void on_relayed(const relay_result& how) override { result = how; }
    void on_loop_gone() noexcept override {}
    relay_result end() {
        run_until([&] { return result.has_value(); });
        REQUIRE(result);
        return *result;
    }
    void send(tcp_socket& from, std::string text) { start(send_all(from, std::move(text))); }
    static awaitable<void> send_all(tcp_socket& from, std::string text) {
        static_cast<void>(co_await write_text(from, std::move(text)));
    }
};

}  // namespace

TEST_SUITE_BEGIN("net/relay");

TEST_CASE("bytes pass both ways, those read before the tunnel first") {
    tunnel_bench bench;
    bench.run("early ", "soon ");
    bench.send(bench.client, "question");
    CHECK(bench.finish(read_exactly(bench.origin, 14)) == "early question");
    bench.send(bench.origin, "answer");
    CHECK(bench.finish(read_exactly(bench.client, 11)) == "soon answer");
    bench.client.shutdown(tcp_socket::shutdown_send);
    bench.origin.shutdown(tcp_socket::shutdown_send);
    const auto ended = bench.end();
    CHECK(ended.end == relay_end::finished);
    CHECK(ended.a_to_b == 14);
    CHECK(ended.b_to_a == 11);
}

TEST_CASE("the end of one direction is passed on and the other goes on") {
    tunnel_bench bench;
    bench.run();
    bench.finish(write_text(bench.client, "all I have to say"));
    bench.client.shutdown(tcp_socket::shutdown_send);
    CHECK(bench.finish(read_to_end(bench.origin)) == "all I have to say");
    CHECK(!bench.result);
    const auto body = pattern(3 << 20);
    bench.send(bench.origin, body);
    CHECK(bench.finish(read_exactly(bench.client, body.size())) == body);
    bench.origin.shutdown(tcp_socket::shutdown_send);
    CHECK(bench.end().end == relay_end::finished);
    CHECK(bench.finish(read_to_end(bench.client)).empty());
}

TEST_CASE("much passes both ways at once, whole") {
    tunnel_bench bench;
    bench.run();
    const auto there = pattern(5 << 20);
    const auto back = pattern(7 << 20);
    bench.send(bench.client, there);
    bench.send(bench.origin, back);
    CHECK(bench.finish(read_exactly(bench.origin, there.size())) == there);
    CHECK(bench.finish(read_exactly(bench.client, back.size())) == back);
    bench.client.close();
    bench.origin.close();
    const auto ended = bench.end();
    CHECK(ended.a_to_b == there.size());
    CHECK(ended.b_to_a == back.size());
}

TEST_CASE("nothing is read from a side while the other does not take it") {
    tunnel_bench bench;
    bench.run();
    std::uint64_t sent = 0;
    const std::string block(64 << 10, 'x');
    // Until nothing has been taken for a while: what fits in the kernel's buffers and one block.
    for (auto quiet_since = steady_now(); steady_now() - quiet_since < 200ms;) {
        error_code error;
        const auto count = bench.client.write_some(asio::buffer(block), error);
        REQUIRE((!error || error == asio::error::would_block));
        if (count > 0) {
            sent += count;
            quiet_since = steady_now();
        }
        bench.run_for(1ms);
        REQUIRE(sent < (64u << 20));
    }
    CHECK(bench.finish(read_exactly(bench.origin, sent)) == std::string(sent, 'x'));
}

TEST_CASE("a side that breaks off ends both") {
    tunnel_bench bench;
    bench.run();
    bench.send(bench.client, "x");
    CHECK(bench.finish(read_exactly(bench.origin, 1)) == "x");
    bench.origin.set_option(tcp_socket::linger{true, 0});
    bench.origin.close();
    CHECK(bench.end().end == relay_end::reset);
    bench.finish(read_to_end(bench.client));
}

TEST_CASE("a tunnel in which nothing moves ends") {
    tunnel_bench bench;
    bench.run({}, {}, 50ms);
    bench.send(bench.client, "x");
    CHECK(bench.finish(read_exactly(bench.origin, 1)) == "x");
    const auto ended = bench.end();
    CHECK(ended.end == relay_end::timed_out);
    CHECK(ended.a_to_b == 1);
    CHECK(bench.finish(read_to_end(bench.client)).empty());
    CHECK(bench.finish(read_to_end(bench.origin)).empty());
}

TEST_CASE("stopping the thread's deadlines ends a tunnel") {
    tunnel_bench bench;
    bench.run();
    bench.run_for(5ms);
    bench.timer.stop();
    CHECK(bench.end().end == relay_end::timed_out);
}

namespace {

void limit(tunnel_bench& bench, std::uint64_t bytes_per_second) {
    bench.rates.set_rate(bytes_per_second);
    bench.to_client.limit_to(bench.rates.bucket_of({{}, "ann"}, steady_now()));
}

}  // namespace

TEST_CASE("what goes to a client that is limited goes at its rate, whole; what it sends does not") {
    tunnel_bench bench;
    limit(bench, 1 << 20);
    bench.run();
    const auto body = pattern(512 << 10);
    const auto before = steady_now();
    bench.send(bench.origin, body);
    CHECK(bench.finish(read_exactly(bench.client, body.size())) == body);
    CHECK(steady_now() - before >= 350ms);  // an eighth of a second's worth came at once
    const auto waited = bench.waits.read();
    CHECK(waited > 0);
    bench.send(bench.client, body);
    CHECK(bench.finish(read_exactly(bench.origin, body.size())) == body);
    CHECK(bench.waits.read() == waited);
    bench.origin.close();
    bench.client.close();
    CHECK(bench.end().b_to_a == body.size());
}

TEST_CASE("a tunnel whose bytes wait for their turn is not quiet") {
    tunnel_bench bench;
    limit(bench, 4 << 10);
    REQUIRE(bench.to_client.may_send(64 << 10) == 64 << 10);
    bench.to_client.note_sent(64 << 10);
    bench.run({}, {}, 50ms);
    bench.finish(write_text(bench.origin, std::string(2 << 10, 'x')));
    bench.run_until([&] { return bench.waits.read() > 0; });
    CHECK(bench.finish(read_exactly(bench.client, 2 << 10)).size() == 2 << 10);
    CHECK(bench.end().end == relay_end::timed_out);  // when there is no more
}

TEST_CASE("a tunnel that is broken off while its bytes wait for their turn ends at once") {
    tunnel_bench bench;
    limit(bench, 1);
    bench.run();
    bench.send(bench.origin, pattern(512 << 10));
    bench.run_until([&] { return bench.waits.read() > 0; });
    bench.client.set_option(tcp_socket::linger{true, 0});
    bench.client.close();
    CHECK(bench.end().end == relay_end::reset);
}

TEST_SUITE_END();
