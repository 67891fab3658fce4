#include "proxy/net/client_rate.hpp"
#include "proxy/net/client_stream.hpp"
#include "tests/unit/net/loop.hpp"

#include <string>
#include <thread>
#include <vector>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;
constexpr steady_time start = steady_time{} + 1h;

client_name by_address(const char* text) {
    return {canonical(asio::ip::make_address(text)), {}};
}

/// A client that sends whenever it may, by a clock of the test's that goes in steps: how much it
/// gets in a time.
std::uint64_t sent_in(client_bucket& bucket,
                      std::chrono::milliseconds time,
                      std::chrono::microseconds step,
                      std::uint64_t at_once,
                      std::size_t connections = 1) {
    struct one {
        client_bucket::reservation ahead{};
    };
    std::vector<one> all(connections);
    std::uint64_t sent = 0;
    for (auto now = start; now < start + time; now += step) {
        for (auto& each : all) {
            if (each.ahead.bytes > 0 && each.ahead.due > now) {
                continue;
            }
            sent += std::exchange(each.ahead, {}).bytes;
            while (const auto some = bucket.take(at_once, now)) {
                sent += some;
            }
            each.ahead = bucket.reserve(at_once, now);
        }
    }
    return sent;
}

}  // namespace

TEST_SUITE_BEGIN("net/client_rate");

TEST_CASE("a client gets its rate, from 1 to 100 MiB a second, however its bytes are cut") {
    for (const auto rate : {mib, 10 * mib, 100 * mib}) {
        for (const auto step : {300us, 5'000us, 40'000us}) {
            for (const auto at_once : {std::uint64_t{1500}, 128 * kib, 100 * mib}) {
                for (const std::size_t connections : {1u, 7u}) {
                    CAPTURE(rate);
                    CAPTURE(step.count());
                    CAPTURE(at_once);
                    CAPTURE(connections);
                    const client_bucket::rate set{rate};
                    client_bucket bucket{set, by_address("192.0.2.1")};
                    const auto got = sent_in(bucket, 10s, step, at_once, connections);
                    CHECK(got >= 10 * rate - rate / 20 * 10);
                    CHECK(got <= 10 * rate + burst_of(rate));
                }
            }
        }
    }
}

TEST_CASE("a full bucket comes at once, and no more") {
    const client_bucket::rate set{mib};
    client_bucket bucket{set, by_address("192.0.2.1")};
    CHECK(bucket.is_full(start));
    CHECK(bucket.take(10 * mib, start) == 128 * kib);
    CHECK(bucket.take(1, start) == 0);
    CHECK(!bucket.is_full(start));
    CHECK(bucket.is_full(start + 125ms));
    CHECK(bucket.take(10 * mib, start + 1h) == 128 * kib);
}

TEST_CASE("64 KiB come at once at any rate") {
    const client_bucket::rate set{1000};
    client_bucket bucket{set, by_address("192.0.2.1")};
    CHECK(bucket.take(mib, start) == 64 * kib);
}

TEST_CASE("no crumbs: less than a piece is taken only where that is all") {
    const client_bucket::rate set{mib};
    client_bucket bucket{set, by_address("192.0.2.1")};
    REQUIRE(bucket.take(mib, start) == 128 * kib);
    const auto soon = start + 10ms;  // some 10 KiB
    CHECK(bucket.take(mib, soon) == 0);
    CHECK(bucket.take(100, soon) == 100);
}

TEST_CASE("those who wait are served in the order in which they asked, a piece each") {
    const client_bucket::rate set{mib};
    client_bucket bucket{set, by_address("192.0.2.1")};
    REQUIRE(bucket.take(mib, start) == 128 * kib);
    auto last = start;
    for (int i = 0; i < 10; ++i) {
        const auto next = bucket.reserve(mib, start);
        CHECK(next.bytes == 32 * kib);
        CHECK(next.due >= last + 31ms);
        CHECK(next.due <= last + 32ms);
        last = next.due;
    }
    CHECK(bucket.take(1, start) == 0);  // nobody gets before them
    CHECK(bucket.take(1, last - 1ms) == 0);
}

TEST_CASE("what was not sent is the others'") {
    const client_bucket::rate set{mib};
    client_bucket bucket{set, by_address("192.0.2.1")};
    REQUIRE(bucket.take(mib, start) == 128 * kib);
    bucket.give_back(100 * kib);
    CHECK(bucket.take(mib, start) == doctest::Approx(100 * kib));
}

TEST_CASE("threads share a bucket: together they get no more than it has") {
    const client_bucket::rate set{mib};
    client_bucket bucket{set, by_address("192.0.2.1")};
    std::atomic<std::uint64_t> sum{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int n = 0; n < 10'000; ++n) {
                sum += bucket.take(100, start);
            }
        });
    }
    for (auto& each : threads) {
        each.join();
    }
    CHECK(sum <= 128 * kib);
    CHECK(sum >= 127 * kib);
}

TEST_CASE("a client is its user's name, else its address; of IPv6 the /64") {
    CHECK(by_address("192.0.2.1") == by_address("::ffff:192.0.2.1"));
    CHECK(by_address("192.0.2.1") != by_address("192.0.2.2"));
    CHECK(by_address("2001:db8:1:2::1") == by_address("2001:db8:1:2:3:4:5:6"));
    CHECK(by_address("2001:db8:1:2::1") != by_address("2001:db8:1:3::1"));
    const auto one = canonical(asio::ip::make_address("192.0.2.1"));
    const auto other = canonical(asio::ip::make_address("192.0.2.2"));
    CHECK(client_name{one, "ann"} == client_name{other, "ann"});
    CHECK(client_name{one, "ann"} != client_name{one, "bob"});
    CHECK(client_name{one, "ann"} != client_name{one, {}});
}

TEST_CASE("a client has one bucket while it has a connection, or its bucket is not full") {
    client_rates rates{mib};
    const std::string user = "a name of more than fifteen letters";
    const client_name ann{{}, user};
    auto first = rates.bucket_of(ann, start);
    CHECK(rates.bucket_of(ann, start) == first);
    CHECK(rates.bucket_of(by_address("192.0.2.1"), start) != first);
    CHECK(rates.known(start) == 1);  // the other's is full, and nobody's
    CHECK(first->take(mib, start) > 0);
    first = nullptr;
    CHECK(rates.known(start + 100ms) == 1);
    CHECK(rates.bucket_of(ann, start + 100ms)->take(mib, start + 100ms) < 128 * kib);
    CHECK(rates.known(start + 1s) == 0);
}

TEST_CASE("strangers are forgotten as more come") {
    client_rates rates{mib};
    auto now = start;
    for (unsigned i = 0; i < 100'000; ++i) {
        now += 1ms;
        const auto at = to_address({0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0xff,
                                    0xff,
                                    10,
                                    static_cast<std::uint8_t>(i >> 16),
                                    static_cast<std::uint8_t>(i >> 8),
                                    static_cast<std::uint8_t>(i)});
        const client_name whose{canonical(at), {}};
        CHECK(rates.bucket_of(whose, now)->take(1000, now) == 1000);
    }
    CHECK(rates.known(now + 1s) <= 2);
}

TEST_CASE("a connection sends what it has paid for, and waits for the rest") {
    asio::io_context io{1};
    counter waits;
    client_rates rates{mib};
    rate_share share{io, waits};
    CHECK(share.may_send(10 * mib, start) == 10 * mib);  // nobody's
    share.limit_to(rates.bucket_of(by_address("192.0.2.1"), start));
    CHECK(share.is_of(by_address("192.0.2.1")));
    CHECK(share.may_send(10 * mib, start) == 128 * kib);
    share.note_sent(100 * kib);
    CHECK(share.may_send(10 * mib, start) == 28 * kib);  // the same bytes as before
    CHECK(!share.is_waiting());
    share.note_sent(28 * kib);
    CHECK(waits.read() == 0);
    CHECK(share.may_send(10 * mib, start) == 0);
    CHECK(share.is_waiting());
    CHECK(share.may_send(10 * mib, start + 10ms) == 0);
    CHECK(waits.read() == 1);  // one wait, however often it is asked
    CHECK(share.may_send(10 * mib, start + 32ms) == 32 * kib);
}

TEST_CASE("a reload holds for who waits") {
    asio::io_context io{1};
    counter waits;
    client_rates rates{mib};
    rate_share share{io, waits};
    share.limit_to(rates.bucket_of(by_address("192.0.2.1"), start));
    share.note_sent(share.may_send(mib, start));
    REQUIRE(share.may_send(mib, start) == 0);
    rates.set_rate(0);
    CHECK(!rates.are_limited());
    CHECK(share.may_send(mib, start) == mib);
    share.note_sent(mib);
    rates.set_rate(2 * mib);
    CHECK(share.may_send(mib, start + 1h) == 256 * kib);
}

TEST_CASE("a debt at one rate is none at another") {
    asio::io_context io{1};
    counter waits;
    client_rates rates{1};  // a byte a second
    const auto name = by_address("192.0.2.1");
    rate_share waiting{io, waits};
    waiting.limit_to(rates.bucket_of(name, start));
    waiting.note_sent(waiting.may_send(64 * kib, start));
    {
        rate_share other{io, waits};
        other.limit_to(rates.bucket_of(name, start));
        REQUIRE(other.may_send(mib, start) == 0);
        REQUIRE(waiting.may_send(mib, start) == 0);
        rates.set_rate(10 * mib);
    }
    // What would have waited for hours has some at once, or after the time of a piece.
    CHECK(waiting.may_send(64 * kib, start + 10ms) == 0);
    CHECK(waiting.may_send(64 * kib, start + 20ms) == 64 * kib);
    waiting.note_sent(64 * kib);
    rate_share next{io, waits};
    next.limit_to(rates.bucket_of(name, start));
    CHECK(next.may_send(mib, start + 50ms) > 0);
}

TEST_CASE("who waits behind others that have left is not kept waiting for them") {
    asio::io_context io{1};
    counter waits;
    client_rates rates{mib};
    const auto name = by_address("192.0.2.1");
    rate_share first{io, waits}, last{io, waits};
    first.limit_to(rates.bucket_of(name, start));
    first.note_sent(first.may_send(mib, start));
    {
        std::vector<std::unique_ptr<rate_share>> others;
        for (int i = 0; i < 100; ++i) {
            auto& one = *others.emplace_back(std::make_unique<rate_share>(io, waits));
            one.limit_to(rates.bucket_of(name, start));
            REQUIRE(one.may_send(mib, start) == 0);
        }
        last.limit_to(rates.bucket_of(name, start));
        REQUIRE(last.may_send(mib, start) == 0);
        CHECK(last.may_send(mib, start + 1s) == 0);
    }
    CHECK(last.may_send(mib, start + 1100ms) == 128 * kib);
    CHECK(waits.read() == 101);
}

TEST_CASE("a connection's end gives back what it has paid for") {
    asio::io_context io{1};
    counter waits;
    client_rates rates{mib};
    const auto bucket = rates.bucket_of(by_address("192.0.2.1"), start);
    {
        rate_share share{io, waits};
        share.limit_to(bucket);
        CHECK(share.may_send(mib, start) == 128 * kib);
    }
    CHECK(bucket->is_full(start));
}

namespace {

/// A client's connection, and the client's end of it.
struct limited_stream : test_loop {
    client_rates rates{mib};
    counter waits;
    socket_pair pair = connected_pair(io);
    client_stream stream{byte_stream{std::move(pair.theirs)}, timer};

    limited_stream() {
        stream.limit_to(rates.bucket_of(by_address("192.0.2.1"), steady_now()), waits);
    }
    awaitable<ended> send_all(const std::string& text, std::chrono::milliseconds timeout) {
        std::vector<asio::const_buffer> parts;
        parts.emplace_back(text.data(), 1000);
        parts.emplace_back(text.data() + 1000, text.size() - 1000);
        co_return co_await stream.send(parts, 100'000'000, timeout);
    }
};

}  // namespace

TEST_CASE("a stream that is limited sends every byte, and is taken for no slow client's") {
    limited_stream bench;
    const auto text = pattern(512 * kib);
    const auto before = steady_now();
    bench.start([](limited_stream& of, const std::string& all) -> awaitable<void> {
        // It owes far more than it may have.
        CHECK(co_await of.send_all(all, 20ms) == ended::keep);
    }(bench, text));
    CHECK(bench.finish(read_exactly(bench.pair.ours, text.size())) == text);
    CHECK(steady_now() - before >= 350ms);  // of half a second's bytes an eighth came at once
    CHECK(bench.waits.read() > 0);
    CHECK(bench.stream.bytes_out() == text.size());
}

TEST_CASE("a stream that is closed while it waits for its turn has failed") {
    limited_stream bench;
    bench.rates.set_rate(1000);
    const auto text = pattern(512 * kib);
    std::optional<ended> how;
    bench.start([](limited_stream& of,
                   const std::string& all,
                   std::optional<ended>& to) -> awaitable<void> {
        to = co_await of.send_all(all, 10min);
    }(bench, text, how));
    bench.run_until([&] { return bench.waits.read() > 0; });
    bench.stream.close();
    bench.run_until([&] { return how.has_value(); });
    CHECK(how == ended::gone);
}

TEST_SUITE_END();
