// Laws of digests over whatever a seed brings: any shape, any fill, any row of generations.
// Decoding undoes encoding; a delta applied to its base makes the next; damage never makes another
// digest; bytes at random never make one at all. The same for Squid's.

#include "filter/digest_wire.hpp"
#include "filter/gap_code.hpp"
#include "filter/squid_source.hpp"
#include "tests/unit/filter/digests.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace reprise::filter::test::of_filter_digest {

namespace {

constexpr digest_limits anything{.bytes = 1 << 20, .false_positive_rate = 1};

class random_source {
public:
    explicit random_source(std::uint64_t seed) : engine_{seed} {}

    std::uint64_t word() { return engine_(); }
    std::uint64_t below(std::uint64_t end) { return engine_() % end; }
    /// In [0, 1], the extremes and the small more often than uniform.
    double share() {
        switch (below(6)) {
        case 0: return 0;
        case 1: return 1;
        case 2: return 0.001;
        case 3: return std::pow(uniform(), 4);
        default: return uniform();
        }
    }
    double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

private:
    std::mt19937_64 engine_;
};

digest_shape any_shape(random_source& random) {
    if (random.below(4) == 0) {
        return {digest_layout::blocked, block_bits * (1 + random.below(20)), lanes};
    }
    return {digest_layout::standard,
            1 + random.below(random.below(2) == 0 ? 200 : 20'000),
            static_cast<unsigned>(1 + random.below(most_digest_probes))};
}

/// `words` with each bit flipped with probability `share`.
std::vector<std::uint64_t> flipped(std::vector<std::uint64_t> words,
                                   std::uint64_t bits,
                                   double share,
                                   random_source& random) {
    for (std::uint64_t i = 0; i < bits; ++i) {
        words[i / 64] ^= std::uint64_t{random.uniform() < share} << (i % 64);
    }
    return words;
}

digest any_digest(random_source& random) {
    const auto shape = any_shape(random);
    digest_stamp stamp{.seed = test::test_seed(),
                       .generation = {.epoch = random.word(), .counter = random.below(1'000)},
                       .keys = random.word()};
    std::vector<std::uint64_t> none((shape.bits + 63) / 64);
    return {shape, flipped(std::move(none), shape.bits, random.share(), random), stamp};
}

/// A digest that may follow `base`.
digest any_next(const digest& base, random_source& random) {
    auto stamp = base.stamp();
    stamp.generation.counter += 1 + random.below(5);
    stamp.keys = random.word();
    std::vector<std::uint64_t> words{base.words().begin(), base.words().end()};
    return {
        base.shape(), flipped(std::move(words), base.shape().bits, random.share(), random), stamp};
}

bool same(const digest& a, const digest& b) {
    return a.shape() == b.shape() && a.stamp() == b.stamp() && a.checksum() == b.checksum() &&
           std::equal(a.words().begin(), a.words().end(), b.words().begin(), b.words().end());
}

void damage(std::vector<std::byte>& wire, random_source& random) {
    const auto flips = 1 + random.below(4);
    for (std::uint64_t i = 0; i < flips; ++i) {
        const auto bit = random.below(wire.size() * 8);
        wire[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    }
}

}  // namespace

TEST_SUITE("property/filter_digest") {
    TEST_CASE("decoding undoes encoding, and a digest has one encoding") {
        for (std::uint64_t seed = 1; seed <= 400; ++seed) {
            CAPTURE(seed);
            random_source random{seed};
            const auto made = any_digest(random);
            const auto wire = encode(made);
            CHECK(wire.size() <= digest_header_bytes + (made.shape().bits + 7) / 8);
            const auto again = decode_digest(wire, test::test_seed(), anything);
            REQUIRE(again.has_value());
            CHECK(same(*again, made));
            CHECK(encode(*again) == wire);
            CHECK(again->bits_on() == made.bits_on());
        }
    }

    TEST_CASE("apply_delta(encode_delta(a, b), a) is b, along a row of generations") {
        for (std::uint64_t seed = 1; seed <= 100; ++seed) {
            CAPTURE(seed);
            random_source random{seed};
            auto owner = any_digest(random);
            auto reader = decode_digest(encode(owner), test::test_seed(), anything).value();
            for (int step = 0; step < 5; ++step) {
                CAPTURE(step);
                auto next = any_next(owner, random);
                const auto delta = encode_delta(owner, next);
                REQUIRE(delta.has_value());
                auto read = apply_delta(*delta, reader, anything);
                REQUIRE(read.has_value());
                CHECK(same(*read, next));
                // What came before the last step is no base any more.
                CHECK(apply_delta(*delta, *read, anything).error() == digest_errc::wrong_base);
                owner = std::move(next);
                reader = std::move(*read);
            }
        }
    }

    TEST_CASE("a delta fits no digest but its base") {
        for (std::uint64_t seed = 1; seed <= 100; ++seed) {
            CAPTURE(seed);
            random_source random{seed};
            const auto base = any_digest(random);
            const auto delta = encode_delta(base, any_next(base, random)).value();
            const auto other = any_next(base, random);
            CHECK(apply_delta(delta, other, anything).error() == digest_errc::wrong_base);
            // The same generation with other bits: a row that was begun twice.
            auto words = std::vector<std::uint64_t>{base.words().begin(), base.words().end()};
            words[0] ^= 1;
            const digest twin{base.shape(), std::move(words), base.stamp()};
            CHECK(apply_delta(delta, twin, anything).error() == digest_errc::wrong_base);
        }
    }

    TEST_CASE("damaged bytes never make another digest") {
        for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
            CAPTURE(seed);
            random_source random{seed};
            const auto base = any_digest(random);
            auto whole = encode(base);
            const auto next = any_next(base, random);
            auto delta = encode_delta(base, next).value();
            damage(whole, random);
            damage(delta, random);
            // Two flips may be of one bit.
            const auto read = decode_digest(whole, test::test_seed(), anything);
            CHECK((read.has_error() || same(*read, base)));
            const auto applied = apply_delta(delta, base, anything);
            CHECK((applied.has_error() || same(*applied, next)));
        }
    }

    TEST_CASE("two messages spliced at any byte make neither digest nor delta") {
        for (std::uint64_t seed = 1; seed <= 300; ++seed) {
            CAPTURE(seed);
            random_source random{seed};
            const auto base = any_digest(random);
            const auto one = encode(base);
            const auto two = encode(any_next(base, random));
            const auto cut = 1 + static_cast<std::ptrdiff_t>(
                                     random.below(std::min(one.size(), two.size()) - 1));
            std::vector<std::byte> spliced{one.begin(), one.begin() + cut};
            spliced.insert(spliced.end(), two.begin() + cut, two.end());
            const auto read = decode_digest(spliced, test::test_seed(), anything);
            CHECK((read.has_error() || spliced == one || spliced == two));
        }
    }

    TEST_CASE("any string of bits read as gaps ends, within its bits") {
        for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
            CAPTURE(seed);
            random_source random{seed};
            std::vector<std::byte> code(random.below(64));
            const bool is_long = random.below(2) == 0;
            for (auto& byte : code) {
                byte = static_cast<std::byte>(is_long ? random.word() | random.word()
                                                      : random.word());
            }
            const auto divisor = std::uint64_t{1} << random.below(40) | random.below(9);
            gap_reader in{code, divisor};
            std::size_t gaps = 0;
            while (const auto gap = in.next(std::uint64_t{1} << 40)) {
                CHECK(*gap <= std::uint64_t{1} << 40);
                ++gaps;
            }
            CHECK(gaps <= code.size() * 8);
        }
    }

    TEST_CASE("a Squid digest lists what its source holds, along any row of stores and evictions") {
        for (std::uint64_t seed = 1; seed <= 60; ++seed) {
            CAPTURE(seed);
            random_source random{seed};
            const auto capacity = static_cast<std::uint32_t>(1 + random.below(500));
            const squid_size size{capacity, static_cast<unsigned>(4 + random.below(124))};
            squid_source source{size};
            std::set<std::uint64_t> in;
            const auto key_of = [](std::uint64_t i) {
                return squid_key_of("http://a.example/" + std::to_string(i));
            };
            for (std::uint64_t step = 0; step < 4ULL * capacity; ++step) {
                const auto i = random.below(2ULL * capacity);
                if (in.erase(i) == 1) {
                    CHECK(source.erase(key_of(i)));
                } else if (in.size() < capacity) {
                    in.insert(i);
                    source.insert(key_of(i));
                }
            }
            const auto wire = source.encode();
            if (wire.has_error()) {
                // Four bits an entry and a full source are 63 % on in the mean.
                CHECK(wire.error() == squid_errc::saturated);
                continue;
            }
            const auto read = squid_digest::decode(*wire);
            REQUIRE(read.has_value());
            squid_source fresh{size};
            for (const auto i : in) {
                CHECK(read->may_contain(key_of(i)));
                fresh.insert(key_of(i));
            }
            // Bit for bit a fresh build, where no counter stuck.
            if (source.places().places_stuck() == 0) {
                CHECK(fresh.encode().value() == *wire);
            }
        }
    }
}

}  // namespace reprise::filter::test::of_filter_digest
