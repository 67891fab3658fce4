// What the memory tier finds, replaces, frees and evicts, and that its account of bytes is exact.

#include "filter/key_hash.hpp"
#include "proxy/cache/memory/memory_tier.hpp"
#include "tests/unit/cache/memory/neighbours.hpp"
#include "tests/unit/cache/responses.hpp"
#include "tests/unit/filter/keys.hpp"
#include "tests/unit/http/field_lines.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace reprise::proxy::cache::test::of_memory_tier {

using http::lines;
using reprise::filter::key_hash;
using std::chrono::seconds;

namespace {

const std::string url = "http://origin.test/page";

bool holds_neighbour(const memory_tier& store, std::uint64_t n) {
    return store.peek(neighbour(n), numbered(n), {}).what == lookup::present;
}

std::string found_bytes(const lookup_result& what) {
    return what.response ? bytes_of(*what.response->content()) : "(nothing)";
}

}  // namespace

TEST_SUITE_BEGIN("cache/memory/memory_tier");

TEST_CASE("an empty store holds nothing and charges nothing") {
    const memory_tier store{ample};
    CHECK(store.find(key_of(url), url, {}).what == lookup::absent);
    CHECK(store.figures().bytes == 0);
    CHECK(store.figures().objects == 0);
    CHECK(store.figures().capacity == ample);
}

TEST_CASE("what was put is found, and it is the same object") {
    memory_tier store{ample};
    const stored_ptr kept = response({.content = "page"});
    REQUIRE(store.put(key_of(url), url, kept));
    const auto hit = store.find(key_of(url), url, {});
    CHECK(hit.what == lookup::present);
    CHECK(hit.response == kept);
    CHECK(store.peek(key_of(url), url, {}).response == kept);
    CHECK(store.figures().inserted == 1);
    CHECK(store.figures().objects == 1);
}

TEST_CASE("a later put replaces the earlier one") {
    memory_tier store{ample};
    store.put(key_of(url), url, response({.content = "old"}));
    store.put(key_of(url), url, response({.content = "new"}));
    CHECK(found_bytes(store.find(key_of(url), url, {})) == "new");
    CHECK(store.figures().objects == 1);
    CHECK(store.figures().inserted == 1);
    CHECK(store.figures().replaced == 1);
}

TEST_CASE("what was found stays whole when it leaves the store meanwhile") {
    memory_tier store{ample};
    store.put(key_of(url), url, response({.content = "page"}));
    const auto hit = store.find(key_of(url), url, {});
    CHECK(store.invalidate(key_of(url), url) == 1);
    CHECK(store.find(key_of(url), url, {}).what == lookup::absent);
    CHECK(found_bytes(hit) == "page");
}

TEST_CASE("two URLs with one hash never answer for each other") {
    memory_tier store{ample};
    const key_hash same{.low = 1, .high = 2};
    const std::string other = "http://origin.test/other";
    store.put(same, url, response({.content = "first"}));
    CHECK(store.find(same, other, {}).what == lookup::absent);
    CHECK(store.invalidate(same, other) == 0);
    const auto first = store.find(same, url, {}).response;
    CHECK(!store.freshen(same, other, first, response({.content = "forged"})));
    CHECK(found_bytes(store.find(same, url, {})) == "first");

    // The newer takes the place; the charge of the older goes with it.
    store.put(same, other, response({.content = "second"}));
    CHECK(store.find(same, url, {}).what == lookup::absent);
    CHECK(found_bytes(store.find(same, other, {})) == "second");
    CHECK(store.figures().objects == 1);
    CHECK(store.invalidate(same, other) == 1);
    CHECK(store.figures().bytes == 0);
}

TEST_CASE("a variant answers only requests whose fields select it") {
    memory_tier store{ample};
    const auto german = lines({"Accept-Language: de"});
    const auto french = lines({"Accept-Language: fr"});
    const auto polish = lines({"Accept-Language: pl"});
    store.put(key_of(url),
              url,
              response({.content = "Hallo", .vary = "Accept-Language", .request = german}));
    store.put(key_of(url),
              url,
              response({.content = "Bonjour", .vary = "Accept-Language", .request = french}));
    CHECK(found_bytes(store.find(key_of(url), url, german)) == "Hallo");
    CHECK(found_bytes(store.find(key_of(url), url, french)) == "Bonjour");
    CHECK(store.find(key_of(url), url, polish).what == lookup::other_variant);
    CHECK(store.find(key_of(url), url, {}).what == lookup::other_variant);
    CHECK(store.figures().objects == 2);
}

TEST_CASE("a put replaces the variant with its own selecting values and no other") {
    memory_tier store{ample};
    const auto german = lines({"Accept-Language: de"});
    const auto french = lines({"Accept-Language: fr"});
    for (const auto* content : {"Hallo", "Guten Tag"}) {
        store.put(key_of(url),
                  url,
                  response({.content = content, .vary = "Accept-Language", .request = german}));
        store.put(key_of(url),
                  url,
                  response({.content = "Bonjour", .vary = "Accept-Language", .request = french}));
    }
    CHECK(found_bytes(store.find(key_of(url), url, german)) == "Guten Tag");
    CHECK(store.figures().objects == 2);
    CHECK(store.figures().replaced == 2);
}

TEST_CASE("of several variants that a request selects, the newest response answers") {
    // The origin changed its Vary: both match. RFC 9111 4.1 asks for the most recent.
    const auto request = lines({"Accept-Language: de", "Accept-Encoding: gzip"});
    const auto by_language = response({.content = "by language",
                                       .vary = "Accept-Language",
                                       .request = request,
                                       .arrived = seconds{200}});
    const auto by_encoding = response({.content = "by encoding",
                                       .vary = "Accept-Encoding",
                                       .request = request,
                                       .arrived = seconds{100}});
    SUBCASE("put last") {
        memory_tier store{ample};
        store.put(key_of(url), url, by_encoding);
        store.put(key_of(url), url, by_language);
        CHECK(found_bytes(store.find(key_of(url), url, request)) == "by language");
    }
    SUBCASE("put first") {
        memory_tier store{ample};
        store.put(key_of(url), url, by_language);
        store.put(key_of(url), url, by_encoding);
        CHECK(found_bytes(store.find(key_of(url), url, request)) == "by language");
    }
}

TEST_CASE("a resource keeps at most most_variants variants, the latest ones") {
    memory_tier store{ample};
    const auto put_as = [&](std::size_t n) {
        const auto value = std::to_string(n);
        const std::array request{http::field{http::field_id::cookie, "Cookie", value}};
        return store.put(key_of(url), url, response({.vary = "Cookie", .request = request}));
    };
    const auto holds = [&](std::size_t n) {
        const auto value = std::to_string(n);
        const std::array request{http::field{http::field_id::cookie, "Cookie", value}};
        return store.peek(key_of(url), url, request).what == lookup::present;
    };
    constexpr auto bound = memory_tier::most_variants;
    for (std::size_t n = 0; n < 3 * bound; ++n) {
        REQUIRE(put_as(n));
        REQUIRE(store.figures().objects == std::min(n + 1, bound));
    }
    CHECK(!holds(2 * bound - 1));
    for (std::size_t n = 2 * bound; n < 3 * bound; ++n) {
        CAPTURE(n);
        CHECK(holds(n));
    }
    CHECK(store.invalidate(key_of(url), url) == bound);
    CHECK(store.figures().bytes == 0);
}

TEST_CASE("what was asked for before an invalidation is not stored after it") {
    memory_tier store{ample};
    const auto before = store.mark(key_of(url));
    CHECK(store.invalidate(key_of(url), url) == 0);  // nothing was stored: it counts all the same
    CHECK_FALSE(store.put(key_of(url), url, response({.content = "old"}), before));
    CHECK(store.find(key_of(url), url, {}).what == lookup::absent);
    CHECK(store.put(key_of(url), url, response({.content = "new"}), store.mark(key_of(url))));
    CHECK(found_bytes(store.find(key_of(url), url, {})) == "new");
}

TEST_CASE("an invalidation is held against its own key, however many others come meanwhile") {
    memory_tier store{ample};
    const auto mine = neighbour(0);
    const auto before = store.mark(mine);
    for (int n = 1; n <= 1'000; ++n) {  // neighbours share a stripe
        store.invalidate(neighbour(n), numbered(n));
        if (n == 64 || n == 65 || n == 1'000) {
            CAPTURE(n);
            CHECK(store.put(mine, numbered(0), response({.content = "page"}), before));
        }
    }
    store.invalidate(mine, numbered(0));
    for (int n = 1; n <= 1'000; ++n) {
        store.invalidate(neighbour(n), numbered(n));
    }
    CHECK_FALSE(store.put(mine, numbered(0), response({.content = "page"}), before));
}

TEST_CASE(
    "a purge at a store's thousandth start is over for what came behind it, as at its first") {
    for (const std::uint64_t starts : {1u, 127u, 128u, 1000u}) {
        CAPTURE(starts);
        memory_tier store{ample};
        store.purges().restore({}, {}, starts << 32);
        const auto put = [&] {
            return store.put(
                key_of(url), url, response({.content = "new"}), store.mark(key_of(url)));
        };
        REQUIRE(put());
        for (const auto mode : {purge_mode::hard, purge_mode::soft}) {
            store.purges().ban_prefix("http://origin.test/", "", mode, wall_time{seconds{200}});
            if (mode == purge_mode::hard) {
                CHECK(store.find(key_of(url), url, {}).what == lookup::absent);
            } else {
                CHECK(store.find(key_of(url), url, {}).response->purged_softly());
            }
            REQUIRE(put());
            for (int again = 0; again < 2; ++again) {
                const auto there = store.find(key_of(url), url, {});
                REQUIRE(there.what == lookup::present);
                CHECK_FALSE(there.response->purged_softly());
            }
        }
    }
}

TEST_CASE("freshen swaps the response in its place and keeps the charge exact") {
    memory_tier store{ample};
    store.put(key_of(url), url, response({.content = "page"}));
    const auto before = store.figures().bytes;
    const auto current = store.find(key_of(url), url, {}).response;
    const stored_ptr updated = response({.content = "page, and a longer one"});
    REQUIRE(store.freshen(key_of(url), url, current, updated));
    CHECK(store.find(key_of(url), url, {}).response == updated);
    CHECK(store.figures().bytes == before + updated->footprint() - current->footprint());
    CHECK(store.figures().objects == 1);
    CHECK(store.figures().freshened == 1);
    CHECK(store.invalidate(key_of(url), url) == 1);
    CHECK(store.figures().bytes == 0);
}

TEST_CASE("freshen does nothing when the response has left meanwhile") {
    memory_tier store{ample};
    store.put(key_of(url), url, response({.content = "old"}));
    const auto old = store.find(key_of(url), url, {}).response;
    store.put(key_of(url), url, response({.content = "new"}));
    CHECK(!store.freshen(key_of(url), url, old, response({.content = "stale"})));
    CHECK(found_bytes(store.find(key_of(url), url, {})) == "new");
    store.invalidate(key_of(url), url);
    CHECK(!store.freshen(key_of(url), url, old, response({.content = "stale"})));
    CHECK(store.figures().objects == 0);
    CHECK(store.figures().freshened == 0);
}

TEST_CASE("the bytes charged are the footprints and one index charge an object") {
    memory_tier store{ample};
    std::uint64_t footprints = 0;
    std::uint64_t index = 0;
    for (std::uint64_t n = 0; n < 200; ++n) {
        const auto name = numbered(n);  // all of one length, so of one index charge
        const auto one = response({.content = std::string(n * 37, 'x')});
        footprints += (*one).footprint();
        REQUIRE(store.put(key_of(name), name, one));
        if (n == 0) {
            index = store.figures().bytes - footprints;
            CHECK(index >= name.size());
            CHECK(index < 1'024);
        }
        REQUIRE(store.figures().bytes == footprints + (n + 1) * index);
    }
    for (std::uint64_t n = 0; n < 200; ++n) {
        CHECK(store.invalidate(key_of(numbered(n)), numbered(n)) == 1);
    }
    CHECK(store.figures().bytes == 0);
    CHECK(store.figures().objects == 0);
    CHECK(store.figures().invalidated == 200);
}

TEST_CASE("no put leaves the store above its capacity, and what it evicts is counted") {
    const auto capacity = 20 * charge_of_neighbour();
    memory_tier store{capacity};
    for (std::uint64_t n = 0; n < 500; ++n) {
        const auto name = numbered(n);
        REQUIRE(store.put(key_of(name), name, response({.content = std::string(n % 90, 'x')})));
        const auto now = store.figures();
        REQUIRE(now.bytes <= capacity);
        REQUIRE(now.objects + now.evicted == n + 1);
    }
    CHECK(store.figures().evicted > 400);
    CHECK(store.figures().objects > 10);
}

TEST_CASE("what is larger than the whole store is refused, and evicts nobody else") {
    memory_tier store{10'000};
    store.put(key_of(url), url, response({.content = "page"}));
    const std::string large = "http://origin.test/large";
    const std::string bytes(20'000, 'x');
    CHECK(!store.put(key_of(large), large, response({.content = bytes})));
    CHECK(store.find(key_of(large), large, {}).what == lookup::absent);
    CHECK(found_bytes(store.find(key_of(url), url, {})) == "page");
    CHECK(store.figures().objects == 1);
    CHECK(store.figures().refused == 1);
    CHECK(store.figures().evicted == 0);
}

TEST_CASE("a refused replacement takes the outdated response with it") {
    memory_tier store{10'000};
    store.put(key_of(url), url, response({.content = "outdated"}));
    const std::string bytes(20'000, 'x');
    CHECK(!store.put(key_of(url), url, response({.content = bytes})));
    CHECK(store.find(key_of(url), url, {}).what == lookup::absent);
    CHECK(store.figures().bytes == 0);
    CHECK(store.figures().objects == 0);
}

TEST_CASE("while the store is lowered a put evicts for itself, and the rest is not its work") {
    const auto charge = charge_of_neighbour();
    memory_tier store{1'000 * charge};
    for (std::uint64_t n = 0; n < 900; ++n) {
        REQUIRE(put_neighbour(store, n));
    }
    std::uint64_t most_by_one = 0, next = 2'000;
    bool putting = false;
    // Called on the thread that lowers, outside locks, where another thread may put just then.
    store.on_eviction([&](const evicted_response&) {
        if (putting) {
            return;
        }
        putting = true;
        const auto before = store.figures().evicted;
        if (next % 2 == 0) {
            CHECK(put_neighbour(store, next++));
        } else {
            ++next;
            auto promise = store.reserve();
            CHECK(promise.grow_to(charge));
        }
        most_by_one = std::max(most_by_one, store.figures().evicted - before);
        putting = false;
    });
    store.set_capacity(100 * charge);
    CHECK(most_by_one >= 1);
    CHECK(most_by_one <= 3);
    CHECK(store.figures().bytes <= 100 * charge);
    putting = true;
    REQUIRE(put_neighbour(store, 5'000));  // with nobody lowering it, all that must leave leaves
    CHECK(store.figures().bytes <= 100 * charge);
}

TEST_CASE("set_capacity takes effect at once") {
    const auto charge = charge_of_neighbour();
    memory_tier store{100 * charge};
    for (std::uint64_t n = 0; n < 100; ++n) {
        put_neighbour(store, n);
    }
    CHECK(store.figures().objects == 100);
    store.set_capacity(30 * charge);
    CHECK(store.figures().objects == 30);
    CHECK(store.figures().evicted_bytes == 70 * charge);
    store.set_capacity(0);
    CHECK(store.figures().objects == 0);
    CHECK(!put_neighbour(store, 1));
    store.set_capacity(100 * charge);
    CHECK(put_neighbour(store, 1));
}

TEST_CASE("SIEVE keeps what is hit and evicts what is not") {
    constexpr std::uint64_t room = 50;
    memory_tier store{room * charge_of_neighbour()};
    for (std::uint64_t n = 0; n < room; ++n) {
        put_neighbour(store, n);
    }
    // Ten of them are asked for again and again while 1,000 others pass through once.
    for (std::uint64_t n = 1'000; n < 2'000; ++n) {
        for (std::uint64_t popular = 0; popular < 10; ++popular) {
            REQUIRE(store.find(neighbour(popular), numbered(popular), {}).what == lookup::present);
        }
        put_neighbour(store, n);
    }
    CHECK(store.figures().objects == room);
    for (std::uint64_t n = 10; n < room; ++n) {
        CAPTURE(n);
        CHECK(!holds_neighbour(store, n));
    }
}

TEST_CASE("of what nobody asks for, the oldest leaves first") {
    memory_tier store{5 * charge_of_neighbour()};
    for (std::uint64_t n = 0; n < 7; ++n) {
        put_neighbour(store, n);
    }
    CHECK(!holds_neighbour(store, 0));
    CHECK(!holds_neighbour(store, 1));
    for (std::uint64_t n = 2; n < 7; ++n) {
        CAPTURE(n);
        CHECK(holds_neighbour(store, n));
    }
}

TEST_CASE("peek marks nothing, find does") {
    memory_tier store{3 * charge_of_neighbour()};
    for (std::uint64_t n = 0; n < 3; ++n) {
        put_neighbour(store, n);
    }
    (void)store.peek(neighbour(0), numbered(0), {});
    (void)store.find(neighbour(1), numbered(1), {});
    put_neighbour(store, 3);
    put_neighbour(store, 4);
    CHECK(!holds_neighbour(store, 0));
    CHECK(holds_neighbour(store, 1));
    CHECK(!holds_neighbour(store, 2));
}

TEST_CASE("eviction goes on when the entry under SIEVE's hand has left") {
    memory_tier store{8 * charge_of_neighbour()};
    for (std::uint64_t n = 0; n < 8; ++n) {
        put_neighbour(store, n);
    }
    (void)store.find(neighbour(0), numbered(0), {});
    put_neighbour(store, 8);  // evicts 1: the hand stands at 2
    REQUIRE(!holds_neighbour(store, 1));
    CHECK(store.invalidate(neighbour(2), numbered(2)) == 1);
    put_neighbour(store, 9);
    put_neighbour(store, 10);  // the hand went on to 3
    CHECK(holds_neighbour(store, 0));
    CHECK(!holds_neighbour(store, 3));
    CHECK(holds_neighbour(store, 4));
    // A replacement of the entry under the hand is an arrival: it goes to the queue's front.
    put_neighbour(store, 4);
    put_neighbour(store, 11);
    CHECK(holds_neighbour(store, 4));
    CHECK(!holds_neighbour(store, 5));
}

TEST_CASE("eviction finds the entries wherever they are") {
    const auto charge = charge_of_neighbour();
    memory_tier store{200 * charge};
    for (std::uint64_t n = 0; n < 200; ++n) {
        const auto name = numbered(n);
        store.put(key_of(name), name, response({.content = "0123456789"}));
    }
    REQUIRE(store.figures().objects == 200);
    for (std::uint64_t left = 200; left-- > 0;) {
        store.set_capacity(left * charge);
        REQUIRE(store.figures().objects == left);
    }
}

TEST_CASE("threads that put, find, freshen and drop at once leave an exact account") {
    constexpr std::uint64_t names = 300;
    const auto capacity = 150 * charge_of_neighbour();  // half of them fit: evictions all the time
    memory_tier store{capacity};
    std::atomic<std::uint64_t> wrong{0};
    const auto work = [&](std::uint64_t seed) {
        for (std::uint64_t step = 0; step < 4'000; ++step) {
            const auto dice = reprise::filter::test::mix(seed << 32 | step);
            const auto name = numbered(dice % names);
            const auto key = key_of(name);
            switch (dice >> 32 & 7) {
            case 0:
            case 1:
            case 2: store.put(key, name, response({.content = name})); break;
            case 3: {
                const auto seen = store.peek(key, name, {});
                if (seen.response) {
                    store.freshen(key, name, seen.response, response({.content = name}));
                }
                break;
            }
            case 4: store.invalidate(key, name); break;
            case 5: {
                auto room = store.reserve();
                (void)room.grow_to(dice % (capacity / 8));
                break;
            }
            default: {
                const auto seen = store.find(key, name, {});
                wrong += seen.response && bytes_of(*seen.response->content()) != name;
            }
            }
        }
    };
    std::vector<std::jthread> threads;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        threads.emplace_back(work, seed);
    }
    threads.clear();
    CHECK(wrong == 0);
    CHECK(store.figures().reserved == 0);
    CHECK(store.figures().bytes <= capacity);
    for (std::uint64_t n = 0; n < names; ++n) {
        store.invalidate(key_of(numbered(n)), numbered(n));
    }
    CHECK(store.figures().bytes == 0);
    CHECK(store.figures().objects == 0);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::cache::test::of_memory_tier
