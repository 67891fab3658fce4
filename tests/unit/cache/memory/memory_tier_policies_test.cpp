// The memory tier under each eviction policy, with probation, and what it tells of what leaves.

#include "proxy/cache/memory/memory_tier.hpp"
#include "tests/support/watched_threads.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace reprise::proxy::cache::test::of_memory_tier_policies {

using std::chrono::seconds;

namespace {

constexpr steady_time start{std::chrono::hours{1'000}};

std::string numbered(std::uint64_t n) {
    return "http://origin.test/" + std::to_string(1'000'000 + n);
}

/// Of every object here: as large as makes a ghost small beside one.
const std::string page_text(300, 'x');

bool put(memory_tier& store, std::uint64_t n, standing as, unsigned uses = 1) {
    const auto url = numbered(n);
    return store.put(
        key_of(url), url, response({.content = page_text}), store.mark(key_of(url)), as, uses);
}
lookup_result find(const memory_tier& store, std::uint64_t n) {
    return store.find(key_of(numbered(n)), numbered(n), {});
}
bool holds(const memory_tier& store, std::uint64_t n) {
    return store.peek(key_of(numbered(n)), numbered(n), {}).what == lookup::present;
}

/// Asks for objects of all sizes, some often; whoever is absent is stored, with room made for it
/// beforehand, as by a fetch, or at once. How many were absent.
std::uint64_t misses_of(eviction_kind policy, bool promised) {
    memory_tier store{{.capacity = 400'000, .policy = policy, .stripes = 1}};
    std::mt19937_64 random{7};
    std::uint64_t misses = 0;
    for (int i = 0; i < 8'000; ++i) {
        const bool often = random() % 2 == 0;
        const auto n = often ? random() % 200 : 1'000 + random() % 3'000;
        const auto bytes = 100 + n * 7'919 % (often ? 2'000 : 30'000);
        const auto url = numbered(n);
        const auto key = key_of(url);
        if (find(store, n).what == lookup::present) {
            continue;
        }
        ++misses;
        auto room = store.reserve();
        if (promised && (!store.takes(key, url, bytes) || !room.grow_to(bytes))) {
            continue;
        }
        auto made = response({.content = std::string(bytes, 'x')});
        room.reset();
        (void)store.put(key, url, std::move(made), store.mark(key));
    }
    return misses;
}

/// What one of these is charged with.
std::uint64_t charge() {
    memory_tier store{64u << 20};
    put(store, 0, standing::admitted);
    return store.figures().bytes;
}

}  // namespace

TEST_SUITE("cache/memory/memory_tier_policies") {
    TEST_CASE(
        "by wait, what takes long to fetch stays, and what replaces it is judged by its own") {
        for (const bool by_wait : {false, true}) {
            CAPTURE(by_wait);
            memory_tier store{{.capacity = 8'000,
                               .policy = eviction_kind::gdsf,
                               .by_wait = by_wait,
                               .stripes = 1}};
            const auto put_one = [&store](std::uint64_t n, std::chrono::milliseconds took) {
                auto made = response({.content = page_text});
                made->wait = packed_wait{took};
                const stored_ptr one = made;
                REQUIRE(store.put(key_of(numbered(n)), numbered(n), one));
            };
            put_one(1, std::chrono::milliseconds{500});
            put_one(2, std::chrono::milliseconds{500});
            put_one(2, std::chrono::milliseconds{5});  // anew, from a faster place
            const auto inserted = store.figures().bytes / 2;
            for (std::uint64_t n = 10; n < 10 + 2 * 8'000 / inserted; ++n) {
                put_one(n, std::chrono::milliseconds{50});
            }
            CHECK(holds(store, 1) == by_wait);
            CHECK_FALSE(holds(store, 2));
        }
    }

    TEST_CASE("room made beforehand costs a policy next to nothing" *
              reprise::test::of_one_thread()) {
        for (const auto& [name, policy] : reprise::config::eviction_names) {
            CAPTURE(to_string(policy));
            const auto at_once = static_cast<double>(misses_of(policy, false));
            const auto promised = static_cast<double>(misses_of(policy, true));
            CAPTURE(at_once);
            CAPTURE(promised);
            CHECK(promised < 1.025 * at_once);
            CHECK(promised > 0.97 * at_once);
        }
    }

    TEST_CASE("a promise larger than a stripe makes no policy forget who left" *
              reprise::test::of_one_thread()) {
        constexpr std::uint64_t stripes = 64, objects = 6'400;
        memory_tier store{{.capacity = charge() * objects + (1u << 20),
                           .policy = eviction_kind::s3_fifo,
                           .stripes = stripes}};
        for (std::uint64_t n = 0; n < 2 * objects; ++n) {
            REQUIRE(put(store, n, standing::admitted));
        }
        std::vector<std::uint64_t> left;
        for (auto n = 2 * objects; left.size() < objects / 4;) {
            if (!holds(store, --n)) {
                left.push_back(n);
            }
        }
        {
            auto room = store.reserve();
            REQUIRE(room.grow_to(store.figures().capacity / 16));
        }
        // Their ghosts are known: they come in as proven, and a scan passes them by.
        for (const auto n : left) {
            REQUIRE(put(store, n, standing::admitted));
        }
        for (std::uint64_t n = 0; n < 2 * objects; ++n) {
            REQUIRE(put(store, 10 * objects + n, standing::admitted));
        }
        const auto stayed = std::count_if(
            left.begin(), left.end(), [&](std::uint64_t n) { return holds(store, n); });
        CHECK(stayed > static_cast<std::ptrdiff_t>(left.size() * 9 / 10));
    }

    TEST_CASE("what waits on probation is found, and its first use admits it") {
        memory_tier store{{.capacity = 1u << 20, .probation = 0.1}};
        REQUIRE(put(store, 1, standing::probation));
        CHECK(store.figures().probation_objects == 1);
        CHECK(store.figures().probation_bytes == charge());
        CHECK(holds(store, 1));  // a look admits nothing
        CHECK(store.figures().probation_objects == 1);
        const auto first = find(store, 1);
        CHECK(first.what == lookup::present);
        CHECK(first.just_admitted);
        CHECK_FALSE(find(store, 1).just_admitted);
        CHECK(store.figures().probation_objects == 0);
        CHECK(store.figures().probation_bytes == 0);
        CHECK(store.figures().bytes == charge());
        CHECK(store.figures().promoted == 1);
    }

    TEST_CASE("what a rule wants more requests of waits for them") {
        memory_tier store{{.capacity = 1u << 20, .probation = 0.1}};
        REQUIRE(put(store, 1, standing::probation, 3));
        CHECK_FALSE(find(store, 1).just_admitted);
        CHECK_FALSE(find(store, 1).just_admitted);
        CHECK(find(store, 1).just_admitted);
    }

    TEST_CASE("what waits takes no room from what was admitted, beyond its share") {
        const auto each = charge();
        memory_tier store{{.capacity = 100 * each, .probation = 0.1}};
        for (std::uint64_t n = 0; n < 90; ++n) {
            REQUIRE(put(store, n, standing::admitted));
        }
        for (std::uint64_t n = 1'000; n < 1'500; ++n) {
            REQUIRE(put(store, n, standing::probation));
        }
        for (std::uint64_t n = 0; n < 90; ++n) {
            CAPTURE(n);
            CHECK(holds(store, n));
        }
        const auto now = store.figures();
        CHECK(now.probation_objects == 10);
        CHECK(now.bytes <= now.capacity);
        // The latest ten of them.
        for (std::uint64_t n = 1'490; n < 1'500; ++n) {
            CHECK(holds(store, n));
        }
    }

    TEST_CASE("room that nobody needs is probation's too") {
        memory_tier store{{.capacity = 100 * charge(), .probation = 0.1}};
        for (std::uint64_t n = 0; n < 100; ++n) {
            REQUIRE(put(store, n, standing::probation));
        }
        CHECK(store.figures().probation_objects == 100);
        // What is admitted takes it back.
        for (std::uint64_t n = 1'000; n < 1'050; ++n) {
            REQUIRE(put(store, n, standing::admitted));
        }
        CHECK(store.figures().probation_objects == 50);
    }

    TEST_CASE("a smaller share takes effect as room is needed") {
        memory_tier store{{.capacity = 100 * charge(), .probation = 0.5}};
        for (std::uint64_t n = 0; n < 50; ++n) {
            put(store, n, standing::admitted);
            put(store, 1'000 + n, standing::probation);
        }
        CHECK(store.figures().probation_objects == 50);
        store.set_probation(0.1);
        for (std::uint64_t n = 2'000; n < 2'040; ++n) {
            put(store, n, standing::admitted);
        }
        CHECK(store.figures().probation_objects == 10);
        for (std::uint64_t n = 0; n < 50; ++n) {
            CHECK(holds(store, n));
        }
    }

    TEST_CASE("what has earned its place keeps it when it is put anew on probation") {
        memory_tier store{{.capacity = 1u << 20, .probation = 0.1}};
        put(store, 1, standing::admitted);
        put(store, 1, standing::probation);
        CHECK(store.figures().probation_objects == 0);
        put(store, 2, standing::probation);
        put(store, 2, standing::admitted);
        CHECK(store.figures().probation_objects == 0);
        CHECK(store.figures().objects == 2);
    }

    TEST_CASE("what waits can be freshened, dropped and invalidated as anything else") {
        memory_tier store{{.capacity = 1u << 20, .probation = 0.1}};
        put(store, 1, standing::probation);
        put(store, 2, standing::probation);
        put(store, 3, standing::probation);
        const auto url = numbered(1);
        const auto current = store.peek(key_of(url), url, {}).response;
        CHECK(
            store.freshen(key_of(url), url, current, response({.content = "longer than it was"})));
        CHECK(store.figures().probation_objects == 3);
        CHECK(find(store, 1).just_admitted);
        const auto second = store.peek(key_of(numbered(2)), numbered(2), {}).response;
        CHECK(store.drop(key_of(numbered(2)), numbered(2), second));
        CHECK(store.invalidate(key_of(numbered(3)), numbered(3)) == 1);
        CHECK(store.figures().probation_objects == 0);
        CHECK(store.figures().probation_bytes == 0);
        CHECK(store.invalidate(key_of(url), url) == 1);
        CHECK(store.figures().bytes == 0);
    }

    TEST_CASE("who listens hears of each that leaves for room, and why it was there") {
        struct gone {
            std::string url;
            bool found, admitted;
        };
        std::vector<gone> heard;
        memory_tier store{{.capacity = 3 * charge() + charge() / 2, .probation = 0.3}};
        store.on_eviction([&](const evicted_response& one) {
            CHECK(one.response != nullptr);
            CHECK(one.key == key_of(one.url));
            CHECK(store.figures().evicted == heard.size() + 1);  // outside the lock
            heard.push_back({std::string{one.url}, one.was_found, one.was_admitted});
        });
        unsigned second_listener = 0;
        store.on_eviction([&](const evicted_response&) { ++second_listener; });
        put(store, 1, standing::admitted);
        put(store, 2, standing::probation);
        put(store, 3, standing::probation);
        (void)find(store, 1);
        put(store, 4, standing::admitted);
        put(store, 5, standing::admitted);
        put(store, 6, standing::admitted);
        REQUIRE(heard.size() == 3);
        CHECK(heard[0].url == numbered(2));
        CHECK_FALSE(heard[0].found);
        CHECK_FALSE(heard[0].admitted);
        for (const auto& one : heard) {
            CHECK(one.found == (one.url == numbered(1)));
        }
        CHECK(second_listener == 3);
        store.invalidate(key_of(numbered(6)), numbered(6));
        CHECK(heard.size() == 3);
    }

    TEST_CASE("a listener without memory stops nobody who makes room, only who empties into it") {
        memory_tier store{{.capacity = 100 * charge() + charge() / 2}};
        unsigned heard = 0;
        const auto listener = [&heard](const evicted_response&) {
            ++heard;
            throw std::bad_alloc{};
        };
        store.on_eviction(listener);
        unsigned second_listener = 0;
        store.on_eviction([&second_listener](const evicted_response&) { ++second_listener; });
        for (std::uint64_t n = 0; n < 110; ++n) {
            CHECK(put(store, n, standing::admitted));
        }
        CHECK(heard == 10);
        auto room = store.reserve();
        CHECK(room.grow_to(10 * charge()));
        CHECK(heard == 20);
        room.reset();
        store.set_capacity(50 * charge());
        CHECK(store.figures().objects == 50);
        CHECK(second_listener == heard);
        CHECK_THROWS_AS(store.empty_into(listener), std::bad_alloc);
        CHECK(store.figures().objects == 49);
        CHECK(second_listener == 60);
    }

    TEST_CASE("what W-TinyLFU took for many is given back by a store that has become small") {
        constexpr std::uint64_t large = 16u << 20, small = large / 128;
        memory_tier store{{.capacity = large, .policy = eviction_kind::w_tinylfu, .stripes = 1}};
        std::uint64_t n = 0;
        while (store.figures().evicted == 0) {
            const auto url = numbered(n++);
            (void)store.put(key_of(url), url, response({.content = "x"}));
        }
        REQUIRE(store.figures().overhead > small);
        store.set_capacity(small);
        CHECK(store.figures().overhead < small / 8);
        CHECK(store.figures().bytes > small / 2);  // what fits has stayed
        CHECK(put(store, n, standing::admitted));
        CHECK(store.figures().objects > 0);
        CHECK(store.figures().overhead < small / 8);
    }

    TEST_CASE("the age of eviction is how long what left had not been used") {
        memory_tier store{{.capacity = 10 * charge() + charge() / 2}};
        CHECK_FALSE(store.figures().eviction_age);
        for (std::uint64_t n = 0; n < 400; ++n) {
            store.tick(start + seconds{n * 6});
            put(store, n, standing::admitted);
        }
        REQUIRE(store.figures().eviction_age);
        // Ten fit, one comes every six seconds.
        CHECK(*store.figures().eviction_age >= seconds{55});
        CHECK(*store.figures().eviction_age <= seconds{60});
    }

    TEST_CASE("while nothing leaves any more the age of eviction grows, and goes on from there") {
        memory_tier store{{.capacity = 10 * charge() + charge() / 2}};
        std::uint64_t n = 0;
        auto now = start;
        for (; n < 100; ++n, now += seconds{6}) {
            store.tick(now);
            put(store, n, standing::admitted);
        }
        REQUIRE(*store.figures().eviction_age <= seconds{60});
        // Room for what is there, and for an hour's.
        store.set_capacity(20 * charge() + charge() / 2);
        now += std::chrono::hours{1};
        store.tick(now);
        const auto age = *store.figures().eviction_age;
        CHECK(age >= seconds{3'600});
        CHECK(age <= seconds{3'606});
        const auto before = store.figures().evicted;
        for (; store.figures().evicted == before; ++n) {
            put(store, n, standing::admitted);
        }
        CHECK(*store.figures().eviction_age >= seconds{3'600});
        // It is a mean again, of what leaves.
        for (int i = 0; i < 400; ++i, ++n, now += seconds{6}) {
            store.tick(now);
            put(store, n, standing::admitted);
        }
        CHECK(*store.figures().eviction_age < seconds{150});
    }

    TEST_CASE("what waited in vain says nothing of the age of eviction") {
        memory_tier store{{.capacity = 10 * charge()}};
        store.tick(start);
        for (std::uint64_t n = 0; n < 100; ++n) {
            put(store, n, standing::probation);
        }
        CHECK_FALSE(store.figures().eviction_age);
    }

    TEST_CASE("under every policy and in any number of stripes the budget holds and sums agree" *
              reprise::test::of_one_thread()) {
        const auto each = charge();
        for (const auto& [name, kind] : reprise::config::eviction_names) {
            for (const std::size_t stripes : {1u, 4u, 64u}) {
                CAPTURE(to_string(kind));
                CAPTURE(stripes);
                std::mt19937_64 random{stripes};
                // Beside 500 objects, what a policy takes for itself.
                memory_tier empty{
                    {.capacity = 1, .policy = kind, .probation = 0.1, .stripes = stripes}};
                const auto capacity = 500 * each + empty.figures().overhead;
                memory_tier store{
                    {.capacity = capacity, .policy = kind, .probation = 0.1, .stripes = stripes}};
                for (int step = 0; step < 6'000; ++step) {
                    const auto n = random() % 2'000;
                    const bool is_new = find(store, n).what == lookup::absent;
                    if (is_new) {
                        put(store, n, random() % 2 == 0 ? standing::admitted : standing::probation);
                    }
                    const auto now = store.figures();
                    // Its policy may take more for what a look-up has just admitted.
                    REQUIRE((!is_new || now.bytes + now.overhead <= now.capacity));
                    REQUIRE(now.bytes == now.objects * each);
                    REQUIRE(now.probation_bytes == now.probation_objects * each);
                }
                CHECK(store.figures().objects > 400);
                store.set_capacity(0);
                CHECK(store.figures().objects == 0);
                CHECK(store.figures().bytes == 0);
                CHECK(store.figures().probation_bytes == 0);
            }
        }
    }

    TEST_CASE("stripes hold about as many objects each, whatever their sizes") {
        // One object in a hundred is a hundred times as large as the rest. Of the first that come
        // after the store is full nobody must leave sooner for living beside a large one.
        memory_tier store{{.capacity = 8u << 20, .policy = eviction_kind::lru, .stripes = 64}};
        std::mt19937_64 random{5};
        const std::string small(1'000, 's');
        const std::string large(100'000, 'l');
        std::uint64_t n = 0;
        const auto add = [&] {
            const auto url = numbered(n++);
            store.put(key_of(url), url, response({.content = random() % 100 == 0 ? large : small}));
        };
        while (store.figures().evicted < 20'000) {
            add();
        }
        // Of an LRU of everything, the latest half of what fits would all be there.
        const auto objects = store.figures().objects;
        std::uint64_t there = 0;
        for (std::uint64_t back = 1; back <= objects / 2; ++back) {
            there += holds(store, n - back) ? 1 : 0;
        }
        CHECK(static_cast<double>(there) > 0.97 * static_cast<double>(objects / 2));
    }

    TEST_CASE("threads that find, put and evict at once leave exact sums") {
        const auto each = charge();
        memory_tier store{{.capacity = 200 * each, .probation = 0.2, .stripes = 8}};
        std::atomic<unsigned> told{0};
        store.on_eviction([&told](const evicted_response&) { ++told; });
        std::vector<std::jthread> threads;
        for (std::uint64_t t = 0; t < 3; ++t) {
            threads.emplace_back([&store, t] {
                std::mt19937_64 random{t};
                for (int i = 0; i < 2'000; ++i) {
                    const auto n = random() % 600;
                    if (find(store, n).what == lookup::absent) {
                        put(store, n, random() % 2 == 0 ? standing::admitted : standing::probation);
                    }
                    if (i % 100 == 0) {
                        store.set_probation(0.01 * static_cast<double>(random() % 50));
                        store.tick(start + seconds{i});
                    }
                }
            });
        }
        threads.clear();
        const auto now = store.figures();
        CHECK(now.bytes == now.objects * each);
        CHECK(now.probation_bytes == now.probation_objects * each);
        CHECK(now.bytes <= now.capacity);
        CHECK(told == now.evicted);
        store.set_capacity(0);
        CHECK(store.figures().objects == 0);
        CHECK(store.figures().probation_objects == 0);
    }
}

}  // namespace reprise::proxy::cache::test::of_memory_tier_policies
