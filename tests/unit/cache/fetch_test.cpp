#include "proxy/cache/fetch.hpp"
#include "tests/unit/cache/responses.hpp"
#include "tests/unit/cache/small_fetches.hpp"
#include "tests/unit/net/loop.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace reprise::proxy::cache::test::of_fetch {

TEST_SUITE_BEGIN("cache/fetch");

TEST_CASE("a reader hears of interim heads, the head, the body and its end, in this order") {
    const auto source = begun();
    client one{source};
    REQUIRE(one.reader);
    CHECK(!one.head_known);
    CHECK(one.step() == event::nothing);
    source->producer_interim("HTTP/1.1 103 Early Hints\r\n\r\n");
    const auto head = head_of(5);
    CHECK(source->producer_head(head) == 1);
    source->producer_append("hello");
    source->producer_finish("X-Sum: 1\r\n");
    CHECK(one.step() == event::interim);
    CHECK(one.report.interim == "HTTP/1.1 103 Early Hints\r\n\r\n");
    CHECK(one.step() == event::head);
    CHECK(one.report.head == head);
    CHECK(one.step() == event::data);
    CHECK(one.bytes == "hello");
    CHECK(one.reader->offset() == 5);
    CHECK(one.step() == event::end);
    CHECK(one.trailers == "X-Sum: 1\r\n");
}

TEST_CASE("the body waits until the head was read") {
    const auto source = begun();
    client one{source};
    source->producer_append("early");
    CHECK(one.step() == event::nothing);
    source->producer_head(head_of());
    CHECK(one.step() == event::head);
    CHECK(one.step() == event::data);
    CHECK(one.bytes == "early");
}

TEST_CASE("a report has at most as many bytes as were asked for, across blocks too") {
    const auto source = begun();
    client one{source};
    source->producer_head(head_of());
    produce(*source, 20'000);
    CHECK(one.step() == event::head);
    for (const std::size_t most : {1u, 10u, 4'095u, 4'096u, 7'000u}) {
        const auto before = one.bytes.size();
        CHECK(one.step(most) == event::data);
        CHECK(one.bytes.size() == before + most);
    }
    one.drain();
    CHECK(one.bytes == pattern(20'000));
}

TEST_CASE("what was handed out stays valid when reader and fetch are gone") {
    std::vector<slice> kept;
    {
        const auto source = begun();
        client one{source};
        source->producer_head(head_of());
        produce(*source, 10'000);
        one.step();
        one.step();
        kept = one.report.slices;
    }
    std::string bytes;
    for (const auto& part : kept) {
        bytes.append(part.view());
    }
    CHECK(bytes == pattern(10'000));
}

TEST_CASE("a reader that comes before the first bytes are gone gets everything") {
    const auto source = begun();
    client early{source};
    source->producer_interim("HTTP/1.1 102 Processing\r\n\r\n");
    source->producer_head(head_of());
    produce(*source, small.first_bytes);
    early.drain();
    client late{source};
    REQUIRE(late.reader);
    CHECK(late.head_known);
    late.drain();
    CHECK(late.interim.size() == 1);
    CHECK(late.bytes == pattern(small.first_bytes));
}

TEST_CASE("nobody joins once the first bytes were let go") {
    const auto source = begun();
    client early{source};
    source->producer_head(head_of());
    produce_until(*source, small.first_bytes + 128 * kib + 1, early);
    CHECK(!client{source}.reader);
    CHECK(source->clients() == 1);
}

TEST_CASE("what is kept whole may be joined as long as it runs, and no longer") {
    const auto source = begun();
    client early{source};
    REQUIRE(source->keep_whole());
    source->producer_head(head_of());
    for (int i = 0; i < 100; ++i) {
        produce(*source, 8 * kib);
        early.drain();
    }
    client late{source};
    REQUIRE(late.reader);
    late.drain();
    CHECK(late.bytes == pattern(800 * kib));
    source->producer_finish("");
    CHECK(!client{source}.reader);
    CHECK(late.drain() == event::end);
}

TEST_CASE("what is kept outside is not held whole for whoever joins late") {
    const auto source = begun();
    client early{source};
    REQUIRE(source->keep_outside());
    source->producer_head(head_of());
    client late{source};
    CHECK_FALSE(source->keep_whole());
    std::vector<slice> taken;
    for (int i = 0; i < 100; ++i) {
        produce(*source, 8 * kib);
        source->take_new(taken);
        taken.clear();
        early.drain();
        late.drain();
    }
    CHECK(late.bytes == pattern(800 * kib));
    CHECK(!client{source}.reader);  // the beginning was let go
    CHECK_FALSE(source->may_serve_siblings());
    SUBCASE("unless that ends before anything was let go") {
        const auto other = begun();
        client one{other};
        REQUIRE(other->keep_outside());
        other->keep_outside_no_more();
        CHECK(other->keep_whole());
    }
}

TEST_CASE("a fetch that failed, was validated, switched protocols or was given up takes nobody") {
    const auto source = begun();
    client one{source};
    SUBCASE("failed") {
        source->producer_fail(failure{});
    }
    SUBCASE("validated") {
        source->producer_validated(nullptr);
    }
    SUBCASE("upgraded") {
        source->producer_upgraded();
    }
    SUBCASE("given up") {
        one.leave();
    }
    CHECK(!client{source}.reader);
}

TEST_CASE("a reader that is slower than the origin has little read ahead for it") {
    const auto source = std::make_shared<fetch>(fetch_limits{});
    client slow{source};
    source->producer_head(resumable_head_of(64u << 20));
    const auto fill = [&] {
        const auto had = source->received();
        while (!source->producer_must_pause()) {
            produce(*source, 16 * kib);
        }
        return source->received() - had;
    };
    CHECK(fill() <= 32 * kib);
    CHECK(slow.step() == event::head);
    for (int i = 0; i < 8; ++i) {
        CHECK(slow.step(64 * kib) == event::data);
        (void)fill();
        CHECK(source->received() - slow.reader->offset() <= 32 * kib);
    }
    // Who came now would read what nobody holds any more; a reader that keeps up has more again.
    bool known = false;
    CHECK_FALSE(fetch::join(source, net::wakeup::signal{}, known));
    for (int i = 0; i < 32; ++i) {
        CHECK(slow.drain() == event::nothing);
        produce(*source, 16 * kib);
    }
    CHECK(slow.drain() == event::nothing);
    CHECK(fill() > 128 * kib);
}

TEST_CASE("a pause is one, however often the producer asks whether it is over") {
    const auto source = std::make_shared<fetch>(fetch_limits{});
    client first{source};
    source->producer_head(resumable_head_of(64u << 20));
    while (!source->producer_must_pause()) {
        produce(*source, 16 * kib);
    }
    for (int i = 0; i < 5; ++i) {
        CHECK(source->producer_must_pause());
    }
    CHECK(first.step() == event::head);
    CHECK(first.step(16 * kib) == event::data);
    // It is not known for slow yet: its first bytes are there for others.
    bool known = false;
    CHECK(fetch::join(source, net::wakeup::signal{}, known));
}

TEST_CASE("the producer stays read_ahead in front of the fastest reader, not of the slowest") {
    const auto source = begun();
    client fast{source};
    client slow{source};
    source->producer_head(head_of());
    CHECK(!source->producer_must_pause());
    produce(*source, small.read_ahead);
    CHECK(source->producer_must_pause());
    fast.drain(1);  // the head, and all of the body
    CHECK(!source->producer_must_pause());
    produce(*source, small.read_ahead);
    CHECK(source->producer_must_pause());
    slow.drain();
    fast.drain();
    CHECK(!source->producer_must_pause());
}

TEST_CASE("a producer that pauses is woken by the fastest reader's progress") {
    net::test_loop loop;
    net::wakeup ready{loop.timer};
    const auto source = begun();
    source->producer_is(ready.handle(), [] {});
    client fast{source};
    client slow{source};
    source->producer_head(head_of());
    fast.step();
    slow.step();
    produce(*source, small.read_ahead + 100);
    CHECK(source->producer_must_pause());
    fast.step(100);
    CHECK(!ready.take());  // still read_ahead behind
    fast.step(1);
    CHECK(ready.take());
    fast.drain();
    CHECK(!ready.take());  // nobody pauses
    produce(*source, small.read_ahead);
    CHECK(source->producer_must_pause());
    slow.step(10);
    CHECK(!ready.take());
    SUBCASE("or by its leaving") {
        fast.leave();
        CHECK(ready.take());
        CHECK(source->producer_must_pause());
    }
    SUBCASE("and not after it left") {
        source->producer_left();
        fast.drain();
        CHECK(!ready.take());
    }
}

TEST_CASE("whoever waits is woken by each kind of event") {
    net::test_loop loop;
    net::wakeup arrived{loop.timer};
    const auto source = begun();
    client one{source, arrived.handle()};
    CHECK(one.drain() == event::nothing);
    CHECK(!arrived.take());
    source->producer_interim("HTTP/1.1 103 Early Hints\r\n\r\n");
    CHECK(arrived.take());
    CHECK(one.drain() == event::nothing);
    source->producer_head(head_of());
    CHECK(arrived.take());
    CHECK(one.drain() == event::nothing);
    source->producer_append("x");
    CHECK(arrived.take());
    source->producer_append("y");  // nobody waits: one signal is enough
    CHECK(!arrived.take());
    CHECK(one.drain() == event::nothing);
    SUBCASE("the end") {
        source->producer_finish("");
    }
    SUBCASE("a failure") {
        source->producer_fail(failure{});
    }
    SUBCASE("validation") {
        source->producer_validated(nullptr);
    }
    SUBCASE("an upgrade") {
        source->producer_upgraded();
    }
    CHECK(arrived.take());
}

TEST_CASE("a failure reaches every reader after the bytes that came before it") {
    const auto source = begun();
    client one{source};
    client two{source};
    client behind{source};
    REQUIRE(source->keep_whole());
    source->producer_head(head_of(1'000));
    source->producer_append("half");
    one.drain();
    source->producer_fail(failure{failure_code::response_cut_short, "gone"});
    for (auto* each : {&one, &two, &behind}) {
        CHECK(each->drain() == event::failed);
        CHECK(each->bytes == "half");
        CHECK(each->report.why.code == failure_code::response_cut_short);
        CHECK(each->report.why.detail == "gone");
    }
    CHECK(!source->kept_whole());
    CHECK(source->whole_body() == nullptr);
}

TEST_CASE("a failure before the head is the only event") {
    const auto source = begun();
    client one{source};
    source->producer_fail(failure{failure_code::dns_not_found, "no such name"});
    CHECK(one.step() == event::failed);
    CHECK(one.report.why.code == failure_code::dns_not_found);
    CHECK(one.report.head == nullptr);
}

TEST_CASE("what a fetch has asked is what it asked first, until nobody was asked after all") {
    const auto source = begun();
    CHECK(!source->asked());
    const auto at = steady_now();
    source->producer_asks({.at = at, .head = nullptr, .client = "a"});
    source->producer_asks({.at = at + std::chrono::hours{1}, .head = nullptr, .client = "b"});
    REQUIRE(source->asked());
    CHECK(source->asked()->at == at);
    CHECK(source->asked()->client == "a");
    source->producer_asked_nobody();
    CHECK(!source->asked());
}

TEST_CASE("a validation hands every reader the response to serve") {
    const auto source = begun();
    client one{source};
    client two{source};
    const stored_ptr fresh = cache::test::response({});
    source->producer_validated(fresh);
    for (auto* each : {&one, &two}) {
        CHECK(each->step() == event::validated);
        CHECK(each->report.fresh == fresh);
    }
}

TEST_CASE("an upgrade comes with its head") {
    const auto source = begun();
    client one{source};
    const auto head = head_of();
    source->producer_head(head);
    source->producer_upgraded();
    CHECK(one.step() == event::upgraded);
    CHECK(one.report.head == head);
}

TEST_CASE("the whole body is the bytes received, in memory hardly larger than they are") {
    for (const std::size_t size :
         {0u, 1u, 10u, 4'095u, 4'096u, 4'097u, 65'536u, 65'537u, 300'000u}) {
        for (const bool declared : {true, false}) {
            CAPTURE(size);
            CAPTURE(declared);
            const auto source = begun();
            client one{source};
            REQUIRE(source->keep_whole());
            source->producer_head(
                head_of(declared ? std::optional<std::uint64_t>{size} : std::nullopt));
            for (std::size_t at = 0; at < size;) {
                const auto piece = std::min<std::size_t>(size - at, 1'400);
                produce(*source, piece);
                at += piece;
                one.drain();
            }
            const auto whole = source->whole_body();
            REQUIRE(whole);
            CHECK(whole->size == size);
            CHECK(bytes_of(*whole) == pattern(size));
            // A declared length wastes nothing; without one the last blocks may be an eighth empty.
            const auto bookkeeping = 256 + whole->slices.capacity() * 64;
            CHECK(whole->footprint() <=
                  (declared ? size : size + size / 8 + 64 * whole->slices.size()) + bookkeeping);
            source->producer_finish("");
            CHECK(one.drain() == event::end);
            CHECK(one.bytes == pattern(size));
        }
    }
}

TEST_CASE("space that was read into only partly is offered again") {
    const auto source = begun();
    client one{source};
    source->producer_head(head_of(8));
    for (const auto* piece : {"ab", "c", "defgh"}) {
        const auto [at, room] = source->producer_space(8);
        const auto size = std::string_view{piece}.size();
        REQUIRE(room >= size);
        std::memcpy(at, piece, size);
        source->producer_commit(0);
        source->producer_commit(size);
        CHECK(one.drain() == event::nothing);
    }
    CHECK(one.bytes == "abcdefgh");
    CHECK(source->received() == 8);
    CHECK(source->producer_space(3).second <= 3);
}

TEST_CASE("readers on other threads see every byte, while one leaves and one comes late") {
    constexpr std::size_t size = 6u << 20;
    const auto source = begun();
    const auto expected = pattern(size);
    const auto until = steady_now() + 3 * net::test_patience;
    std::atomic<int> joined{0};
    const auto read_up_to = [&](std::size_t bytes, std::size_t most) {
        client one{source};
        if (!one.reader) {
            return std::string{"could not join"};
        }
        ++joined;
        while (steady_now() < until) {
            const auto what = one.step(most);
            if (what == event::end || one.bytes.size() >= bytes) {
                return std::move(one.bytes);
            }
            if (what == event::nothing) {
                std::this_thread::yield();  // a session would wait for its wakeup
            }
        }
        return std::string{"took too long"};
    };
    const client holds_it{source};  // so that it is not given up before the others have come
    REQUIRE(source->keep_whole());
    std::string large_steps, small_steps, leaves, late;
    std::vector<std::jthread> threads;
    threads.emplace_back([&] { large_steps = read_up_to(size, 1'000'000); });
    threads.emplace_back([&] { small_steps = read_up_to(size, 9'999); });
    threads.emplace_back([&] { leaves = read_up_to(100'000, 5'000); });
    threads.emplace_back([&] {
        while (source->received() < size / 4 && steady_now() < until) {
            std::this_thread::yield();
        }
        late = read_up_to(size, 64 * kib);
    });
    source->producer_head(head_of());
    for (std::size_t made = 0; made < size && steady_now() < until;) {
        if (source->producer_must_pause()) {
            std::this_thread::yield();
            continue;
        }
        const auto [at, room] = source->producer_space(size - made);
        const auto some = std::min<std::size_t>(room, 1 + made % 7'000);
        std::memcpy(at, expected.data() + made, some);
        source->producer_commit(some);
        made += some;
    }
    while (joined < 4 && steady_now() < until) {
        std::this_thread::yield();  // the end takes nobody any more
    }
    const auto whole = source->whole_body();
    source->producer_finish("");
    threads.clear();
    CHECK((large_steps == expected));
    CHECK((small_steps == expected));
    CHECK(leaves.size() >= 100'000);
    CHECK((leaves == expected.substr(0, leaves.size())));
    CHECK((late == expected));
    REQUIRE(whole);
    CHECK((bytes_of(*whole) == expected));
}

TEST_CASE("a body that its taker copies is not copied to its size before") {
    const auto source = std::make_shared<fetch>(fetch_limits{});
    const client one{source};
    REQUIRE(source->keep_whole());
    source->producer_head(head_of());
    source->producer_append("abc");
    const auto exact = source->whole_body(2);
    const auto lent = source->whole_body(3);
    REQUIRE(exact);
    REQUIRE(lent);
    CHECK(exact->slices.front().memory->capacity() == 3);
    CHECK(lent->slices.front().memory->capacity() > 3);
    CHECK(bytes_of(*lent) == "abc");
}

TEST_SUITE_END();

}  // namespace reprise::proxy::cache::test::of_fetch
