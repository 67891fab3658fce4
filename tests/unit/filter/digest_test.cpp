#include "filter/digest.hpp"
#include "tests/unit/filter/digests.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace reprise::filter {

using test::digest_of_keys;
using test::found;
using test::nth_key;
using test::stamp_of;

TEST_SUITE("filter/digest") {
    TEST_CASE("every counted key is found, whatever the shape") {
        for (const bloom_size size : {bloom_size{.bits = 1, .probes = 1},
                                      bloom_size{.bits = 63, .probes = 3},
                                      bloom_size{.bits = 64, .probes = 32},
                                      bloom_size{.bits = 65, .probes = 2},
                                      bloom_size{.bits = 19'000, .probes = 2},
                                      bloom_size{.bits = 10'007, .probes = 7}}) {
            CAPTURE(size.bits);
            CHECK(found(digest_of_keys(size, 0, 1'000), 1, 1'000) == 1'000);
        }
    }

    TEST_CASE("an empty digest contains nothing") {
        const auto empty = digest_of_keys({.bits = 1'000, .probes = 2}, 0, 0);
        CHECK(found(empty, 1, 1'000) == 0);
        CHECK(empty.bits_on() == 0);
        CHECK(empty.fill() == 0);
        CHECK(empty.estimated_keys() == 0);
        CHECK(empty.false_positive_rate() == 0);
    }

    TEST_CASE("the measured rate is the one its bits foretell, and the one asked for") {
        for (const double rate : {0.1, 0.01, 0.001}) {
            CAPTURE(rate);
            constexpr std::uint64_t keys = 20'000;
            constexpr std::uint64_t asked = 400'000;
            const auto made = digest_of_keys(digest_size(keys, rate), 0, keys);
            const auto measured = static_cast<double>(found(made, 2, asked));
            const double foretold = made.false_positive_rate() * asked;
            CHECK(std::abs(measured - foretold) < 5 * std::sqrt(foretold));
            CHECK(made.false_positive_rate() == doctest::Approx(rate).epsilon(0.06));
        }
    }

    TEST_CASE("its bits tell its keys") {
        const auto made = digest_of_keys({.bits = 190'000, .probes = 2}, 0, 10'000);
        CHECK(made.stamp().keys == 10'000);
        CHECK(made.estimated_keys() == doctest::Approx(10'000).epsilon(0.01));
    }

    TEST_CASE("a full digest's estimate is finite") {
        const digest full{{.layout = digest_layout::standard, .bits = 130, .probes = 2},
                          {UINT64_MAX, UINT64_MAX, 3},
                          stamp_of(0)};
        CHECK(full.fill() == 1);
        CHECK(full.false_positive_rate() == 1);
        CHECK(std::isfinite(full.estimated_keys()));
        const digest one{
            {.layout = digest_layout::standard, .bits = 1, .probes = 1}, {1}, stamp_of(0)};
        CHECK(one.estimated_keys() == 1);
    }

    TEST_CASE("a digest of a blocked filter answers and estimates like the filter") {
        blocked_bloom filter{40};
        for (std::uint64_t i = 0; i < 1'500; ++i) {
            filter.insert(nth_key(1, i));
        }
        const auto made = digest::of(filter, stamp_of(1'500));
        CHECK(made.shape() == digest_shape{digest_layout::blocked, 40 * 512, 8});
        CHECK(made.bytes() == filter.bytes());
        CHECK(found(made, 1, 1'500) == 1'500);
        std::uint64_t differ = 0;
        for (std::uint64_t i = 0; i < 50'000; ++i) {
            const auto key = nth_key(2, i);
            differ += made.may_contain(key) == filter.may_contain(key) ? 0 : 1;
        }
        CHECK(differ == 0);
        const auto measured = filter.measure();
        CHECK(made.bits_on() == filter.bits_on());
        CHECK(made.fill() == doctest::Approx(measured.fill));
        CHECK(made.estimated_keys() == doctest::Approx(measured.keys));
        CHECK(made.false_positive_rate() == doctest::Approx(measured.false_positive_rate));
    }

    TEST_CASE("a digest of a standard or counting filter answers like the filter") {
        const bloom_size size{.bits = 1'003, .probes = 3};
        counting_bloom source{size};
        for (std::uint64_t i = 0; i < 300; ++i) {
            source.insert(nth_key(1, i));
        }
        for (std::uint64_t i = 0; i < 100; ++i) {
            CHECK(source.erase(nth_key(1, i)));
        }
        const auto made = digest::of(source, stamp_of(200));
        const auto plain = digest::of(source.snapshot(), stamp_of(200));
        CHECK(made.shape() == digest_shape{digest_layout::standard, 1'003, 3});
        CHECK(plain.shape() == made.shape());
        CHECK(plain.checksum() == made.checksum());
        CHECK(plain.checksum() == digest_of_keys(size, 100, 300).checksum());
        CHECK(made.bits_on() == source.bits_on());
        std::uint64_t differ = 0;
        for (std::uint64_t i = 0; i < 5'000; ++i) {
            differ += made.may_contain(nth_key(1, i)) == source.may_contain(nth_key(1, i)) ? 0 : 1;
        }
        CHECK(differ == 0);
    }

    TEST_CASE("the checksum tells any two bits apart and knows nothing of the stamp") {
        const digest_shape shape{.layout = digest_layout::standard, .bits = 100, .probes = 2};
        const digest plain{shape, {5, 9}, stamp_of(1)};
        const digest later{shape, {5, 9}, stamp_of(7, 3)};
        const digest other{shape, {5, 8}, stamp_of(1)};
        CHECK(plain.checksum() == later.checksum());
        CHECK(plain.checksum() != other.checksum());
    }

    TEST_CASE("the places where two digests differ are listed in rising order") {
        const digest_shape shape{.layout = digest_layout::standard, .bits = 200, .probes = 2};
        const digest before{shape, {1, 0, 1ULL << 63, 128}, stamp_of(1)};
        const digest after{shape, {3, 0, 0, 64}, stamp_of(1)};
        CHECK(flipped_places(before, after) == std::vector<std::uint64_t>{1, 191, 198, 199});
        CHECK(flipped_places(before, before).empty());
    }

    TEST_CASE("of two digests that differ in more places than news may turn none are listed") {
        constexpr std::uint64_t bits = 64 * 1024;  // of which news may turn 4,096
        const digest_shape shape{.layout = digest_layout::standard, .bits = bits, .probes = 2};
        const std::vector<std::uint64_t> none(bits / 64);
        auto some = none, more = none;
        std::fill_n(some.begin(), 64, ~std::uint64_t{0});
        std::fill_n(more.begin(), 64, ~std::uint64_t{0});
        more.back() = 1;
        const digest before{shape, none, stamp_of(1)};
        const auto few = few_flipped_places(before, digest{shape, some, stamp_of(2)});
        REQUIRE(few.has_value());
        CHECK(few->size() == 4096);
        CHECK_FALSE(few_flipped_places(before, digest{shape, more, stamp_of(2)}).has_value());
    }

    TEST_CASE("the size takes the fewest probes that 20 bits a key allow") {
        CHECK(digest_size(1'000'000, 0.1) == bloom_size{.bits = 9'491'264, .probes = 1});
        CHECK(digest_size(1'000'000, 0.01) == bloom_size{.bits = 18'982'464, .probes = 2});
        CHECK(digest_size(1'000'000, 0.001).probes == 5);
        for (const double rate : {0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0001}) {
            CAPTURE(rate);
            const auto size = digest_size(1'000'000, rate);
            CHECK(classic_rate(size, 1'000'000) <= rate * 1.000001);
            CHECK(size.bits <= 20'000'064);
            CHECK(size.bits % 64 == 0);
            if (size.probes > 1) {
                const bloom_size fewer{.bits = 20'000'000, .probes = size.probes - 1};
                CHECK(classic_rate(fewer, 1'000'000) > rate);
            }
        }
        // Below what 20 bits can do, the least memory.
        const auto strict = digest_size(1'000, 1e-6);
        CHECK(classic_rate(strict, 1'000) <= 1e-6);
        CHECK(strict.bits <= classic_size(1'000, 1e-6).bits + 64);
        CHECK(digest_size(1, 0.01).bits == 64);
        // Where no digest is large enough, the nearest to it.
        CHECK(digest_size(1'000, 1e-300) == bloom_size{most_digest_bits, most_digest_probes});
        CHECK(digest_size(UINT64_MAX, 0.999).bits == most_digest_bits);
    }

    TEST_CASE("a shape is valid where its layout allows it") {
        const auto standard = digest_layout::standard;
        const auto blocked = digest_layout::blocked;
        CHECK(is_valid({standard, 1, 1}));
        CHECK(is_valid({standard, most_digest_bits, most_digest_probes}));
        CHECK_FALSE(is_valid({standard, 0, 1}));
        CHECK_FALSE(is_valid({standard, most_digest_bits + 1, 1}));
        CHECK_FALSE(is_valid({standard, 1, 0}));
        CHECK_FALSE(is_valid({standard, 1, most_digest_probes + 1}));
        CHECK(is_valid({blocked, 512, 8}));
        CHECK_FALSE(is_valid({blocked, 512, 7}));
        CHECK_FALSE(is_valid({blocked, 576, 8}));
        CHECK_FALSE(is_valid({static_cast<digest_layout>(2), 512, 8}));
    }
}

}  // namespace reprise::filter
