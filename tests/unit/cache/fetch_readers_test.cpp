#include "proxy/cache/fetch.hpp"
#include "tests/unit/cache/responses.hpp"
#include "tests/unit/cache/small_fetches.hpp"
#include "tests/unit/net/loop.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

// Which readers fall behind, and what becomes of them; for whom the producer waits, and who may join.

namespace reprise::proxy::cache::test::of_fetch_readers {

TEST_SUITE_BEGIN("cache/fetch_readers");

TEST_CASE("a stalled reader of a shared fetch falls out when the window has passed it") {
    const auto source = begun();
    client fast{source};
    client stalled{source};
    source->producer_head(resumable_head_of());
    stalled.step();
    produce_until(*source, 2 * small.window, fast);
    CHECK(stalled.step() == event::fell_out);
    CHECK(stalled.bytes.empty());
    CHECK(stalled.drain() == event::fell_out);
    CHECK(stalled.reader->offset() == 0);
    CHECK(fast.bytes == pattern(static_cast<std::size_t>(source->received())));
}

TEST_CASE("the producer waits for a reader that could go on nowhere else") {
    net::test_loop loop;
    net::wakeup ready{loop.timer};
    const auto source = begun();
    source->producer_is(ready.handle(), [] {});
    client fast{source};
    client slow{source};
    source->producer_head(head_of());
    fast.step();
    slow.step();
    while (!source->producer_must_pause()) {
        produce(*source, 8 * kib);
        fast.drain();
    }
    CHECK(source->received() <= small.window);
    CHECK(source->received() > small.window / 2);
    CHECK(fast.drain() == event::nothing);
    CHECK(!ready.take());
    SUBCASE("until it has read on") {
        const auto held = source->received();
        while (!ready.take()) {
            REQUIRE(slow.step(1'000) == event::data);
        }
        CHECK(slow.bytes.size() < held / 2);
        CHECK(!source->producer_must_pause());
        while (source->received() < 10 * small.window) {
            if (source->producer_must_pause()) {
                REQUIRE(slow.step(5'000) == event::data);
            } else {
                produce(*source, 8 * kib);
                fast.drain();
            }
        }
        slow.drain();
        CHECK(slow.bytes == fast.bytes);
    }
    SUBCASE("or leaves") {
        slow.leave();
        CHECK(ready.take());
        CHECK(!source->producer_must_pause());
    }
    SUBCASE("and the other way round, were it the one that began") {
        fast.leave();
        CHECK(ready.take());
        CHECK(!source->abandoned());
        slow.drain();
        CHECK(slow.bytes == pattern(static_cast<std::size_t>(source->received())));
    }
}

TEST_CASE("what is kept no more waits for those behind, if they could go on nowhere else") {
    const auto source = begun();
    client fast{source};
    client stalled{source};
    REQUIRE(source->keep_whole());
    source->producer_head(head_of());
    while (source->received() < 2 * small.window) {
        REQUIRE(!source->producer_must_pause());
        produce(*source, 8 * kib);
        fast.drain();
    }
    source->keep_no_more();
    CHECK(source->producer_must_pause());
    stalled.drain();
    CHECK(stalled.bytes == fast.bytes);
    CHECK(!source->producer_must_pause());
}

TEST_CASE("a reader that has fallen out with nothing read says so before its first byte") {
    const auto source = begun();
    client fast{source};
    client late{source};
    source->producer_head(resumable_head_of());
    produce_until(*source, 2 * small.window, fast);
    CHECK(late.step() == event::head);
    CHECK(late.step() == event::fell_out);
    CHECK(late.reader->offset() == 0);
}

TEST_CASE("a fetch that only its first reader should have says so when its head is known") {
    const auto source = begun();
    client first{source};
    client second{source};
    CHECK(source->serves_others());
    SUBCASE("longer than the window, and nobody could go on without it") {
        source->producer_head(head_of(small.window));
        CHECK(!source->serves_others());
    }
    SUBCASE("unless it fits") {
        source->producer_head(head_of(small.window / 2));
        CHECK(source->serves_others());
    }
    SUBCASE("or can be resumed") {
        source->producer_head(resumable_head_of(small.window));
        CHECK(source->serves_others());
    }
    SUBCASE("or is held whole") {
        REQUIRE(source->keep_whole());
        source->producer_head(head_of(small.window));
        CHECK(source->serves_others());
    }
    SUBCASE("or nobody knows how long it will be") {
        source->producer_head(head_of());
        CHECK(source->serves_others());
    }
}

TEST_CASE("nobody joins a fetch that waits for its readers and might be held up by them") {
    const auto source = begun();
    client stalled{source};
    std::optional<std::uint64_t> length;
    bool joins = false;
    SUBCASE("of unknown length") {}
    SUBCASE("but one that fits the window") {
        length = small.window / 2;
        joins = true;
    }
    source->producer_head(head_of(length));
    produce(*source, small.read_ahead);
    CHECK(client{source}.reader);  // it does not wait yet
    REQUIRE(source->producer_must_pause());
    CHECK((client{source}.reader != nullptr) == joins);
    stalled.drain();
    CHECK(client{source}.reader);
}

TEST_CASE("a reader that left is waited for no more, and is told nothing") {
    const auto source = begun();
    client fast{source};
    client other{source};
    source->producer_head(head_of());
    while (!source->producer_must_pause()) {
        produce(*source, 8 * kib);
        fast.drain();
    }
    other.reader->leave();
    CHECK(!source->producer_must_pause());
    CHECK(source->clients() == 1);
    other.reader->leave();
    CHECK(source->clients() == 1);
}

TEST_CASE("the smallest window holds no more than it says, and keeps readers together") {
    constexpr fetch_limits tiny{
        .window = 52 * kib, .read_ahead = 16 * kib, .first_bytes = 16 * kib, .finish = 0};
    const auto source = begun(tiny);
    client fast{source};
    client slow{source};
    source->producer_head(head_of());
    std::size_t most = 0;
    while (source->received() < 20 * tiny.window) {
        if (source->producer_must_pause()) {
            fast.drain();
            REQUIRE(slow.step(3'000) != event::fell_out);
            continue;
        }
        const auto [at, room] = source->producer_space(64 * kib);
        const auto piece = pattern(room, static_cast<std::size_t>(source->received()));
        std::memcpy(at, piece.data(), room);
        source->producer_commit(room);
        fast.drain();
        most = std::max(most, static_cast<std::size_t>(source->received()) - slow.bytes.size());
    }
    slow.drain();
    CHECK(slow.bytes == fast.bytes);
    CHECK(most <= tiny.window);
}

TEST_CASE("a slow reader within the window gets every byte") {
    const auto source = begun();
    client fast{source};
    client slow{source};
    source->producer_head(head_of());
    while (source->received() < 10 * small.window) {
        produce(*source, 8 * kib);
        fast.drain();
        while (source->received() - slow.bytes.size() > small.window / 2) {
            REQUIRE(slow.step(5'000) != event::fell_out);
        }
    }
    slow.drain();
    CHECK(slow.bytes == fast.bytes);
}

TEST_CASE("a reader alone never falls out, however far behind") {
    const auto source = begun();
    client only{source};
    source->producer_head(head_of());
    produce(*source, 4 * small.window);  // a producer that doesn't pause
    only.drain();
    CHECK(only.bytes == pattern(4 * small.window));
}

TEST_CASE("nobody falls out of what is kept whole, until it is kept no more") {
    const auto source = begun();
    client fast{source};
    client stalled{source};
    REQUIRE(source->keep_whole());
    CHECK(source->kept_whole());
    source->producer_head(resumable_head_of());
    produce_until(*source, 4 * small.window, fast);
    SUBCASE("kept to the end") {
        stalled.drain();
        CHECK(stalled.bytes == pattern(4 * small.window));
    }
    SUBCASE("given up on the way") {
        source->keep_no_more();
        CHECK(!source->kept_whole());
        stalled.step();
        CHECK(stalled.step() == event::fell_out);
        CHECK(source->whole_body() == nullptr);
        CHECK(!source->keep_whole());  // its beginning is gone
    }
}

TEST_CASE("keep_whole comes too late when the first bytes are gone or the fetch is over") {
    const auto source = begun();
    client one{source};
    source->producer_head(head_of());
    SUBCASE("first bytes gone") {
        produce_until(*source, small.first_bytes + 128 * kib + 1, one);
    }
    SUBCASE("finished") {
        source->producer_finish("");
    }
    SUBCASE("failed") {
        source->producer_fail(failure{});
    }
    SUBCASE("given up") {
        one.leave();
    }
    CHECK(!source->keep_whole());
    CHECK(!source->kept_whole());
    CHECK(source->whole_body() == nullptr);
}

TEST_CASE("the fetch is given up when its last reader leaves, and its producer told") {
    net::test_loop loop;
    net::wakeup ready{loop.timer};
    int stops = 0;
    const auto source = begun();
    source->producer_is(ready.handle(), [&] { ++stops; });
    client one{source};
    client two{source};
    CHECK(source->clients() == 2);
    source->producer_head(head_of());
    one.leave();
    CHECK(!source->abandoned());
    CHECK(stops == 0);
    two.leave();
    CHECK(source->abandoned());
    CHECK(stops == 1);
    CHECK(ready.take());
    CHECK(!source->producer_must_pause());
}

TEST_CASE("without readers a fetch goes on only if it is stored and nearly there") {
    const auto source = begun();
    client one{source};
    constexpr std::uint64_t length = 100 * kib;
    SUBCASE("`finish` bytes are missing: it goes on to its end, without pausing") {
        REQUIRE(source->keep_whole());
        source->producer_head(head_of(length));
        produce(*source, length - small.finish);
        one.leave();
        CHECK(!source->abandoned());
        CHECK(!source->producer_must_pause());
        client late{source};  // and may even be joined
        CHECK(late.reader);
        late.leave();
        CHECK(!source->abandoned());
        produce(*source, small.finish);
        const auto whole = source->whole_body();
        REQUIRE(whole);
        CHECK(bytes_of(*whole) == pattern(length));
        source->producer_finish("");
        CHECK(!source->abandoned());
    }
    SUBCASE("one byte more is missing") {
        REQUIRE(source->keep_whole());
        source->producer_head(head_of(length));
        produce(*source, length - small.finish - 1);
        one.leave();
        CHECK(source->abandoned());
    }
    SUBCASE("it is not stored") {
        source->producer_head(head_of(length));
        produce(*source, length - 1);
        one.leave();
        CHECK(source->abandoned());
    }
    SUBCASE("nobody knows how much is missing") {
        REQUIRE(source->keep_whole());
        source->producer_head(head_of());
        produce(*source, length);
        one.leave();
        CHECK(source->abandoned());
    }
    SUBCASE("its head is not there yet") {
        REQUIRE(source->keep_whole());
        one.leave();
        CHECK(source->abandoned());
    }
}

namespace {

/// One that may go on without readers as often as this says.
struct permitted {
    explicit permitted(unsigned most_of_all) : most{.of_one = 9, .of_all = most_of_all} {
        source->producer_is(
            {},
            [this] { ++stops; },
            [this] {
                ++asked;
                return all.enter({}, most);
            });
    }

    unattended_bounds most;
    unattended_fetches all;
    unsigned asked = 0;
    int stops = 0;
    std::shared_ptr<fetch> source = begun();
};

constexpr std::uint64_t kept_length = 100 * kib;

void go_on_unattended(permitted& at) {
    REQUIRE(at.source->keep_whole());
    at.source->producer_head(head_of(kept_length));
    SUBCASE("it is nearly there") {
        produce(*at.source, kept_length - small.finish);
    }
    SUBCASE("it is said to go on") {
        at.source->producer_unattended();
    }
}

}  // namespace

TEST_CASE(
    "what goes on without readers has a permit, one for all who leave, to its producer's end") {
    permitted at{1};
    client one{at.source};
    client two{at.source};
    go_on_unattended(at);
    one.leave();
    CHECK(at.asked == 0);  // somebody reads it
    two.leave();
    CHECK(!at.source->abandoned());
    CHECK(at.all.size() == 1);
    client late{at.source};
    REQUIRE(late.reader);
    late.leave();
    CHECK(!at.source->abandoned());
    CHECK(at.asked == 1);
    at.source->producer_left();
    CHECK(at.all.size() == 0);
}

TEST_CASE("where there is no permit it is given up, as if nobody wanted the rest") {
    permitted at{0};
    client one{at.source};
    go_on_unattended(at);
    one.leave();
    CHECK(at.asked == 1);
    CHECK(at.source->abandoned());
    CHECK(at.stops == 1);
}

TEST_CASE("what is given up anyway, or is over, asks for no permit") {
    permitted at{1};
    client one{at.source};
    SUBCASE("nothing of it is kept") {
        at.source->producer_head(head_of(kept_length));
        at.source->producer_unattended();
        one.leave();
        CHECK(at.source->abandoned());
    }
    SUBCASE("it is over") {
        REQUIRE(at.source->keep_whole());
        at.source->producer_head(head_of());
        at.source->producer_unattended();
        at.source->producer_finish("");
        one.leave();
        CHECK(!at.source->abandoned());
    }
    CHECK(at.asked == 0);
}

TEST_CASE("one that begins unattended has its permit from then on") {
    permitted at{1};
    at.source->producer_unattended(at.all.enter({}, at.most));
    client one{at.source};
    one.leave();
    CHECK(!at.source->abandoned());
    CHECK(at.asked == 0);
    CHECK(at.all.size() == 1);
    SUBCASE("until its producer ends") {
        at.source->producer_left();
    }
    SUBCASE("or it has gone without one") {
        at.source.reset();
    }
    CHECK(at.all.size() == 0);
}

TEST_CASE("a finished fetch is not given up when its readers leave") {
    const auto source = begun();
    client one{source};
    source->producer_head(head_of());
    source->producer_finish("");
    one.leave();
    CHECK(!source->abandoned());
}

TEST_CASE("a reader that fell out neither holds the fetch nor paces it") {
    // Its session may go on for long with a fetch of its own before it destroys this reader.
    int stops = 0;
    const auto source = begun();
    source->producer_is({}, [&] { ++stops; });
    client fast{source};
    client stalled{source};
    source->producer_head(resumable_head_of());
    stalled.step();
    produce_until(*source, 2 * small.window, fast);
    REQUIRE(stalled.step() == event::fell_out);
    fast.leave();
    CHECK(source->abandoned());
    CHECK(stops == 1);
    CHECK(!source->producer_must_pause());
    stalled.leave();
    CHECK(source->abandoned());
    CHECK(stops == 1);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::cache::test::of_fetch_readers
