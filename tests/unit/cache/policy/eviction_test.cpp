#include "proxy/cache/policy/eviction.hpp"
#include "proxy/cache/policy/frequency_sketch.hpp"
#include "tests/unit/cache/policy/workload.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace reprise::proxy::cache;
using test::key_of;
using test::owner;
using test::wishes;

namespace {

owner cache_of(eviction_kind kind) {
    return {make_policy(kind, test::policy_capacity), test::policy_capacity};
}

}  // namespace

TEST_SUITE_BEGIN("cache/policy/eviction");

TEST_CASE("every kind has a name, and the name its kind") {
    for (const auto& [name, kind] : reprise::config::eviction_names) {
        CHECK(reprise::config::eviction_kind_of(name) == kind);
        CHECK(reprise::config::to_string(kind) == name);
    }
    CHECK_FALSE(reprise::config::eviction_kind_of("fifo").has_value());
    CHECK_FALSE(reprise::config::eviction_kind_of("").has_value());
}

TEST_CASE("evict() of an empty policy is null, and it takes entries again after") {
    for (const auto& [name, kind] : reprise::config::eviction_names) {
        CAPTURE(to_string(kind));
        auto cache = cache_of(kind);
        CHECK(cache.policy().evict() == nullptr);
        cache.ask({1, 10});
        CHECK(cache.evict() == 1);
        CHECK(cache.policy().evict() == nullptr);
        cache.ask({1, 10});
        CHECK(cache.evict() == 1);
    }
}

TEST_CASE("evict() gives each entry once, and in the end all of them") {
    for (const auto& [name, kind] : reprise::config::eviction_names) {
        for (std::uint64_t seed = 1; seed <= 5; ++seed) {
            CAPTURE(to_string(kind));
            CAPTURE(seed);
            auto cache = cache_of(kind);
            for (const auto& one : wishes(seed, 3'000, 500)) {
                cache.ask(one);
                if (one.object % 11 == 3) {
                    cache.remove(one.object / 2);
                }
            }
            const auto count = cache.size();
            REQUIRE(count > 10);
            std::set<std::uint64_t> gone;
            while (const auto object = cache.evict()) {
                gone.insert(*object);
            }
            CHECK(gone.size() == count);
            CHECK(cache.size() == 0);
            CHECK(cache.bytes() == 0);
        }
    }
}

TEST_CASE("an entry that was removed is never evicted") {
    for (const auto& [name, kind] : reprise::config::eviction_names) {
        CAPTURE(to_string(kind));
        auto cache = cache_of(kind);
        for (std::uint64_t object = 0; object < 50; ++object) {
            cache.ask({object, 100});
            cache.ask({object / 2, 100});
        }
        for (std::uint64_t object = 0; object < 50; object += 3) {
            cache.remove(object);
        }
        while (const auto object = cache.evict()) {
            CHECK(*object % 3 != 0);
        }
    }
}

TEST_CASE("a smaller capacity evicts nothing by itself") {
    for (const auto& [name, kind] : reprise::config::eviction_names) {
        CAPTURE(to_string(kind));
        auto cache = cache_of(kind);
        for (std::uint64_t object = 0; object < 100; ++object) {
            cache.ask({object, 100});
        }
        cache.policy().set_capacity(test::policy_capacity / 10);
        CHECK(cache.size() == 100);
        cache.policy().set_capacity(0);
        std::size_t count = 0;
        while (cache.evict()) {
            ++count;
        }
        CHECK(count == 100);
    }
}

TEST_CASE("entries of no bytes, and one as large as the capacity, come and go") {
    for (const auto& [name, kind] : reprise::config::eviction_names) {
        CAPTURE(to_string(kind));
        auto cache = cache_of(kind);
        for (std::uint64_t object = 0; object < 100; ++object) {
            cache.ask({object, object % 2 == 0 ? 0 : test::policy_capacity});
            cache.ask({object, object % 2 == 0 ? 0 : test::policy_capacity});
        }
        CHECK(cache.bytes() <= test::policy_capacity);
        while (cache.evict()) {
        }
        CHECK(cache.size() == 0);
    }
}

TEST_CASE("what is asked for all the time outlives a scan of strangers, but for LRU") {
    for (const auto& [name, kind] : reprise::config::eviction_names) {
        CAPTURE(to_string(kind));
        auto cache = cache_of(kind);
        for (int round = 0; round < 20; ++round) {
            for (std::uint64_t object = 0; object < 20; ++object) {
                cache.ask({object, 100});
            }
        }
        for (std::uint64_t object = 1'000; object < 1'400; ++object) {
            cache.ask({object, 100});
        }
        std::size_t left = 0;
        for (std::uint64_t object = 0; object < 20; ++object) {
            left += cache.holds(object) ? 1u : 0u;
        }
        CHECK(left == (kind == eviction_kind::lru ? 0u : 20u));
    }
}

TEST_SUITE_END();
