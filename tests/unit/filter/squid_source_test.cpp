#include "filter/squid_key.hpp"
#include "filter/squid_source.hpp"
#include "tests/unit/filter/keys.hpp"
#include "tests/unit/filter/squid_fixtures.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

namespace reprise::filter {

using test::squid_bytes;
using test::squid_fixtures;
using test::squid_lines;

namespace {

/// As uniform as MD5.
squid_key nth_squid_key(std::uint64_t i) {
    squid_key key{};
    const auto hash = test::nth_key(7, i);
    for (std::size_t byte = 0; byte < 8; ++byte) {
        key[byte] = static_cast<std::byte>(hash.low >> (8 * byte));
        key[byte + 8] = static_cast<std::byte>(hash.high >> (8 * byte));
    }
    return key;
}

}  // namespace

TEST_SUITE("filter/squid_source") {
    TEST_CASE("given a Squid's URLs it makes that Squid's digest, byte for byte") {
        for (const auto& one : squid_fixtures()) {
            CAPTURE(one.name);
            squid_source source{{one.capacity, one.bits_per_entry}};
            for (const auto& url : squid_lines(one.name + ".urls")) {
                source.insert(squid_key_of(url));
            }
            const auto wire = source.encode();
            REQUIRE(wire.has_value());
            CHECK(*wire == squid_bytes(one.name + ".bin"));
        }
    }

    TEST_CASE("keys that came and went leave no trace") {
        squid_source source{{2'000, 5}};
        for (std::uint64_t i = 0; i < 1'500; ++i) {
            source.insert(nth_squid_key(i));
        }
        for (std::uint64_t i = 0; i < 1'000; ++i) {
            CHECK(source.erase(nth_squid_key(i)));
        }
        squid_source fresh{{2'000, 5}};
        for (std::uint64_t i = 1'000; i < 1'500; ++i) {
            fresh.insert(nth_squid_key(i));
        }
        CHECK(source.keys() == 500);
        CHECK(source.places() == fresh.places());
        CHECK(source.encode().value() == fresh.encode().value());
    }

    TEST_CASE(
        "a key that is in the source is found, in it and in its digest, whatever was erased") {
        squid_source source{{300, 8}};
        std::set<std::uint64_t> in;
        for (std::uint64_t step = 0; step < 5'000; ++step) {
            const auto i = test::mix(step) % 400;
            if (in.insert(i).second) {
                source.insert(nth_squid_key(i));
            } else {
                in.erase(i);
                CHECK(source.erase(nth_squid_key(i)));
            }
        }
        const auto read = squid_digest::decode(source.encode().value());
        REQUIRE(read.has_value());
        for (const auto i : in) {
            CHECK(source.may_contain(nth_squid_key(i)));
            CHECK(read->may_contain(nth_squid_key(i)));
        }
        CHECK(source.keys() == in.size());
        CHECK(read->reported() == squid_report{in.size(), 0});
        CHECK(read->fill() == source.fill());
    }

    TEST_CASE("taking out what surely was not put in changes nothing") {
        squid_source source{{1'000, 8}};
        source.insert(nth_squid_key(1));
        const auto before = source.places();
        CHECK_FALSE(source.erase(nth_squid_key(2)));
        CHECK(source.places() == before);
        CHECK(source.keys() == 1);

        // A key that has one place four times needs a count of four there.
        const squid_key fourfold{};
        squid_source once{{1, 8}};
        squid_key only_first{};
        only_first[7] = std::byte{1};  // places 0, 1, 1, 1 of eight
        only_first[11] = std::byte{1};
        only_first[15] = std::byte{1};
        once.insert(only_first);
        const auto counts = once.places();
        CHECK(once.may_contain(fourfold));
        CHECK_FALSE(once.erase(fourfold));
        CHECK(once.places() == counts);
    }

    TEST_CASE("a key whose places repeat goes as it came") {
        squid_source source{{1, 8}};  // eight places: repetitions are certain
        for (std::uint64_t i = 0; i < 3; ++i) {
            source.insert(nth_squid_key(i));
        }
        for (std::uint64_t i = 0; i < 3; ++i) {
            CHECK(source.erase(nth_squid_key(i)));
        }
        CHECK(source.places().places_on() == 0);
    }

    TEST_CASE("above 65 % of bits on there is no digest, and there is one again once keys left") {
        squid_source source{{1'000, 5}};
        std::uint64_t keys = 0;
        while (source.encode().has_value()) {
            source.insert(nth_squid_key(keys++));
        }
        CHECK(source.encode().error() == squid_errc::saturated);
        CHECK(keys == doctest::Approx(1'312).epsilon(0.03));  // 1.3 times capacity
        CHECK(source.erase(nth_squid_key(0)));
        CHECK(source.erase(nth_squid_key(1)));
        CHECK(source.erase(nth_squid_key(2)));
        CHECK(source.encode().has_value());
    }

    TEST_CASE("clear leaves an empty source of the same size") {
        squid_source source{{10, 5}};
        source.insert(nth_squid_key(1));
        source.clear();
        CHECK(source.keys() == 0);
        CHECK(source.fill() == 0);
        CHECK(source.encode().value() == squid_source{{10, 5}}.encode().value());
    }

    TEST_CASE("it takes half a byte a bit of the mask") {
        CHECK(squid_source{{10'000, 8}}.bytes() == 40'000);
    }
}

}  // namespace reprise::filter
