#include "filter/admission.hpp"
#include "filter/digest_wire.hpp"
#include "proxy/peer/digest_follower.hpp"
#include "proxy/peer/publication.hpp"
#include "tests/unit/filter/digests.hpp"
#include "tests/unit/filter/squid_fixtures.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <random>
#include <string>
#include <vector>

namespace reprise::proxy::peer::test::of_digest_follower {
namespace {

using namespace std::chrono_literals;
using filter::test::digest_of_keys;
using filter::test::nth_key;

constexpr steady_time start{1h};
const auto size = filter::digest_size(2000, 0.01);

follow_plan plan() {
    follow_plan made;
    made.seed = filter::test::test_seed();
    return made;
}

follow_plan plan_for_squid() {
    auto made = plan();
    made.squid = true;
    return made;
}

std::vector<std::byte> whole(std::uint64_t keys, std::uint64_t counter) {
    return filter::encode(digest_of_keys(size, 0, keys, counter));
}

std::vector<std::byte> delta(std::uint64_t from,
                             std::uint64_t base,
                             std::uint64_t to,
                             std::uint64_t counter) {
    return *filter::encode_delta(digest_of_keys(size, 0, from, base),
                                 digest_of_keys(size, 0, to, counter));
}

follow_answer good(std::span<const std::byte> body) {
    return {.status = 200, .etag = "\"tag\"", .node = "b", .fresh_for = {}, .body = body};
}

/// A follower that holds 1000 keys of generation 5.
digest_follower holding() {
    digest_follower made{plan(), 1, start};
    (void)made.ask(start);
    made.answered(good(whole(1000, 5)), "a", start);
    (void)made.take_change();
    return made;
}

/// It fails so many times, each when it is asked for. When it is asked for again.
steady_time failing(digest_follower& f, follow_trouble why, int times) {
    auto now = start + 10s;
    for (int i = 0; i < times; ++i) {
        f.failed(why, "", now);
        now = f.next();
    }
    return now;
}

}  // namespace

TEST_SUITE("peer/digest_follower") {
    TEST_CASE("the first answer is asked for at once, whole, and used") {
        digest_follower f{plan(), 1, start};
        CHECK(f.next() == start);
        CHECK(f.figures().state == follow_state::never);
        const auto question = f.ask(start);
        CHECK(question.query.empty());
        CHECK(question.none_match.empty());
        f.answered(good(whole(1000, 5)), "a", start);
        REQUIRE(f.held() != nullptr);
        CHECK(f.held()->may_contain(nth_key(1, 999)));
        CHECK(f.take_change().what == digest_follower::change::kind::replaced);
        CHECK(f.take_change().what == digest_follower::change::kind::nothing);
        CHECK(f.figures().state == follow_state::current);
        CHECK(f.next() - start >= 9s);
        CHECK(f.next() - start <= 11s);
    }

    TEST_CASE("later it asks from what it holds, and takes 304, a delta, or the whole") {
        auto f = holding();
        const auto question = f.ask(start);
        CHECK(question.query == "since=" + to_text(f.held()->stamp().generation));
        CHECK(question.none_match == "\"tag\"");
        f.answered(
            {.status = 304, .etag = {}, .node = {}, .fresh_for = {}, .body = {}}, "a", start + 10s);
        CHECK(f.figures().unchanged == 1);
        CHECK(f.take_change().what == digest_follower::change::kind::nothing);

        const auto before = f.held();
        f.answered(good(delta(1000, 5, 1010, 6)), "a", start + 20s);
        const auto change = f.take_change();
        CHECK(change.what == digest_follower::change::kind::flipped);
        CHECK(change.places == filter::flipped_places(*before, *f.held()));
        CHECK(f.held()->may_contain(nth_key(1, 1009)));

        f.answered(good(whole(1500, 7)), "a", start + 30s);
        CHECK(f.take_change().what == digest_follower::change::kind::replaced);
        CHECK(f.figures().deltas == 1);
        CHECK(f.figures().wholes == 2);
    }

    TEST_CASE("a delta that turns more than news may replaces the whole, and lists nothing") {
        auto f = holding();
        f.answered(good(delta(1000, 5, 4000, 6)), "a", start + 10s);
        CHECK(f.take_change().what == digest_follower::change::kind::replaced);
        CHECK(f.figures().deltas == 1);
        CHECK(f.held()->may_contain(nth_key(1, 3999)));
    }

    TEST_CASE("two changes that nobody took are one replacement") {
        auto f = holding();
        f.answered(good(delta(1000, 5, 1010, 6)), "a", start + 1s);
        f.answered(good(delta(1010, 6, 1020, 7)), "a", start + 2s);
        CHECK(f.take_change().what == digest_follower::change::kind::replaced);
    }

    TEST_CASE("a delta from something else asks for the whole at once, and once") {
        auto f = holding();
        f.answered(good(delta(900, 4, 1010, 6)), "a", start + 10s);
        CHECK(f.figures().trouble == follow_trouble::wrong_base);
        CHECK(f.next() == start + 10s);
        CHECK(f.ask(start).query.empty());
        CHECK(f.held() != nullptr);
        f.answered(good(delta(900, 4, 1010, 6)), "a", start + 10s);
        CHECK(f.next() > start + 18s);
        f.answered(good(whole(1010, 6)), "a", start + 20s);
        CHECK(f.figures().state == follow_state::current);
        CHECK_FALSE(f.ask(start).query.empty());
    }

    TEST_CASE("where what is held is not its owner's, a whole is taken though it is older") {
        auto f = holding();
        f.answered(good(delta(900, 5, 1010, 6)), "a", start + 10s);
        CHECK(f.figures().trouble == follow_trouble::wrong_base);
        REQUIRE(f.ask(start + 10s).query.empty());
        f.answered(good(whole(800, 3)), "a", start + 10s);
        CHECK(f.figures().state == follow_state::current);
        REQUIRE(f.held() != nullptr);
        CHECK(f.held()->checksum() == digest_of_keys(size, 0, 800).checksum());
        CHECK(f.ask(start + 20s).query == "since=" + to_text(f.held()->stamp().generation));
        f.answered(good(delta(800, 3, 1010, 6)), "a", start + 20s);
        CHECK(f.held()->checksum() == digest_of_keys(size, 0, 1010).checksum());
        f.answered(good(whole(900, 4)), "a", start + 30s);
        CHECK(f.figures().trouble == follow_trouble::went_back);
    }

    TEST_CASE("what is no good is refused by name, and what was held is kept") {
        struct row {
            follow_answer answer;
            follow_trouble trouble;
        };
        const auto garbage = std::vector<std::byte>(300, std::byte{7});
        auto cut = whole(1000, 6);
        cut.resize(cut.size() - 1);
        const auto full = filter::encode(digest_of_keys({.bits = 640, .probes = 2}, 0, 2000, 6));
        const auto old = whole(900, 4);
        std::vector<std::uint64_t> nothing(1 << 20);
        const auto thin = filter::encode(filter::digest{{.layout = filter::digest_layout::standard,
                                                         .bits = std::uint64_t{64} << 20,
                                                         .probes = 2},
                                                        nothing,
                                                        filter::test::stamp_of(0, 6)});
        const std::vector<row> rows{
            {good(garbage), follow_trouble::malformed},
            {good({}), follow_trouble::malformed},
            {good(cut), follow_trouble::malformed},
            {good(full), follow_trouble::saturated},
            {good(old), follow_trouble::went_back},
            {good(thin), follow_trouble::too_large},
            {{.status = 403, .etag = {}, .node = {}, .fresh_for = {}, .body = {}},
             follow_trouble::refused},
            {{.status = 404, .etag = {}, .node = {}, .fresh_for = {}, .body = {}},
             follow_trouble::no_digest},
            {{.status = 503, .etag = {}, .node = {}, .fresh_for = {}, .body = {}},
             follow_trouble::not_ready},
            {{.status = 200, .etag = {}, .node = {}, .fresh_for = {}, .body = {}},
             follow_trouble::malformed},
            {{.status = 302, .etag = {}, .node = {}, .fresh_for = {}, .body = {}},
             follow_trouble::bad_status},
        };
        for (std::size_t i = 0; i < rows.size(); ++i) {
            CAPTURE(i);
            auto f = holding();
            f.answered(rows[i].answer, "a", start + 10s);
            CHECK(f.figures().trouble == rows[i].trouble);
            CHECK(f.figures().state == follow_state::failing);
            REQUIRE(f.held() != nullptr);
            CHECK(f.held()->may_contain(nth_key(1, 999)));
            CHECK(f.take_change().what == digest_follower::change::kind::nothing);
        }
    }

    TEST_CASE(
        "what a sibling says beside a refusal is told, as one line, and when it is asked again") {
        const auto told = [](std::string_view text) {
            digest_follower f{plan(), 1, start};
            (void)f.ask(start);
            f.answered({.status = 403,
                        .etag = {},
                        .node = {},
                        .fresh_for = {},
                        .body = std::as_bytes(std::span{text.data(), text.size()})},
                       "a",
                       start);
            return in_words(f.figures(), start);
        };
        CHECK(told("10.0.0.9 is no peer\nand more")
                  .starts_with(
                      ": refused (status 403: 10.0.0.9 is no peer); it is asked for again in "));
        for (const std::string_view bare : {"", "\n", "<html>", "\x1b[2J", "\xff"}) {
            CHECK(told(bare).starts_with(": refused (status 403); it is asked for again in "));
        }
        CHECK(told(std::string(5000, 'x')).size() < 260);
        CHECK(in_words(holding().figures(), start).empty());
    }

    TEST_CASE("what is thinner than an honest owner leaves it is refused, whatever it lists") {
        const auto trouble_with = [](std::uint64_t bits, std::uint64_t one_in, unsigned nodes = 1) {
            std::vector<std::uint64_t> words(bits / 64);
            for (std::uint64_t place = 0; one_in != 0 && place < bits; place += one_in) {
                words[place / 64] |= std::uint64_t{1} << place % 64;
            }
            const filter::digest_shape shape{
                .layout = filter::digest_layout::standard, .bits = bits, .probes = 6};
            auto of = plan();
            of.site_nodes = nodes;
            auto f = digest_follower{of, 1, start};
            (void)f.ask(start);
            f.answered(
                good(filter::encode({shape, words, filter::test::stamp_of(0, 6)})), "a", start);
            CHECK((f.held() != nullptr) == (f.figures().trouble == follow_trouble::none));
            return f.figures().trouble;
        };
        CHECK(trouble_with(1 << 26, 500) == follow_trouble::too_large);
        CHECK(trouble_with(1 << 26, 66) == follow_trouble::too_large);
        CHECK(trouble_with(1 << 26, 7) == follow_trouble::none);
        // Of nodes of which one digest is made each has so many times the bits.
        CHECK(trouble_with(1 << 26, 66, 2) == follow_trouble::none);
        CHECK(trouble_with(1 << 26, 500, 2) == follow_trouble::too_large);
        CHECK(trouble_with(1 << 26, 500, 8) == follow_trouble::none);
        // One that has just begun.
        CHECK(trouble_with(1 << 20, 0) == follow_trouble::none);
    }

    TEST_CASE("what there is no room for is let go of, and asked for again later") {
        auto f = holding();
        f.refuse("no room", start + 10s);
        CHECK(f.held() == nullptr);
        CHECK(f.figures().trouble == follow_trouble::too_large);
        CHECK(f.figures().detail == "no room");
        CHECK(f.figures().state == follow_state::never);
        CHECK(f.next() > start + 18s);
        CHECK(f.take_change().what == digest_follower::change::kind::nothing);
        CHECK(f.ask(start).query.empty());
    }

    TEST_CASE("a seen filter may be as thin as one that has just begun") {
        filter::admission_filter seen{{.objects = 1 << 19}, std::chrono::sys_seconds{}};
        seen.note(nth_key(1, 1), std::chrono::sys_seconds{});
        auto blocked = plan();
        blocked.layout = filter::digest_layout::blocked;
        digest_follower f{blocked, 1, start};
        (void)f.ask(start);
        f.answered(
            good(filter::encode(seen.recent_digest(filter::test::stamp_of(0, 1)))), "a", start);
        CHECK(f.figures().trouble == follow_trouble::none);
        REQUIRE(f.held() != nullptr);
        CHECK(f.held()->may_contain(nth_key(1, 1)));
    }

    TEST_CASE("a digest above the reader's limits is refused") {
        auto small = plan();
        small.most_bytes = 100;
        digest_follower f{small, 1, start};
        f.answered(good(whole(1000, 5)), "a", start);
        CHECK(f.figures().trouble == follow_trouble::too_large);
        small = plan();
        small.limits.bytes = 100;
        digest_follower g{small, 1, start};
        g.answered(good(whole(1000, 5)), "a", start);
        CHECK(g.figures().trouble == follow_trouble::too_large);
        CHECK(g.held() == nullptr);
    }

    TEST_CASE("under another secret what was held means nothing any more") {
        auto f = holding();
        auto stamp = filter::test::stamp_of(1000, 6);
        stamp.seed[0] ^= std::byte{1};
        const auto like = digest_of_keys(size, 0, 1000);
        const filter::digest other{
            {.layout = filter::digest_layout::standard, .bits = size.bits, .probes = size.probes},
            {like.words().begin(), like.words().end()},
            stamp};
        f.answered(good(filter::encode(other)), "a", start + 10s);
        CHECK(f.figures().trouble == follow_trouble::other_secret);
        CHECK(f.held() == nullptr);
        CHECK(f.take_change().what == digest_follower::change::kind::gone);
    }

    TEST_CASE("failures double the wait, up to a minute, and success ends that") {
        auto f = holding();
        auto now = start + 10s;
        std::vector<std::chrono::milliseconds> waits;
        for (int i = 0; i < 6; ++i) {
            f.failed(follow_trouble::unreachable, "", now);
            waits.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(f.next() - now));
            now = f.next();
        }
        CHECK(waits[0] <= 11s);
        CHECK(waits[1] >= 18s);
        CHECK(waits[2] >= 36s);
        CHECK(waits[3] >= 54s);
        CHECK(waits[5] <= 66s);
        f.answered({.status = 304, .etag = {}, .node = {}, .fresh_for = {}, .body = {}}, "a", now);
        CHECK(f.next() - now <= 11s);
    }

    TEST_CASE(
        "one that was away and is heard is asked soon, and more and more seldom in each wait") {
        auto f = holding();
        auto now = failing(f, follow_trouble::unreachable, 4);
        f.failed(follow_trouble::unreachable, "", now);
        const auto failed_at = now;
        const auto planned = f.next();
        CHECK(planned > failed_at + 50s);
        f.heard(now + 1ms);
        CHECK(f.next() == failed_at + 100ms);  // not at once behind a failure
        f.heard(now + 2ms);
        CHECK(f.next() == failed_at + 100ms);
        // Whoever asks all the time, and can't be asked, is asked twice as late each time, and the wait goes on.
        unsigned early = 0;
        for (now = f.next(); now < failed_at + 50s; now += 10ms) {
            f.heard(now);
            if (f.next() <= now) {
                ++early;
                (void)f.ask(now);
                f.failed(follow_trouble::unreachable, "", now);
                CHECK(f.next() == planned);
            }
        }
        CHECK(early == 8);  // 0.1, 0.3, 0.7, ... 25.5 s
        now = planned;
        (void)f.ask(now);
        f.failed(follow_trouble::unreachable, "", now);
        f.heard(now + 1s);
        CHECK(f.next() == now + 1s);
        CHECK(f.figures().next_at == f.next());
        f.answered(
            {.status = 304, .etag = {}, .node = {}, .fresh_for = {}, .body = {}}, "a", now + 1s);
        const auto next = f.next();
        f.heard(now + 2s);
        CHECK(f.next() == next);
    }

    TEST_CASE("one that was there all the time, and can't be used, is asked no sooner") {
        for (const auto why : {follow_trouble::refused,
                               follow_trouble::no_digest,
                               follow_trouble::too_large,
                               follow_trouble::malformed,
                               follow_trouble::saturated,
                               follow_trouble::other_secret}) {
            auto f = holding();
            f.failed(why, "", start + 10s);
            const auto next = f.next();
            f.heard(start + 11s);
            CHECK(f.next() == next);
        }
    }

    TEST_CASE(
        "one that is there again and still loads is not left alone for as long as it was away") {
        auto f = holding();
        auto now = failing(f, follow_trouble::timed_out, 6);
        const auto not_ready = [&] {
            f.answered(
                {.status = 503, .etag = {}, .node = {}, .fresh_for = {}, .body = {}}, "a", now);
            const auto wait = f.next() - now;
            now = f.next();
            return wait;
        };
        CHECK(not_ready() <= 11s);
        CHECK(not_ready() >= 18s);
        CHECK(not_ready() >= 36s);

        // Asking us, it is found to be ready when it has loaded for as long again.
        auto g = holding();
        now = failing(g, follow_trouble::unreachable, 6);
        const auto there = now, ready = there + 20s;
        while (g.figures().trouble != follow_trouble::none && now < there + 2min) {
            g.heard(now);
            if (g.next() <= now) {
                (void)g.ask(now);
                g.answered({.status = now < ready ? 503u : 304u,
                            .etag = {},
                            .node = {},
                            .fresh_for = {},
                            .body = {}},
                           "a",
                           now);
            }
            now += 100ms;
        }
        CHECK(now - there < 40s);
    }

    TEST_CASE("what is too old is not used, and used again once confirmed") {
        auto f = holding();
        f.failed(follow_trouble::timed_out, "", start + 60s);
        CHECK(f.held() != nullptr);
        f.look(start + 101s);
        CHECK(f.held() == nullptr);
        CHECK(f.figures().state == follow_state::outdated);
        CHECK(f.take_change().what == digest_follower::change::kind::gone);
        CHECK_FALSE(f.ask(start).query.empty());  // still good for a delta
        f.answered({.status = 304, .etag = {}, .node = {}, .fresh_for = {}, .body = {}},
                   "a",
                   start + 120s);
        CHECK(f.held() != nullptr);
        CHECK(f.take_change().what == digest_follower::change::kind::replaced);
    }

    TEST_CASE("one that was restored from a snapshot is followed once what it told is too old") {
        auto f = holding();
        f.answered(good(whole(900, 4)), "a", start + 10s);
        CHECK(f.figures().trouble == follow_trouble::went_back);
        CHECK(f.held() != nullptr);
        f.look(start + 101s);
        REQUIRE(f.held() == nullptr);
        (void)f.take_change();
        f.answered(good(delta(800, 3, 900, 4)), "a", start + 110s);
        CHECK(f.figures().trouble == follow_trouble::went_back);
        CHECK(f.held() == nullptr);
        f.answered(good(whole(900, 4)), "a", start + 120s);
        CHECK(f.figures().state == follow_state::current);
        REQUIRE(f.held() != nullptr);
        CHECK(f.held()->checksum() == digest_of_keys(size, 0, 900).checksum());
        CHECK(f.take_change().what == digest_follower::change::kind::replaced);
        // From there it goes on, and back no further.
        f.answered(good(whole(800, 3)), "a", start + 130s);
        CHECK(f.figures().trouble == follow_trouble::went_back);
        f.answered(good(delta(900, 4, 910, 5)), "a", start + 140s);
        CHECK(f.figures().state == follow_state::current);
        CHECK(f.figures().deltas == 1);
    }

    TEST_CASE("an instance that finds itself leaves itself out") {
        digest_follower f{plan(), 1, start};
        f.answered(good(whole(1000, 5)), "b", start);
        CHECK(f.figures().state == follow_state::itself);
        CHECK(f.held() == nullptr);
        CHECK(f.next() - start >= 50s);
    }

    TEST_CASE("siblings that began together do not ask together") {
        std::vector<steady_time> nexts;
        for (std::uint64_t i = 0; i < 20; ++i) {
            digest_follower f{plan(), i * 0x9e3779b97f4a7c15, start};
            f.answered(good(whole(10, 1)), "a", start);
            nexts.push_back(f.next());
        }
        std::sort(nexts.begin(), nexts.end());
        CHECK(nexts.back() - nexts.front() > 500ms);
    }

    TEST_CASE("a Squid's digest is taken, and asked for again when it says") {
        digest_follower f{plan_for_squid(), 1, start};
        const auto bytes = filter::test::squid_bytes("digest-1500.bin");
        auto answer = good(bytes);
        answer.fresh_for = 300s;
        f.answered(answer, "a", start);
        REQUIRE(f.held_squid() != nullptr);
        CHECK(f.held() == nullptr);
        CHECK(f.next() - start >= 270s);
        f.look(start + 800s);
        CHECK(f.held_squid() != nullptr);
        f.answered(good(std::span{bytes}.first(200)), "a", start + 300s);
        CHECK(f.figures().trouble == follow_trouble::malformed);
        CHECK(f.held_squid() != nullptr);
    }

    TEST_CASE("how long a Squid's digest is used hangs on what it said last") {
        digest_follower f{plan_for_squid(), 1, start};
        const auto bytes = filter::test::squid_bytes("digest-1500.bin");
        auto answer = good(bytes);
        answer.fresh_for = 3600s;
        f.answered(answer, "a", start);
        f.look(start + 3000s);
        CHECK(f.held_squid() != nullptr);
        answer.fresh_for = 10s;
        f.answered(answer, "a", start + 3000s);
        f.look(start + 6000s);
        CHECK(f.held_squid() == nullptr);
    }

    TEST_CASE("a Squid's digest that has not changed since is not sent again") {
        digest_follower f{plan_for_squid(), 1, start};
        CHECK(f.ask(start).modified_since.empty());
        const auto bytes = filter::test::squid_bytes("digest-1500.bin");
        auto answer = good(bytes);
        answer.last_modified = "Sat, 01 Jan 2022 00:00:00 GMT";
        f.answered(answer, "a", start);
        CHECK(f.ask(start).modified_since == answer.last_modified);
        f.answered({.status = 304, .etag = {}, .node = {}, .fresh_for = 300s, .body = {}},
                   "a",
                   start + 10s);
        CHECK(f.figures().unchanged == 1);
        CHECK(f.held_squid() != nullptr);
        CHECK(f.next() - start >= 280s);  // of this answer, not of `refresh`
    }

    TEST_CASE("whatever is answered in whatever order, what is held is as it was sent") {
        std::mt19937_64 random{3};
        digest_follower f{plan(), 1, start};
        std::uint64_t counter = 1, keys = 500;
        std::uint64_t held_keys = 0;
        auto now = start;
        for (int i = 0; i < 300; ++i) {
            now += 10s;
            f.look(now);
            const auto what = random() % 6;
            if (what == 0) {
                f.failed(follow_trouble::unreachable, "", now);
            } else if (what == 1) {
                f.answered(good(std::vector<std::byte>(random() % 400)), "a", now);
            } else {
                const auto from = keys;
                const auto base = counter;
                keys = 500 + random() % 1000;
                ++counter;
                const bool by_delta = what < 4;
                f.answered(good(by_delta ? delta(from, base, keys, counter) : whole(keys, counter)),
                           "a",
                           now);
                if (f.figures().trouble == follow_trouble::none) {
                    held_keys = keys;
                }
            }
            if (f.held()) {
                REQUIRE(f.held()->checksum() == digest_of_keys(size, 0, held_keys).checksum());
            }
        }
        CHECK(f.figures().deltas > 20);
        CHECK(f.figures().wholes > 20);
    }

    TEST_CASE("every state and trouble has a name") {
        for (unsigned i = 0; i <= static_cast<unsigned>(follow_state::itself); ++i) {
            CHECK(to_string(static_cast<follow_state>(i)) != "?");
        }
        for (unsigned i = 0; i <= static_cast<unsigned>(follow_trouble::went_back); ++i) {
            CHECK(to_string(static_cast<follow_trouble>(i)) != "?");
        }
    }
}

}  // namespace reprise::proxy::peer::test::of_digest_follower
