#include "filter/gap_code.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace reprise::filter {

using test::mix;

namespace {

constexpr std::uint64_t anything = std::uint64_t{1} << 40;

std::vector<std::byte> code(const std::vector<std::uint64_t>& gaps, std::uint64_t divisor) {
    gap_writer out{divisor};
    for (const auto gap : gaps) {
        out.put(gap);
    }
    return out.finish();
}

std::vector<std::byte> bytes(std::initializer_list<int> values) {
    std::vector<std::byte> out;
    for (const auto value : values) {
        out.push_back(static_cast<std::byte>(value));
    }
    return out;
}

/// Gaps as they come when each position is listed with probability `share`.
std::vector<std::uint64_t> geometric_gaps(double share, std::size_t count) {
    std::vector<std::uint64_t> gaps;
    for (std::size_t i = 0; i < count; ++i) {
        const double uniform = (static_cast<double>(mix(i) >> 11) + 0.5) * 0x1p-53;
        gaps.push_back(static_cast<std::uint64_t>(std::log(uniform) / std::log1p(-share)));
    }
    return gaps;
}

}  // namespace

TEST_SUITE("filter/gap_code") {
    TEST_CASE("the code is the one that the format's page describes") {
        CHECK(code({1, 2, 4}, 3) == bytes({0x72, 0x01}));
        // A divisor of one is unary, a power of two is Rice's code.
        CHECK(code({0, 3, 1}, 1) == bytes({0b0010'1110}));
        CHECK(code({5, 0}, 4) == bytes({0b0000'1001}));
        CHECK(code({}, 7).empty());
    }

    TEST_CASE("reading undoes writing, whatever gaps and divisor") {
        for (const std::uint64_t divisor :
             {1ULL, 2ULL, 3ULL, 4ULL, 5ULL, 7ULL, 64ULL, 65ULL, 1'000'003ULL, 1ULL << 40}) {
            CAPTURE(divisor);
            std::vector<std::uint64_t> gaps{0, 0, 1, divisor - 1, divisor, 63 * divisor};
            for (std::uint64_t i = 0; i < 2'000; ++i) {
                gaps.push_back(mix(i) % (4 * divisor));
            }
            for (auto& gap : gaps) {
                gap = std::min(gap, anything);
            }
            const auto coded = code(gaps, divisor);
            gap_reader in{coded, divisor};
            for (std::size_t i = 0; i < gaps.size(); ++i) {
                CAPTURE(i);
                CHECK_FALSE((in.is_at_end() && divisor > 255));
                REQUIRE(in.next(anything) == gaps[i]);
            }
            CHECK(in.is_at_end());
        }
    }

    TEST_CASE("no code is shorter than what arithmetic says, nor much longer at the best divisor") {
        for (const std::uint64_t divisor : {1, 2, 3, 4, 5, 7, 64, 65, 96, 121, 128, 129, 485}) {
            for (const double share : {0.9, 0.5, 0.1, 0.01, 0.001}) {
                for (const std::size_t count : {1, 2, 10, 5'000}) {
                    CAPTURE(divisor);
                    CAPTURE(share);
                    const auto gaps = geometric_gaps(share, count);
                    std::uint64_t expected = 0;
                    for (const auto gap : gaps) {
                        expected += gap + 1;
                    }
                    const auto coded = code(gaps, divisor).size();
                    const auto least = least_code_bytes(count, expected - 1, divisor);
                    CHECK(least <= coded);
                    const bool is_best = golomb_divisor(count, expected) == divisor;
                    CHECK((!is_best || count < 1'000 || coded <= least + least / 5));
                }
            }
        }
        // One gap of the greatest short remainder is all that its code can say.
        CHECK(least_code_bytes(1, 5 * 1'000 + 22, 1'000) == code({5 * 1'000 + 22}, 1'000).size());
    }

    TEST_CASE("quotients longer than any word come back") {
        for (const std::uint64_t gap : {31, 32, 33, 55, 56, 57, 63, 64, 65, 127, 128, 100'000}) {
            CAPTURE(gap);
            const auto coded = code({gap, 1, gap}, 1);
            gap_reader in{coded, 1};
            CHECK(in.next(anything) == gap);
            CHECK(in.next(anything) == 1);
            CHECK(in.next(anything) == gap);
            CHECK(in.is_at_end());
        }
    }

    TEST_CASE("a writer tells its length while it writes") {
        gap_writer out{5};
        CHECK(out.bytes() == 0);
        for (std::uint64_t i = 0; i < 100; ++i) {
            out.put(mix(i) % 20);
        }
        const auto told = out.bytes();
        CHECK(out.finish().size() == told);
    }

    TEST_CASE("a gap above what the reader expects is none") {
        const auto coded = code({10}, 4);
        CHECK(gap_reader{coded, 4}.next(10) == 10);
        CHECK(gap_reader{coded, 4}.next(9) == std::nullopt);
    }

    TEST_CASE("a string that ends in a gap has no such gap, and an endless quotient none") {
        const auto coded = code({100, 200, 300}, 50);
        for (std::size_t cut = 0; cut < coded.size(); ++cut) {
            CAPTURE(cut);
            gap_reader in{std::span{coded}.first(cut), 50};
            unsigned read = 0;
            while (in.next(anything)) {
                ++read;
            }
            CHECK(read < 3);
        }
        const std::vector<std::byte> ones(1'000, std::byte{0xff});
        CHECK(gap_reader{ones, 1}.next(anything) == std::nullopt);
        CHECK(gap_reader{ones, anything}.next(anything) == std::nullopt);
    }

    TEST_CASE("what follows the last gap is padding only if it is short and zero") {
        auto coded = code({1}, 1);  // two bits
        gap_reader good{coded, 1};
        CHECK(good.next(1) == 1);
        CHECK(good.is_at_end());

        auto one_more_bit = coded;
        one_more_bit[0] |= std::byte{0x80};
        gap_reader dirty{one_more_bit, 1};
        CHECK(dirty.next(1) == 1);
        CHECK_FALSE(dirty.is_at_end());

        coded.push_back(std::byte{0});
        gap_reader longer{coded, 1};
        CHECK(longer.next(1) == 1);
        CHECK_FALSE(longer.is_at_end());
    }

    TEST_CASE("the divisor is the best one for its share of positions") {
        CHECK(golomb_divisor(0, 100) == 1);
        CHECK(golomb_divisor(100, 100) == 1);
        CHECK(golomb_divisor(50, 100) == 1);
        CHECK(golomb_divisor(10, 100) == 7);
        CHECK(golomb_divisor(1, 1) == 1);
        for (const double share : {0.3, 0.1, 0.05, 0.01, 0.001}) {
            CAPTURE(share);
            const auto gaps = geometric_gaps(share, 20'000);
            constexpr std::uint64_t bits = 1'000'000;
            const auto best = golomb_divisor(static_cast<std::uint64_t>(share * bits), bits);
            const auto size = static_cast<double>(code(gaps, best).size());
            // Twice and half of it are worse; its neighbours are no better but by chance.
            CHECK(size < static_cast<double>(code(gaps, 2 * best).size()));
            CHECK(size <
                  static_cast<double>(code(gaps, std::max(best / 2, best - 1)).size()) * 1.002);
            CHECK(size < static_cast<double>(code(gaps, best + 1).size()) * 1.002);
        }
    }

    TEST_CASE("geometric gaps take at most 3 % more than their entropy, and 1 % at a tenth") {
        for (const double share : {0.3, 0.1, 0.03, 0.01, 0.001}) {
            CAPTURE(share);
            constexpr std::size_t count = 100'000;
            const auto coded = code(
                geometric_gaps(share, count),
                golomb_divisor(static_cast<std::uint64_t>(share * 1e9), 1'000'000'000));
            const double entropy =
                (-share * std::log2(share) - (1 - share) * std::log2(1 - share)) / share;
            const double taken = static_cast<double>(coded.size()) * 8 / count;
            // The entropy of this sample differs from the mean by half a percent at most (5 sigma).
            CHECK(taken < entropy * (share == 0.1 ? 1.015 : 1.04));
            CHECK(taken > entropy * 0.99);
        }
    }
}

}  // namespace reprise::filter
