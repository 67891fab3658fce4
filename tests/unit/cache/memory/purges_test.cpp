#include "proxy/cache/memory/memory_tier.hpp"
#include "proxy/cache/memory/purges.hpp"
#include "proxy/cache/memory/tags.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace reprise::proxy::cache::test::of_purges {

using namespace std::chrono_literals;

namespace {

constexpr wall_time now{1000s};

stored_ptr tagged(const std::string& lines, std::chrono::seconds lifetime = 600s) {
    auto made = response({.arrived = 900s});
    made->head.insert(made->status_line_size, lines);
    index_head(made);
    made->freshness.lifetime = lifetime;
    made->reusable_until = http::fresh_until(made->freshness);
    return made;
}

}  // namespace

TEST_SUITE("cache/memory/purges") {

    TEST_CASE("a key is split into origin, URL and space") {
        const auto plain = split_key("http://a.example:81/b/c?d");
        CHECK(plain.origin == "http://a.example:81");
        CHECK(plain.url == "http://a.example:81/b/c?d");
        CHECK(plain.space.empty());
        const auto own = split_key("//a.example/b http://up:80");
        CHECK(own.origin == "//a.example");
        CHECK(own.url == "//a.example/b");
        CHECK(own.space == " http://up:80");
    }

    TEST_CASE("a ban by prefix meets what begins so, in its space") {
        purge_list list;
        list.ban_prefix("http://a/b", "", purge_mode::hard, now);
        CHECK(list.judge("http://a/b", {}, 0).hard);
        CHECK(list.judge("http://a/bc", {}, 0).hard);
        CHECK(list.judge("http://a/", {}, 0).none());
        CHECK(list.judge("http://a/b http://up", {}, 0).none());
        list.ban_prefix("//a/", " http://up", purge_mode::hard, now);
        CHECK(list.judge("//a/b http://up", {}, 0).hard);
        CHECK(list.judge("//a/b http://other", {}, 0).none());
    }

    TEST_CASE("a ban by tag meets what has it, of its whole origin and no other") {
        purge_list list;
        list.ban_tag(tag_hash("k"), "http://a/", purge_mode::hard, now);
        const std::array tags{tag_hash("k")};
        const std::array others{tag_hash("l")};
        const std::array any{any_tag};
        CHECK(list.judge("http://a/b", tags, 0).hard);
        CHECK(list.judge("http://a/b", any, 0).hard);
        CHECK(list.judge("http://a/b", others, 0).none());
        CHECK(list.judge("http://ab/", tags, 0).none());
        CHECK(list.judge("http://a:81/", tags, 0).none());
    }

    TEST_CASE("what was checked up to a ban's epoch is not asked about it again") {
        purge_list list;
        CHECK(list.epoch() == 0);
        list.ban_prefix("http://a/", "", purge_mode::hard, now);
        CHECK(list.epoch() == 1);
        const auto said = list.judge("http://a/", {}, 0);
        CHECK(said.checked == 1);
        CHECK(list.judge("http://a/", {}, said.checked).none());
    }

    TEST_CASE("hard wins over soft, and of soft ones the first counts") {
        purge_list list;
        list.ban_prefix("http://a/", "", purge_mode::soft, now);
        list.ban_prefix("http://a/b", "", purge_mode::soft, now + 5s);
        CHECK(list.judge("http://a/b", {}, 0).soft == now);
        list.ban_prefix("http://a/b/", "", purge_mode::hard, now);
        CHECK(list.judge("http://a/b/", {}, 0).hard);
        CHECK_FALSE(list.judge("http://a/b/", {}, 0).soft);
    }

    TEST_CASE("a soft ban said again does not put off the end that an earlier one made") {
        const std::string url = "http://a/b";
        purge_list list;
        for (int i = 0; i < 4; ++i) {
            list.ban_prefix("http://a/", "", purge_mode::soft, now + i * 10s);
            list.ban_prefix(url, "", purge_mode::soft, now + i * 10s + 5s);
        }
        CHECK(list.figures().bans == 2);
        const std::vector<wall_time> made{
            now, now + 5s, now + 10s, now + 15s, now + 20s, now + 25s, now + 30s, now + 35s};
        for (std::uint64_t since = 0; since < made.size(); ++since) {
            CAPTURE(since);
            const auto soft = list.judge(url, {}, since).soft;
            REQUIRE(soft);
            CHECK(*soft <= made[since]);
        }
        // The first and the last are known to the moment.
        CHECK(list.judge(url, {}, 0).soft == made[0]);
        CHECK(list.judge(url, {}, 6).soft == made[6]);
        CHECK(list.judge(url, {}, 7).soft == made[7]);
        CHECK(list.judge(url, {}, 8).none());

        // A journal to which each was appended has both.
        purge_list after;
        std::vector<kept_ban> journal;
        for (std::uint64_t i = 0; i < 3; ++i) {
            journal.push_back({.epoch = i + 1,
                               .time = now + static_cast<int>(i) * 10s,
                               .mode = purge_mode::soft,
                               .prefix = url,
                               .space = {}});
        }
        after.restore(journal, {}, 10);
        CHECK(after.figures().bans == 1);
        CHECK(after.judge(url, {}, 0).soft == now);
        CHECK(after.judge(url, {}, 2).soft == now + 20s);

        // A hard one ends what soft ones began.
        list.ban_prefix(url, "", purge_mode::hard, now + 50s);
        list.ban_prefix(url, "", purge_mode::soft, now + 60s);
        CHECK(list.judge(url, {}, 9).soft == now + 60s);
    }

    TEST_CASE("what is restored and does not fit forgets no less than was forgotten before") {
        purge_list list{{.bans = 1}};
        const auto of = [](std::uint64_t epoch, purge_mode mode) {
            kept_ban ban;
            ban.epoch = epoch;
            ban.time = now;
            ban.mode = mode;
            ban.prefix = "http://" + std::to_string(epoch) + '/';
            return ban;
        };
        list.restore({of(1, purge_mode::hard), of(2, purge_mode::soft), of(9, purge_mode::hard)},
                     {.hard = 8, .soft = 7, .soft_time = now + 5s},
                     20);
        CHECK(list.forgotten().hard == 8);
        CHECK(list.forgotten().soft == 7);
        CHECK(list.forgotten().soft_time == now + 5s);
        CHECK(list.judge("http://z/", {}, 7).hard);
        CHECK(list.judge("http://z/", {}, 8).none());
    }

    TEST_CASE("a ban said again takes the older one's place; a soft one leaves a hard one") {
        purge_list list;
        for (int i = 0; i < 100; ++i) {
            list.ban_prefix("http://a/", "", purge_mode::hard, now);
        }
        CHECK(list.figures().bans == 1);
        CHECK(list.figures().prefixes == 100);
        list.ban_prefix("http://a/", "", purge_mode::soft, now);
        CHECK(list.figures().bans == 2);
        CHECK(list.judge("http://a/", {}, 99).hard);
        CHECK(list.judge("http://a/", {}, 100).soft);
    }

    TEST_CASE("a full list forgets its oldest bans: what was not looked at since is purged") {
        purge_list list{{.bans = 2, .bytes = 1000}};
        list.ban_prefix("http://a/", "", purge_mode::soft, now);
        list.ban_prefix("http://b/", "", purge_mode::hard, now);
        list.ban_prefix("http://c/", "", purge_mode::hard, now);
        CHECK(list.figures().bans == 2);
        CHECK(list.figures().forgotten == 1);
        CHECK(list.judge("http://z/", {}, 0).soft == now);  // it was a soft one
        CHECK(list.judge("http://z/", {}, 1).none());
        list.ban_prefix("http://d/", "", purge_mode::hard, now);
        CHECK(list.judge("http://z/", {}, 1).hard);
        CHECK(list.judge("http://z/", {}, 2).none());
        list.ban_prefix("http://" + std::string(2000, 'e') + "/", "", purge_mode::hard, now);
        CHECK(list.figures().bans == 0);
        CHECK(list.judge("http://z/", {}, 4).hard);
        CHECK(list.judge("http://z/", {}, 5).none());
    }

    TEST_CASE("bans of both modes are known by their times, forgotten ones by the oldest kept") {
        purge_list purges{{.bans = 2}};
        const std::array tags{tag_hash("t")};
        constexpr steady_time made{1000s};  // whatever the other clock says
        CHECK_FALSE(purges.met_since("http://a/b", tags, steady_time::min()));
        purges.ban_prefix("http://a/", "", purge_mode::hard, now, made);
        CHECK(purges.met_since("http://a/b", {}, made));
        CHECK_FALSE(purges.met_since("http://a/b", {}, made + 1ms));
        CHECK_FALSE(purges.met_since("http://b/", {}, made));
        purges.ban_tag(tag_hash("t"), "http://b/", purge_mode::soft, now - 1h, made + 5s);
        CHECK(purges.met_since("http://b/c", tags, made + 5s));
        CHECK_FALSE(purges.met_since("http://b/c", {}, made));
        purges.ban_prefix("http://c/", "", purge_mode::hard, now, made + 9s);
        // The first is forgotten: it may have been of anything.
        CHECK(purges.met_since("http://d/", {}, made + 5s));
        CHECK_FALSE(purges.met_since("http://d/", {}, made + 6s));
    }

    TEST_CASE(
        "bans of before a restart were made as long ago as the clock says, and none is to come") {
        const auto restored = [](wall_time time) {
            kept_ban one;
            one.epoch = 1;
            one.time = time;
            one.prefix = "http://a/";
            auto list = std::make_unique<purge_list>();
            list->restore({one}, {}, 1);
            return list;
        };
        const auto wall = resident_now();
        const auto steady = steady_now();
        const auto earlier = restored(wall - 1h);
        CHECK(earlier->met_since("http://a/b", {}, steady - 2h));
        CHECK_FALSE(earlier->met_since("http://a/b", {}, steady - 1min));
        for (const auto ahead : {wall + 24h, wall_time::max()}) {
            const auto later = restored(ahead);
            CHECK(later->met_since("http://a/b", {}, steady));
            CHECK_FALSE(later->met_since("http://a/b", {}, steady_now() + 1ms));
        }
        CHECK_FALSE(restored(wall_time::min())->met_since("http://a/b", {}, steady));
    }

    TEST_CASE("the store drops what was purged when it is next looked up, and counts it") {
        memory_tier store{1 << 20};
        CHECK(store.put(key_of("http://a/b"), "http://a/b", tagged("")));
        CHECK(store.put(key_of("http://a/c"), "http://a/c", tagged("")));
        store.purges().ban_prefix("http://a/b", "", purge_mode::hard, now);
        CHECK(store.figures().objects == 2);
        CHECK(store.peek(key_of("http://a/b"), "http://a/b", {}).what == lookup::absent);
        CHECK(store.variants(key_of("http://a/b"), "http://a/b").empty());
        CHECK(store.figures().objects == 2);  // looking changes nothing
        CHECK(store.find(key_of("http://a/b"), "http://a/b", {}).what == lookup::absent);
        CHECK(store.figures().objects == 1);
        CHECK(store.figures().purged == 1);
        CHECK(store.find(key_of("http://a/c"), "http://a/c", {}).what == lookup::present);
        CHECK(store.put(key_of("http://a/b"), "http://a/b", tagged("")));
        CHECK(store.find(key_of("http://a/b"), "http://a/b", {}).what == lookup::present);
    }

    TEST_CASE("a soft purge ends the lifetime, and leaves the rest as it was") {
        memory_tier store{1 << 20};
        const auto kept = tagged("Surrogate-Key: k\r\n");
        CHECK(store.put(key_of("http://a/b"), "http://a/b", kept));
        store.purges().ban_tag(tag_hash("k"), "http://a/", purge_mode::soft, now);
        for (int i = 0; i < 2; ++i) {
            const auto left = i == 0 ? store.peek(key_of("http://a/b"), "http://a/b", {})
                                     : store.find(key_of("http://a/b"), "http://a/b", {});
            REQUIRE(left.what == lookup::present);
            CHECK(left.response->purged_softly());
            CHECK(left.response->freshness().lifetime == 100s);  // its age at the purge
            CHECK(http::remaining(left.response->freshness(), now) == 0s);
            CHECK(left.response->reusable_until() == wall_time::min());
            CHECK(bytes_of(*left.response->content()) == bytes_of(*kept->content()));
            CHECK(std::ranges::equal(left.response->tags(), kept->tags()));
        }
        CHECK(store.figures().purged == 1);
    }

    TEST_CASE("what was stale before a soft purge is no less stale after it") {
        const auto stale = tagged("", 30s);
        CHECK(ended_at(*stale, now)->freshness().lifetime == 30s);
    }

    TEST_CASE("expire makes every variant of a URL stale and says how many there were") {
        memory_tier store{1 << 20};
        CHECK(store.expire(key_of("http://a/"), "http://a/", now) == 0);
        CHECK(store.put(key_of("http://a/"), "http://a/", tagged("")));
        CHECK(store.expire(key_of("http://a/"), "http://a/", now) == 1);
        CHECK(store.find(key_of("http://a/"), "http://a/", {}).response->purged_softly());
        store.purges().ban_prefix("http://a/", "", purge_mode::hard, now);
        CHECK(store.expire(key_of("http://a/"), "http://a/", now) == 0);
        CHECK(store.invalidate(key_of("http://a/"), "http://a/") == 0);
    }

    TEST_CASE("what was asked for before a purge is neither put nor freshened after it") {
        memory_tier store{1 << 20};
        const std::string url = "http://a/b";
        const auto key = key_of(url);
        const auto asked = store.mark(key);
        const auto kept = tagged("");
        CHECK(store.put(key, url, kept, asked));
        store.purges().ban_tag(tag_hash("new"), url, purge_mode::soft, now);
        CHECK_FALSE(store.put(key, url, tagged("Cache-Tag: new\r\n"), asked));
        CHECK_FALSE(store.freshen(key, url, kept, tagged("Cache-Tag: new\r\n"), asked));
        CHECK(store.find(key, url, {}).response == kept);
        store.purges().ban_prefix(url, "", purge_mode::hard, now);
        CHECK_FALSE(store.freshen(key, url, kept, tagged("")));
        CHECK_FALSE(store.put(key, url, tagged(""), asked));
        CHECK(store.put(key, url, tagged("")));
    }

    TEST_CASE(
        "bans that go on behind another's numbers meet what that checked, those since then too") {
        purge_list list{{.bans = 3, .bytes = 1000}};
        list.ban_prefix("http://a/", "", purge_mode::hard, now);
        const auto since = list.epoch();
        list.ban_prefix("http://b/", "", purge_mode::hard, now);
        const std::uint64_t checked = 1000;  // by the other, before it was told of b
        list.go_on_behind(checked, since);
        CHECK(list.epoch() == checked + 1);
        CHECK(list.judge("http://a/", {}, checked).none());
        CHECK(list.judge("http://a/", {}, 0).hard);
        CHECK(list.judge("http://b/", {}, checked).hard);
        list.ban_prefix("http://c/", "", purge_mode::soft, now);
        CHECK(list.judge("http://c/", {}, checked + 1).soft == now);
        CHECK(list.made_since(checked).size() == 2);
        // What was made since then and has left a full list may meet anything that was checked by then.
        for (const auto* prefix : {"http://d/", "http://e/"}) {
            list.ban_prefix(prefix, "", purge_mode::hard, now);
        }
        list.go_on_behind(2000, since);
        CHECK(list.judge("http://x/", {}, 1999).hard);
        CHECK(list.judge("http://x/", {}, 2000).none());
    }

    TEST_CASE("a list restored judges as the one whose bans were kept") {
        purge_list before{{.bans = 3, .bytes = 1000}};
        before.ban_prefix("http://gone/", "", purge_mode::soft, now);
        before.ban_prefix("http://lost/", "", purge_mode::hard, now);
        before.ban_prefix("http://a/", "", purge_mode::hard, now);
        before.ban_tag(tag_hash("t"), "http://b/", purge_mode::soft, now + 5s);
        before.ban_prefix("//c/", " http://up", purge_mode::hard, now);
        const auto newest = before.made_since(before.epoch() - 1);
        REQUIRE(newest.size() == 1);
        CHECK(newest[0].prefix == "//c/");
        CHECK(before.made_since(before.epoch()).empty());

        purge_list after{{.bans = 3, .bytes = 1000}};
        after.restore(before.made_since(0), before.forgotten(), before.epoch() + 10);
        CHECK(after.epoch() == before.epoch() + 10);
        const std::array tags{tag_hash("t")};
        for (const auto* url : {"http://a/x", "http://b/x", "//c/x http://up", "http://d/"}) {
            for (std::uint64_t since = 0; since <= before.epoch(); ++since) {
                CAPTURE(url);
                CAPTURE(since);
                const auto then = before.judge(url, tags, since);
                const auto now_says = after.judge(url, tags, since);
                CHECK(then.hard == now_says.hard);
                CHECK(then.soft == now_says.soft);
            }
        }
        const auto epoch = after.epoch();
        after.ban_prefix("http://d/", "", purge_mode::hard, now);
        CHECK(after.judge("http://d/", {}, epoch).hard);
        CHECK(after.judge("http://d/", {}, epoch + 1).none());
    }
}

}  // namespace reprise::proxy::cache::test::of_purges
