#define XXH_INLINE_ALL
#include "filter/digest_wire.hpp"
#include "filter/little_endian.hpp"
#include "tests/unit/filter/digests.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

namespace reprise::filter {

using test::digest_of_keys;
using test::hex;
using test::small_digest;
using test::stamp_of;
using test::test_seed;

namespace {

using wire_bytes = std::vector<std::byte>;

/// `wire` with both of its own checksums made right again, so that what is behind them is tried.
wire_bytes summed(wire_bytes wire) {
    const auto body = std::span{wire}.subspan(digest_header_bytes);
    put_little_endian(wire.data() + 112, std::uint64_t{XXH3_64bits(body.data(), body.size())});
    put_little_endian(wire.data() + 120, std::uint64_t{XXH3_64bits(wire.data(), 120)});
    return wire;
}

template <class Unsigned>
wire_bytes with(wire_bytes wire, std::size_t offset, Unsigned value) {
    put_little_endian(wire.data() + offset, value);
    return summed(std::move(wire));
}

boost::system::error_code refusal(const wire_bytes& wire, const digest_limits& limits = {}) {
    return decode_digest(wire, test_seed(), limits).error();
}

boost::system::error_code refusal(const wire_bytes& wire,
                                  const digest& base,
                                  const digest_limits& limits = {}) {
    return apply_delta(wire, base, limits).error();
}

bool same(const digest& a, const digest& b) {
    return a.shape() == b.shape() && a.stamp() == b.stamp() && a.checksum() == b.checksum() &&
           std::equal(a.words().begin(), a.words().end(), b.words().begin(), b.words().end());
}

/// A digest with about `share` of its bits on.
digest random_digest(std::uint64_t bits, double share, std::uint64_t counter = 1) {
    std::vector<std::uint64_t> words((bits + 63) / 64);
    for (std::uint64_t i = 0; i < bits; ++i) {
        const bool on = static_cast<double>(test::mix(i * 1'000'003 + counter) >> 11) * 0x1p-53 <
                        share;
        words[i / 64] |= std::uint64_t{on} << (i % 64);
    }
    return digest{{.layout = digest_layout::standard, .bits = bits, .probes = 7},
                  std::move(words),
                  stamp_of(1, counter)};
}

constexpr std::uint64_t many = 100'000;
constexpr bloom_size many_size{.bits = 1'898'240, .probes = 2};  // 1 %, two probes

}  // namespace

TEST_SUITE("filter/digest_wire") {
    TEST_CASE("the bytes are those that the format's page describes") {
        const digest tiny{{.layout = digest_layout::standard, .bits = 40, .probes = 2},
                          {1ULL << 1 | 1ULL << 4 | 1ULL << 9},
                          {.seed = test_seed(),
                           .generation = {.epoch = 0x1122334455667788, .counter = 3},
                           .keys = 2}};
        const auto wire = encode(tiny);
        CHECK(hex(std::span{wire}.first(112)) ==
              "52455044474553540100"              // magic, version
              "01010001"                          // whole, Golomb, standard, XXH3
              "0200"                              // probes
              "2800000000000000"                  // bits
              "0200000000000000"                  // keys
              "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"  // seed
              "8877665544332211"                  // epoch
              "0300000000000000"                  // counter
              "357874b50d7be89f"                  // content checksum: XXH3 of 12 02 00 00 00
              "00000000000000000000000000000000"  // no base
              "0300000000000000"                  // listed
              "0900000000000000"                  // divisor
              "0200000000000000");                // bytes of body
        // Gaps 1, 2, 4 with divisor 9: b = 4, u = 7, each a zero and three bits.
        CHECK(hex(std::span{wire}.subspan(digest_header_bytes)) == "4208");
        CHECK(wire == summed(wire));
    }

    TEST_CASE("decoding undoes encoding") {
        for (const double share : {0.0, 0.0001, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0}) {
            for (const std::uint64_t bits : {1, 7, 8, 63, 64, 65, 1'000, 40'000}) {
                CAPTURE(share);
                CAPTURE(bits);
                const auto made = random_digest(bits, share);
                const auto again = decode_digest(
                    encode(made), test_seed(), {.false_positive_rate = 1});
                REQUIRE(again.has_value());
                CHECK(same(*again, made));
            }
        }
    }

    TEST_CASE("the shorter encoding is chosen") {
        const auto sparse = encode(random_digest(40'000, 0.1));
        CHECK(read_digest_head(sparse)->encoding == digest_encoding::golomb);
        CHECK(sparse.size() < 128 + 5'000 * 0.5);
        const auto dense = encode(random_digest(40'000, 0.5));
        CHECK(read_digest_head(dense)->encoding == digest_encoding::raw);
        CHECK(dense.size() == 128 + 5'000);
    }

    TEST_CASE("at 1 % a key takes at most 1.36 log2(1/rate) bits of wire and 20 of memory") {
        const auto made = digest_of_keys(many_size, 0, many);
        const auto size = static_cast<double>(encode(made).size()) * 8;
        CHECK(size / many <= 1.36 * std::log2(1 / made.false_positive_rate()));
        CHECK(size / many <= 1.36 * std::log2(100));
        CHECK(made.bytes() * 8 <= 20 * many);
    }

    TEST_CASE("after 1 % of keys left and 1 % came a delta takes at most 5 % of the whole") {
        const auto base = digest_of_keys(many_size, 0, many, 1);
        const auto next = digest_of_keys(many_size, many / 100, many + many / 100, 2);
        const auto delta = encode_delta(base, next);
        REQUIRE(delta.has_value());
        CHECK(delta->size() * 20 <= encode(next).size());
        const auto made = apply_delta(*delta, base);
        REQUIRE(made.has_value());
        CHECK(same(*made, next));
    }

    TEST_CASE("applying a delta makes the next digest, however much changed") {
        for (const double share : {0.0, 0.01, 0.5, 1.0}) {
            for (const std::uint64_t bits : {1, 63, 64, 65, 5'000}) {
                CAPTURE(share);
                CAPTURE(bits);
                const auto base = random_digest(bits, 0.2, 4);
                const auto next = random_digest(bits, share, 9);
                const auto delta = encode_delta(base, next);
                REQUIRE(delta.has_value());
                const auto made = apply_delta(*delta, base, {.false_positive_rate = 1});
                REQUIRE(made.has_value());
                CHECK(same(*made, next));
            }
        }
    }

    TEST_CASE("a blocked digest travels both ways") {
        blocked_bloom filter{30};
        filter.insert(test::nth_key(1, 1));
        const auto base = digest::of(filter, stamp_of(1, 1));
        filter.insert(test::nth_key(1, 2));
        const auto next = digest::of(filter, stamp_of(2, 2));
        const auto whole = decode_digest(encode(base), test_seed());
        REQUIRE(whole.has_value());
        CHECK(same(*whole, base));
        const auto made = apply_delta(*encode_delta(base, next), *whole);
        REQUIRE(made.has_value());
        CHECK(same(*made, next));
    }

    TEST_CASE("the header is read without its body") {
        const auto wire = encode(small_digest());
        const auto head = read_digest_head(std::span{wire}.first(digest_header_bytes));
        REQUIRE(head.has_value());
        CHECK(head->form == digest_form::whole);
        CHECK(head->shape == small_digest().shape());
        CHECK(head->stamp == small_digest().stamp());
        CHECK(head->body_bytes == wire.size() - digest_header_bytes);
    }

    TEST_CASE("every proper prefix is refused") {
        const auto base = small_digest();
        const auto whole = encode(base);
        const auto delta = *encode_delta(base, digest_of_keys(digest_size(100, 0.01), 1, 101, 2));
        for (std::size_t cut = 0; cut < whole.size(); ++cut) {
            CAPTURE(cut);
            CHECK(refusal({whole.begin(), whole.begin() + static_cast<long>(cut)}) ==
                  digest_errc::truncated);
        }
        for (std::size_t cut = 0; cut < delta.size(); ++cut) {
            CAPTURE(cut);
            CHECK(refusal({delta.begin(), delta.begin() + static_cast<long>(cut)}, base) ==
                  digest_errc::truncated);
        }
    }

    TEST_CASE("every flip of one bit is refused") {
        const auto base = small_digest();
        const auto next = digest_of_keys(digest_size(100, 0.01), 1, 101, 2);
        auto whole = encode(base);
        for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
            CAPTURE(bit);
            whole[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
            CHECK(refusal(whole).failed());
            whole[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        }
        auto delta = *encode_delta(base, next);
        for (std::size_t bit = 0; bit < delta.size() * 8; ++bit) {
            CAPTURE(bit);
            delta[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
            CHECK(refusal(delta, base).failed());
            delta[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        }
    }

    TEST_CASE("flips of a body whose checksums were made right change bits or are refused") {
        // Behind the checksums the code itself: no flip of a Golomb body gives the same digest, so
        // the content checksum finds what the code does not.
        const auto whole = encode(small_digest());
        for (std::size_t bit = 128 * 8; bit < whole.size() * 8; ++bit) {
            CAPTURE(bit);
            auto flipped = whole;
            flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
            const auto why = refusal(summed(std::move(flipped)));
            CHECK((why == digest_errc::corrupt || why == digest_errc::bad_body));
        }
    }

    TEST_CASE("each reason to refuse a header has its name") {
        const auto wire = encode(small_digest());
        auto other_magic = wire;
        other_magic[0] = std::byte{'r'};
        CHECK(refusal(other_magic) == digest_errc::bad_magic);
        CHECK(refusal(with(wire, 8, std::uint16_t{0})) == digest_errc::unknown_version);
        CHECK(refusal(with(wire, 8, std::uint16_t{2})) == digest_errc::unknown_version);
        auto damaged = wire;
        damaged[30] ^= std::byte{1};
        CHECK(refusal(damaged) == digest_errc::corrupt);
        CHECK(refusal(with(wire, 10, std::uint8_t{0})) == digest_errc::bad_header);
        CHECK(refusal(with(wire, 10, std::uint8_t{4})) == digest_errc::bad_header);
        CHECK(refusal(with(wire, 11, std::uint8_t{3})) == digest_errc::unknown_encoding);
        CHECK(refusal(with(wire, 12, std::uint8_t{2})) == digest_errc::unknown_layout);
        CHECK(refusal(with(wire, 13, std::uint8_t{0})) == digest_errc::unknown_hash);
        CHECK(refusal(with(wire, 13, std::uint8_t{2})) == digest_errc::unknown_hash);
        CHECK(refusal(with(wire, 12, std::uint8_t{1})) == digest_errc::bad_shape);
        CHECK(refusal(with(wire, 14, std::uint16_t{0})) == digest_errc::bad_shape);
        CHECK(refusal(with(wire, 14, std::uint16_t{33})) == digest_errc::bad_shape);
        CHECK(refusal(with(wire, 16, std::uint64_t{0})) == digest_errc::bad_shape);
        CHECK(refusal(with(wire, 16, UINT64_MAX)) == digest_errc::bad_shape);
        CHECK(refusal(with(wire, 72, std::uint64_t{1})) == digest_errc::bad_header);
        CHECK(refusal(with(wire, 80, std::uint64_t{1})) == digest_errc::bad_header);
        CHECK(refusal(with(wire, 88, UINT64_MAX)) == digest_errc::bad_header);
        CHECK(refusal(with(wire, 96, std::uint64_t{0})) == digest_errc::bad_header);
        CHECK(refusal(with(wire, 96, std::uint64_t{1'985})) == digest_errc::bad_header);
        CHECK(refusal(with(wire, 104, UINT64_MAX)) == digest_errc::bad_header);
    }

    TEST_CASE("each reason to refuse a body has its name") {
        const auto wire = encode(small_digest());
        const auto listed = read_digest_head(wire)->listed;
        auto longer = wire;
        longer.push_back(std::byte{0});
        CHECK(refusal(longer) == digest_errc::trailing_bytes);
        auto damaged = wire;
        damaged.back() ^= std::byte{1};
        CHECK(refusal(damaged) == digest_errc::corrupt);
        CHECK(refusal(with(wire, 88, listed + 3)) ==
              digest_errc::bad_body);  // padding may hold two
        CHECK(refusal(with(wire, 88, listed - 1)) == digest_errc::bad_body);
        CHECK(refusal(with(wire, 64, std::uint64_t{1})) == digest_errc::corrupt);

        const auto raw = encode(random_digest(68, 0.5));
        CHECK(refusal(with(raw, 88, std::uint64_t{0})) == digest_errc::bad_body);
        auto past_the_end = raw;
        past_the_end.back() |= std::byte{0x80};
        const auto more = read_digest_head(raw)->listed + 1;
        CHECK(refusal(with(past_the_end, 88, more)) == digest_errc::bad_body);
    }

    TEST_CASE("a reader's limits are kept before and after memory is taken") {
        const auto made = small_digest();
        const auto wire = encode(made);
        CHECK(refusal(wire, {.bytes = made.bytes() - 1}) == digest_errc::over_limit);
        CHECK_FALSE(refusal(wire, {.bytes = made.bytes()}).failed());
        // A terabyte of zeroes takes 128 bytes of wire.
        const auto bomb = with(
            with(encode(random_digest(64, 0)), 16, std::uint64_t{1} << 40), 96, std::uint64_t{1});
        CHECK(refusal(bomb) == digest_errc::over_limit);
        CHECK(refusal(encode(random_digest(640, 1))) == digest_errc::saturated);
        CHECK(refusal(wire, {.false_positive_rate = made.false_positive_rate() / 2}) ==
              digest_errc::saturated);
    }

    TEST_CASE("a digest under another secret is refused, whole or as a delta") {
        const auto base = small_digest();
        auto other = test_seed();
        other[15] ^= std::byte{1};
        CHECK(decode_digest(encode(base), other).error() == digest_errc::other_seed);
        auto stamp = stamp_of(100, 2);
        stamp.seed = other;
        const digest next{base.shape(), {base.words().begin(), base.words().end()}, stamp};
        CHECK(encode_delta(base, next).error() == digest_errc::other_seed);
        const auto delta = *encode_delta(base, digest_of_keys(digest_size(100, 0.01), 1, 101, 2));
        stamp.generation.counter = 1;
        const digest elsewhere{base.shape(), {base.words().begin(), base.words().end()}, stamp};
        CHECK(refusal(delta, elsewhere) == digest_errc::other_seed);
    }

    TEST_CASE("a form for another is told apart") {
        const auto base = small_digest();
        const auto delta = *encode_delta(base, digest_of_keys(digest_size(100, 0.01), 1, 101, 2));
        CHECK(refusal(delta) == digest_errc::is_delta);
        CHECK(refusal(encode(base), base) == digest_errc::is_whole);
    }

    TEST_CASE("a delta to another base is refused: other epoch, counter, bits or shape") {
        const auto size = digest_size(100, 0.01);
        const auto base = digest_of_keys(size, 0, 100, 5);
        const auto delta = *encode_delta(base, digest_of_keys(size, 1, 101, 6));
        CHECK_FALSE(refusal(delta, base).failed());
        const auto copy = [&base](digest_generation generation, unsigned probes) {
            auto stamp = base.stamp();
            stamp.generation = generation;
            auto shape = base.shape();
            shape.probes = probes;
            return digest{shape, line_words(base.words().begin(), base.words().end()), stamp};
        };
        const auto generation = base.stamp().generation;
        CHECK(refusal(delta, copy({generation.epoch + 1, 5}, 2)) == digest_errc::wrong_base);
        CHECK(refusal(delta, copy({generation.epoch, 4}, 2)) == digest_errc::wrong_base);
        CHECK(refusal(delta, copy(generation, 3)) == digest_errc::wrong_base);
        CHECK(refusal(delta, digest_of_keys(size, 0, 99, 5)) == digest_errc::wrong_base);
        CHECK_FALSE(refusal(delta, copy(generation, 2)).failed());
    }

    TEST_CASE("there is no delta between digests that are not of one row") {
        const auto size = digest_size(100, 0.01);
        const auto base = digest_of_keys(size, 0, 100, 5);
        const auto why = [&base](const digest& next) { return encode_delta(base, next).error(); };
        CHECK(why(digest_of_keys(size, 0, 100, 5)) == digest_errc::not_newer);
        CHECK(why(digest_of_keys(size, 0, 100, 4)) == digest_errc::not_newer);
        CHECK(why(digest_of_keys({size.bits, 3}, 0, 100, 6)) == digest_errc::shapes_differ);
        CHECK(why(digest_of_keys({size.bits + 64, 2}, 0, 100, 6)) == digest_errc::shapes_differ);
        auto stamp = stamp_of(100, 6);
        stamp.generation.epoch += 1;
        CHECK(why({base.shape(), {base.words().begin(), base.words().end()}, stamp}) ==
              digest_errc::epochs_differ);
    }

    TEST_CASE("a delta's base is never of its own generation or later") {
        const auto size = digest_size(100, 0.01);
        const auto base = digest_of_keys(size, 0, 100, 5);
        const auto delta = *encode_delta(base, digest_of_keys(size, 1, 101, 6));
        CHECK(refusal(with(delta, 72, std::uint64_t{6}), base) == digest_errc::bad_header);
        CHECK(refusal(with(delta, 72, std::uint64_t{7}), base) == digest_errc::bad_header);
    }

    TEST_CASE("every reason has words of its own") {
        std::vector<std::string> all;
        for (int code = 1; code <= static_cast<int>(digest_errc::is_news); ++code) {
            all.push_back(make_error_code(static_cast<digest_errc>(code)).message());
        }
        std::sort(all.begin(), all.end());
        CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
        CHECK(std::find(all.begin(), all.end(), "unknown error") == all.end());
    }
}

}  // namespace reprise::filter
