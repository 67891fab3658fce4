// What a sibling saw, told along with its digest.

#include "filter/admission.hpp"
#include "filter/news_wire.hpp"
#include "filter/place_sum.hpp"
#include "proxy/peer/digest_fetch.hpp"
#include "proxy/peer/resource.hpp"
#include "proxy/peer/seen_along.hpp"
#include "proxy/peer/seen_source.hpp"
#include "tests/unit/filter/digests.hpp"
#include "tests/unit/peer/sibling_bench.hpp"
#include "tests/unit/peer/sibling_server.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reprise::proxy::peer::test::of_seen_along {
namespace {

using namespace std::chrono_literals;

/// A sibling that shares what it sees, and answers at once whatever there is.
struct sharing {
    sharing() {
        digests.publish(digest_now(), wall_now());
        news.put({.epoch = 5, .counter = 1}, 1, {});
        filter->note(key(0), now);
        source.tick(steady_now(), wall_now());
    }
    static std::unique_ptr<filter::admission_filter> filter_of(std::uint64_t objects,
                                                               std::chrono::sys_seconds now) {
        return std::make_unique<filter::admission_filter>(
            filter::admission_settings{.objects = objects, .age = 1h}, now);
    }
    [[nodiscard]] filter::digest digest_now() const {
        filter::standard_bloom bits{filter::digest_size(1000, 0.01)};
        for (const auto i : stored) {
            bits.insert(key(i));
        }
        return filter::digest::of(bits,
                                  {.seed = secret.id(),
                                   .generation = {.epoch = 5, .counter = 1 + stored.size()},
                                   .keys = stored.size()});
    }
    /// Its digest names one more, and news tells so to who holds the generation before.
    void stores(std::uint64_t i) {
        const auto before = digest_now();
        stored.push_back(i);
        const auto after = digest_now();
        auto wire = filter::encode_news(
            {.shape = after.shape(),
             .stamp = after.stamp(),
             .sum = filter::place_sum(after.words()),
             .base_counter = before.stamp().generation.counter,
             .base_sum = filter::place_sum(before.words())},
            {.places = filter::flipped_places(before, after), .names = {}},
            after.words(),
            [this](std::uint64_t name) { return key_of(name, secret); });
        digests.publish(digest_now(), wall_now());
        news.put(after.stamp().generation,
                 1,
                 {{.base = before.stamp().generation.counter,
                   .wire = std::make_shared<const std::vector<std::byte>>(std::move(*wire))}});
    }
    void sees(std::uint64_t i) {
        filter->note(key(i), now);
        source.noted(name_of(url(i), secret));
    }
    [[nodiscard]] filter::key_hash key(std::uint64_t i) const {
        return key_of(name_of(url(i), secret), secret);
    }
    static std::string url(std::uint64_t i) { return "http://o/" + std::to_string(i); }

    std::string reply(const http::request_head& head) {
        sees(first_of_others + drawn++);  // so that there is news, and no question is asked in vain
        source.tick(steady_now(), wall_now());
        const bool for_seen = head.target.starts_with(seen_path);
        (for_seen                                         ? of_seen
         : head.target.find("&seen=") != head.target.npos ? of_both
                                                          : of_digest) += 1;
        CHECK(http::find(head.fields, old_signature_field) == nullptr);
        if (is_down) {
            return {};
        }
        const auto make = [&] {
            return answer(head,
                          {.is_reprise = true},
                          {.digest = digests.now(),
                           .seen = source.digests().now(),
                           .squid = nullptr,
                           .node = "b",
                           .digest_news = &news,
                           .seen_news = is_old && !for_seen ? nullptr : source.news(),
                           .waited = true},
                          false,
                          wall_now());
        };
        (void)make();  // what is wished for is there a moment later
        source.tick(steady_now(), wall_now());
        auto made = make();
        for (const auto& part : {made.body, made.seen}) {
            if (part) {
                made.head.append(reinterpret_cast<const char*>(part->data()), part->size());
            }
        }
        if (!false_length.empty() && made.head.find("Reprise-Seen: ") != std::string::npos) {
            const auto at = made.head.find("Reprise-Seen: ") + 14;
            made.head.replace(at, made.head.find("\r\n", at) - at, false_length);
        }
        return made.head;
    }

    fleet_secret secret = *fleet_secret::from_content(std::string(40, 'f'));
    std::chrono::sys_seconds now = std::chrono::floor<std::chrono::seconds>(wall_now());
    std::unique_ptr<filter::admission_filter> filter = filter_of(10'000, now);
    std::vector<std::uint64_t> stored;
    publication digests;
    news_shelf news{[] {}};
    std::uint64_t drawn = 0;
    seen_source source{
        secret.id(),
        1s,
        [this](const filter::digest_stamp& stamp) {
            return std::make_unique<filter::digest>(filter->recent_digest(stamp));
        },
        [this] { return ++drawn; },
        {.every = 1ms, .key_of = [this](std::uint64_t name) { return key_of(name, secret); }}};
    static constexpr std::uint64_t first_of_others = 1000;
    unsigned of_digest = 0, of_seen = 0, of_both = 0;  // questions
    bool is_old = false;                               // it does not know that the one may go along
    bool is_down = false;
    std::string false_length;
};

struct bench : test::sibling_bench {
    bench() : sibling_bench{std::string(40, 'f')} {
        followed one;
        one.name = "b";
        one.host = "127.0.0.1";
        one.port = server.port;
        one.seen = true;
        one.refresh = 20ms;
        fetcher.follow({one});
    }
    ~bench() {
        fetcher.stop();
        end();
    }
    [[nodiscard]] follow_context listening() {
        auto by = context();
        by.seen = &seen;
        by.news = 10ms;
        return by;
    }
    [[nodiscard]] bool names_b(std::uint64_t i) {
        return !stored.find(there.url(i), there.key(i), steady_now()).empty();
    }
    [[nodiscard]] bool hears_of(std::uint64_t i) { return reader.may_contain(there.key(i)); }
    [[nodiscard]] follow_figures seen_figures() const { return fetcher.figures().front().seen; }
    template <class Condition>
    void until(Condition met) {
        run_until(met);
        REQUIRE(met());
    }
    void until_along() {
        until([this] { return there.of_both > 1; });
        const auto asked = there.of_both;
        until([&] { return there.of_both > asked; });
    }

    sharing there;
    sibling_server server{*this, [this](const auto& head) { return there.reply(head); }};
    sibling_table::reader stored{table};
    seen_elsewhere seen;
    seen_elsewhere::reader reader{seen};
    digest_fetcher fetcher{listening()};
};

}  // namespace

TEST_SUITE("peer/seen_along") {
    TEST_CASE("one coroutine asks for both, and the other is invited once") {
        const filter::digest_generation digest{.epoch = 1, .counter = 3}, five{2, 5}, six{2, 6};
        const auto answer_of = [](std::size_t bytes, const std::string& seen) {
            return got_response{
                .status = 200, .seen = seen, .body = std::vector<std::byte>(bytes, std::byte{7})};
        };
        seen_along along;
        // Not before an answer shows that it can be, nor where either is followed otherwise.
        CHECK_FALSE(along.ask(digest, five));
        auto plain = answer_of(10, "0");
        CHECK_FALSE(along.take(plain, five));
        CHECK(plain.body.size() == 10);
        CHECK_FALSE(along.ask(std::nullopt, five));
        CHECK_FALSE(along.ask(digest, std::nullopt));
        CHECK(along.ask(digest, five) == five);
        CHECK(along.asks_for_both());

        // It does not rest yet: what came is not taken, and it is not invited again until it asks for itself.
        auto early = answer_of(10, "4");
        CHECK_FALSE(along.take(early, five));
        CHECK(early.body.size() == 6);
        CHECK(early.had_more);
        CHECK(along.ends(digest, five));
        CHECK_FALSE(along.ask(digest, five));
        along.asks_itself();
        CHECK(along.ask(digest, five) == five);

        // It rests: each has its part, and one that is empty is no news.
        along.rest();
        auto both = answer_of(10, "4");
        auto part = along.take(both, five);
        REQUIRE(part);
        CHECK(part->status == 200);
        CHECK(part->body.size() == 4);
        CHECK(both.body.size() == 6);
        CHECK_FALSE(along.ends(digest, six));
        CHECK(along.ask(digest, six) == six);
        auto seen_alone = answer_of(4, "4");
        REQUIRE(along.take(seen_alone, six));
        CHECK(seen_alone.status == 304);
        CHECK(seen_alone.had_more);
        CHECK(along.ask(digest, six) == six);
        auto digest_alone = answer_of(4, "0");
        part = along.take(digest_alone, six);
        REQUIRE(part);
        CHECK(part->status == 304);
        CHECK(digest_alone.status == 200);

        // No news leads from there: the other is let go, and not asked along until it holds something else.
        CHECK(along.ask(digest, six) == six);
        auto beyond = answer_of(4, "ask");
        CHECK_FALSE(along.take(beyond, six));
        CHECK(beyond.body.size() == 4);
        CHECK(along.ends(digest, six));
        along.rest_is_over();
        along.asks_itself();
        CHECK_FALSE(along.ask(digest, six));
        CHECK(along.ask(digest, five) == five);

        // What fails, or has no such field, lets it go as well; so does a digest that is not followed by news any more.
        along.rest();
        auto failed = answer_of(0, "");
        CHECK_FALSE(along.take(failed, five));
        CHECK(along.ends(digest, five));
        auto again = answer_of(1, "0");
        (void)along.take(again, five);
        CHECK(along.ask(digest, five) == five);
        CHECK(along.ends(std::nullopt, five));
        for (const std::string wrong : {"11", "-1", "1x", "18446744073709551616", "4, 4"}) {
            auto known = answer_of(1, "0");
            (void)along.take(known, five);
            REQUIRE(along.ask(digest, five) == five);
            auto bad = answer_of(10, wrong);
            CHECK_FALSE(along.take(bad, five));
            CHECK(bad.trouble == follow_trouble::bad_message);
            CHECK(along.ends(digest, five));
        }
    }

    TEST_CASE("once both are followed by news one question asks for both") {
        bench b;
        b.until([&] { return b.hears_of(0); });
        b.until_along();
        const auto before = b.there.of_seen;
        for (std::uint64_t i = 1; i < 3; ++i) {
            b.there.sees(i);
            b.until([&] { return b.hears_of(i); });
        }
        CHECK(b.there.of_seen == before);
        CHECK(b.seen_figures().news >= 2);
        CHECK(b.seen_figures().wholes == 1);
        CHECK(b.seen_figures().state == follow_state::current);
        CHECK(b.fetcher.figures().front().digest.wholes == 1);
        // Both in one answer: each has its part of the body.
        const auto pieces = b.fetcher.figures().front().digest.news;
        b.there.stores(7);
        b.there.sees(20);
        b.until([&] { return b.names_b(7) && b.hears_of(20); });
        CHECK(b.fetcher.figures().front().digest.news == pieces + 1);
        CHECK(b.fetcher.figures().front().digest.failed == 0);
        CHECK(b.seen_figures().failed == 0);
        CHECK(b.there.of_seen == before);

        // News leads nowhere any more: it is asked for itself, and goes along again.
        b.there.filter = sharing::filter_of(20'000, b.there.now);
        b.there.filter->note(b.there.key(9), b.there.now);
        b.until([&] { return b.hears_of(9); });
        CHECK(b.there.of_seen > before);
        CHECK(b.seen_figures().wholes == 2);
        b.until_along();
        b.there.sees(10);
        b.until([&] { return b.hears_of(10); });
    }

    TEST_CASE("of a sibling that knows nothing of it both are asked for, each for itself") {
        bench b;
        b.there.is_old = true;
        b.until([&] { return b.hears_of(0) && b.there.of_digest > 2; });
        for (std::uint64_t i = 1; i < 3; ++i) {
            b.there.sees(i);
            b.until([&] { return b.hears_of(i); });
        }
        CHECK(b.there.of_seen > 2);
        CHECK(b.there.of_both == 0);
        CHECK(b.seen_figures().state == follow_state::current);
    }

    TEST_CASE("a length that can't be is refused by name, and loses nothing of what was seen") {
        for (const std::string wrong : {"999999", "1x"}) {
            bench b;
            b.there.false_length = wrong;
            b.until([&] {
                return b.fetcher.figures().front().digest.trouble == follow_trouble::bad_message;
            });
            CHECK(b.fetcher.figures().front().digest.detail.starts_with("Reprise-Seen"));
            b.there.sees(1);
            b.until([&] { return b.hears_of(1); });
        }
    }

    TEST_CASE("one that goes away while both went along is followed again in both") {
        bench b;
        b.until_along();
        b.there.is_down = true;
        b.until([&] { return b.seen_figures().failed > 0; });
        CHECK(b.fetcher.figures().front().digest.failed > 0);
        b.there.is_down = false;
        b.there.sees(1);
        b.until([&] { return b.hears_of(1); });
    }
}

}  // namespace reprise::proxy::peer::test::of_seen_along
