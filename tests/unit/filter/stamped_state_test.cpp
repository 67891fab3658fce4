#include "filter/stamped_state.hpp"
#include "tests/unit/filter/keys.hpp"

#define XXH_INLINE_ALL  // nothing to link
#include <doctest/doctest.h>
#include <xxhash.h>

#include <random>
#include <vector>

namespace reprise::filter {

using test::nth_key;

namespace {

constexpr seed_id any_id{std::byte{1}, std::byte{2}};
constexpr bloom_size small_size{1'001, 3};
constexpr unsigned four = 4;

stamped_state any_state(std::uint64_t seed, bloom_size size, unsigned generations) {
    std::mt19937_64 random{seed};
    stamped_state state{stamped_bloom{size, generations}, random() % 1'000, 1 + random() % 1'000};
    for (unsigned step = 0; step < 500; ++step) {
        const auto what = random() % 30;
        if (what == 0) {
            state.filter.advance();
        } else if (what < 4) {
            state.filter.sweep(random() % 300);
        } else {
            state.filter.insert(nth_key(seed, step));
        }
    }
    return state;
}

auto read(std::span<const std::byte> wire) {
    return decode_stamped(wire, small_size, four, any_id);
}

/// Makes both checksums right again after a change.
void sum_again(std::vector<std::byte>& wire) {
    const auto sum = [&](std::size_t bytes) {
        const auto value = std::uint64_t{XXH3_64bits(wire.data(), bytes)};
        for (unsigned i = 0; i < 8; ++i) {
            wire[bytes + i] = static_cast<std::byte>(value >> (8 * i));
        }
    };
    sum(64);
    sum(wire.size() - 8);
}

}  // namespace

TEST_SUITE("filter/stamped_state") {
    TEST_CASE("decode undoes encode, whatever the filter, but for what is over") {
        for (std::uint64_t seed = 1; seed <= 60; ++seed) {
            CAPTURE(seed);
            std::mt19937_64 random{seed};
            const bloom_size size{1 + random() % 3'000, static_cast<unsigned>(1 + random() % 6)};
            const auto generations = static_cast<unsigned>(2 + random() % 13);
            auto state = any_state(seed, size, generations);
            const auto wire = encode(state, any_id);
            CHECK(wire.size() == encoded_stamped_size(size));
            auto again = decode_stamped(wire, size, generations, any_id);
            REQUIRE(again.has_value());
            CHECK(again->written == state.written);
            CHECK(again->room == state.room);
            CHECK(again->filter.is_swept());
            state.filter.sweep();
            CHECK(again->filter == state.filter);
            CHECK(again->filter.bits_on() == state.filter.bits_on());
            // And both go on alike.
            for (auto* each : {&state.filter, &again->filter}) {
                each->advance();
                each->insert(nth_key(9, 9));
                each->sweep();
            }
            CHECK(again->filter == state.filter);
        }
    }

    TEST_CASE("known bytes") {
        stamped_state state{stamped_bloom{{3, 1}, 2}, 5, 6};
        state.filter.insert({.low = 1, .high = 0});
        state.filter.advance();
        state.filter.insert({.low = 2, .high = 0});
        const auto wire = encode(state, seed_id{});
        CHECK(test::hex(std::span{wire}.first(64)) == "5245505252494e47"
                                                      "01000000"
                                                      "02000000"
                                                      "0300000000000000"
                                                      "01000000"
                                                      "02000000"
                                                      "0500000000000000"
                                                      "0600000000000000"
                                                      "00000000000000000000000000000000");
        CHECK(test::hex(std::span{wire}.subspan(72, 4)) == "10020000");
    }

    TEST_CASE("every proper prefix and every damaged bit is refused") {
        const auto wire = encode(any_state(1, small_size, four), any_id);
        REQUIRE(read(wire).has_value());
        for (std::size_t cut = 0; cut < wire.size(); ++cut) {
            CHECK(read(std::span{wire}.first(cut)).error() == stamped_errc::truncated);
        }
        for (std::size_t bit = 0; bit < wire.size() * 8; ++bit) {
            auto damaged = wire;
            damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
            CHECK(read(damaged).has_error());
        }
        auto longer = wire;
        longer.push_back({});
        CHECK(read(longer).error() == stamped_errc::trailing_bytes);
    }

    TEST_CASE("what no writer writes is refused by name") {
        const auto wire = encode(any_state(1, small_size, four), any_id);
        const auto with = [&](std::size_t at, unsigned value) {
            auto changed = wire;
            changed[at] = static_cast<std::byte>(value);
            sum_again(changed);
            return read(changed).error();
        };
        CHECK(with(0, 'X') == stamped_errc::bad_magic);
        CHECK(with(8, 2) == stamped_errc::unknown_version);
        CHECK(with(12, 1) == stamped_errc::bad_header);
        CHECK(with(12, 15) == stamped_errc::bad_header);
        CHECK(with(12, 5) == stamped_errc::sizes_differ);
        CHECK(with(16, 7) == stamped_errc::sizes_differ);
        CHECK(with(22, 1) == stamped_errc::bad_header);
        CHECK(with(24, 0) == stamped_errc::bad_header);
        CHECK(with(24, 33) == stamped_errc::bad_header);
        CHECK(with(24, 4) == stamped_errc::sizes_differ);
        CHECK(with(28, 0) == stamped_errc::bad_header);
        CHECK(with(28, 16) == stamped_errc::bad_header);
        CHECK(with(48, 9) == stamped_errc::other_seed);
        CHECK(with(72 + 1'001 / 2 + 1, 1) == stamped_errc::bad_stamps);  // past the end
        const auto current = std::to_integer<unsigned>(wire[28]);
        CHECK(with(72, (current + 15 - 1 - 5) % 15 + 1) == stamped_errc::bad_stamps);
        for (int code = 1; code <= static_cast<int>(stamped_errc::bad_stamps); ++code) {
            CHECK(make_error_code(static_cast<stamped_errc>(code)).message() != "unknown error");
        }
    }
}

}  // namespace reprise::filter
