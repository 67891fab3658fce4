#define XXH_INLINE_ALL  // nothing to link

#include "filter/admission_state.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

namespace reprise::filter {

using std::chrono::seconds;
using std::chrono::sys_seconds;
using test::nth_key;
using test::start;

namespace {

const admission_settings small{
    .objects = 40, .age = seconds{60}, .false_positive_rate = 0.01, .layers = 2};

hash_seed any_seed() {
    hash_seed seed{};
    for (std::size_t i = 0; i < seed.size(); ++i) {
        seed[i] = static_cast<std::byte>(test::mix(i));
    }
    return seed;
}

/// A filter of `settings` that has seen two and a half generations.
std::unique_ptr<admission_filter> used(const admission_settings& settings) {
    auto filter = std::make_unique<admission_filter>(settings, start);
    for (std::uint64_t i = 0; i < settings.objects * 5 / 2; ++i) {
        const auto now = start + seconds{i * 50 / settings.objects};
        filter->note(nth_key(1, i), now);
        if (i % 3 == 0) {
            filter->note(nth_key(1, i), now);
        }
    }
    return filter;
}

void put(std::vector<std::byte>& wire, std::size_t at, std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
        wire[at + i] = static_cast<std::byte>(value >> (8 * i));
    }
}

/// Makes both checksums right again after a change.
void sum(std::vector<std::byte>& wire) {
    put(wire, 104, XXH3_64bits(wire.data(), 104), 8);
    put(wire, wire.size() - 8, XXH3_64bits(wire.data(), wire.size() - 8), 8);
}

}  // namespace

TEST_SUITE("filter/admission_state") {
    TEST_CASE("a state read back answers as the filter did, and is written the same") {
        for (const auto& settings :
             {small,
              admission_settings{.objects = 1, .age = seconds{1}},
              admission_settings{.objects = 30'000, .age = seconds{9}, .layers = 3}}) {
            CAPTURE(settings.objects);
            const auto before = used(settings);
            const auto wire = encode(*before, any_seed());
            CHECK(wire.size() == encoded_size(settings));
            CHECK(wire.size() == encoded_size(*before));
            const auto after = decode(wire, settings, start + seconds{1'000});
            REQUIRE(after.has_value());
            CHECK(after->seed == any_seed());
            for (std::uint64_t i = 0; i < settings.objects * 5 / 2; ++i) {
                REQUIRE(before->peek(nth_key(1, i)) == after->filter->peek(nth_key(1, i)));
            }
            CHECK(encode(*after->filter, after->seed) == wire);
            const auto was = before->figures(start);
            const auto is = after->filter->figures(start);
            CHECK(is.young.since == was.young.since);
            CHECK(is.young.keys == was.young.keys);
            CHECK(is.old.since == was.old.since);
            CHECK(is.old.keys == was.old.keys);
        }
    }

    TEST_CASE("a state's bytes are those of the format's page") {
        admission_filter filter{small, start};
        const auto wire = encode(filter, any_seed());
        CHECK(std::memcmp(wire.data(), "REPRSEEN", 8) == 0);
        CHECK(std::to_integer<int>(wire[8]) == 1);
        CHECK(std::to_integer<int>(wire[12]) == 2);
        CHECK(std::to_integer<int>(wire[16]) == 40);
        CHECK(std::memcmp(wire.data() + 40, any_seed().data(), 32) == 0);
        CHECK(wire.size() == 112 + 2 * 2 * filter.blocks() * 64 + 8);

        // One key, one bit in each word of one block of the young generation's layer 0.
        const key_hash key{.low = 0, .high = 0x0000'f7de'75c6'9a42};
        filter.note(key, start);
        const auto noted = encode(filter, any_seed());
        for (unsigned lane = 0; lane < 8; ++lane) {
            std::uint64_t word = 0;
            for (unsigned i = 0; i < 8; ++i) {
                word |= std::to_integer<std::uint64_t>(noted[112 + 8 * lane + i]) << (8 * i);
            }
            CHECK(word == std::uint64_t{1} << ((key.high >> (6 * lane)) & 63));
        }
    }

    TEST_CASE("every proper prefix of a state is refused") {
        const auto wire = encode(*used(small), any_seed());
        for (std::size_t cut = 0; cut < wire.size(); ++cut) {
            CAPTURE(cut);
            const auto read = decode(std::span{wire}.first(cut), small, start);
            REQUIRE(read.has_error());
            CHECK(read.error() == admission_errc::truncated);
        }
    }

    TEST_CASE("a state with a bit flipped anywhere is refused") {
        auto wire = encode(*used(small), any_seed());
        for (std::size_t bit = 0; bit < wire.size() * 8; ++bit) {
            CAPTURE(bit);
            wire[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
            const auto read = decode(wire, small, start);
            REQUIRE(read.has_error());
            const auto expected = bit < 64   ? admission_errc::bad_magic
                                  : bit < 96 ? admission_errc::unknown_version
                                             : admission_errc::corrupt;
            CHECK(read.error() == expected);
            wire[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
        }
        CHECK(decode(wire, small, start).has_value());
    }

    TEST_CASE("bytes after the end are refused") {
        auto wire = encode(*used(small), any_seed());
        wire.push_back(std::byte{0});
        CHECK(decode(wire, small, start).error() == admission_errc::trailing_bytes);
    }

    TEST_CASE("a state for other settings is refused by the name of what differs") {
        const auto wire = encode(*used(small), any_seed());
        auto other = small;
        other.objects = 41;
        CHECK(decode(wire, other, start).error() == admission_errc::objects_differ);
        other = small;
        other.false_positive_rate = 0.011;
        CHECK(decode(wire, other, start).error() == admission_errc::rate_differs);
        other = small;
        other.layers = 1;
        CHECK(decode(wire, other, start).error() == admission_errc::layers_differ);
        other = small;
        other.age = std::chrono::hours{1};
        CHECK(decode(wire, other, start).has_value());

        // The header alone is enough to say so: a reader may stop there.
        other = small;
        other.objects = 41;
        CHECK(decode(std::span{wire}.first(112), other, start).error() ==
              admission_errc::objects_differ);
    }

    TEST_CASE("a header that lies with a right checksum is refused before memory is taken") {
        const auto good = encode(*used(small), any_seed());
        const auto refused = [&](const std::function<void(std::vector<std::byte>&)>& change) {
            auto wire = good;
            change(wire);
            sum(wire);
            const auto read = decode(wire, small, start);
            REQUIRE(read.has_error());
            return read.error();
        };
        for (const std::uint64_t blocks :
             std::initializer_list<std::uint64_t>{0, 1, UINT32_MAX, 1ull << 57, UINT64_MAX}) {
            CAPTURE(blocks);
            CHECK(refused([&](auto& wire) { put(wire, 32, blocks, 8); }) ==
                  admission_errc::size_differs);
        }
        for (const std::uint32_t layers : {0u, 16u, UINT32_MAX}) {
            CAPTURE(layers);
            CHECK(refused([&](auto& wire) { put(wire, 12, layers, 4); }) ==
                  admission_errc::layers_differ);
        }
        const auto not_a_number = std::bit_cast<std::uint64_t>(std::nan(""));
        CHECK(refused([&](auto& wire) { put(wire, 24, not_a_number, 8); }) ==
              admission_errc::rate_differs);
        CHECK(refused([](auto& wire) { put(wire, 72, UINT64_MAX, 8); }) ==
              admission_errc::bad_times);
        CHECK(refused([](auto& wire) { put(wire, 72, 1ull << 41, 8); }) ==
              admission_errc::bad_times);
        CHECK(refused([](auto& wire) { put(wire, 88, 1ull << 63, 8); }) ==
              admission_errc::bad_times);
        CHECK(refused([](auto& wire) { put(wire, 88, 1ull << 40, 8); }) ==
              admission_errc::bad_times);
    }

    TEST_CASE("whatever count of keys a state claims, the filter goes on") {
        auto wire = encode(*used(small), any_seed());
        put(wire, 80, UINT64_MAX, 8);
        put(wire, 96, UINT64_MAX, 8);
        sum(wire);
        const auto read = decode(wire, small, start);
        REQUIRE(read.has_value());
        CHECK(read->filter->note(nth_key(5, 5), start) == 0);
        CHECK(read->filter->note(nth_key(5, 5), start) == 1);
        CHECK(read->filter->figures(start + seconds{9}).remembers_for <= small.age);
    }

    TEST_CASE("the age of what was known goes on through a restart") {
        admission_filter before{small, start};
        before.note(nth_key(1, 1), start);
        const auto wire = encode(before, any_seed());
        const auto after = decode(wire, small, start + seconds{59});
        REQUIRE(after.has_value());
        CHECK(after->filter->note(nth_key(1, 1), start + seconds{59}) == 1);
        const auto later = decode(wire, small, start + seconds{600});
        REQUIRE(later.has_value());
        for (int ages = 0; ages < 3; ++ages) {
            later->filter->note(nth_key(2, 2), start + seconds{600 + 60 * ages});
        }
        CHECK(later->filter->peek(nth_key(1, 1)) == 0);
    }

    TEST_CASE("a start in the future is taken as now") {
        const auto wire = encode(*used(small), any_seed());
        const auto now = start - std::chrono::hours{24 * 365};
        const auto read = decode(wire, small, now);
        REQUIRE(read.has_value());
        CHECK(read->filter->figures(now).young.since == now);
        CHECK(read->filter->figures(now).old.since == now);
        read->filter->note(nth_key(3, 3), now + small.age);
        CHECK(read->filter->figures(now).swaps == 1);
    }

    TEST_CASE("a state written after the clock was set back can be read") {
        admission_filter filter{small, start};
        const auto back = start - std::chrono::hours{24};
        for (std::uint64_t i = 0; i < small.objects * 3 / 2; ++i) {
            filter.note(nth_key(1, i), back);
        }
        REQUIRE(filter.figures(back).old.since > filter.figures(back).young.since);
        CHECK(decode(encode(filter, any_seed()), small, back).has_value());
    }

    TEST_CASE("encoding stops when the sink says so, and says it itself") {
        const admission_settings settings{.objects = 100'000};
        const admission_filter filter{settings, start};
        std::vector<std::byte> all;
        std::size_t pieces = 0;
        CHECK(encode(filter, any_seed(), [&](std::span<const std::byte> piece) {
            CHECK(piece.size() <= 64 * 1024);
            ++pieces;
            all.insert(all.end(), piece.begin(), piece.end());
            return true;
        }));
        CHECK(all == encode(filter, any_seed()));
        for (std::size_t stop = 1; stop <= pieces; ++stop) {
            std::size_t taken = 0;
            CHECK_FALSE(encode(
                filter, any_seed(), [&](std::span<const std::byte>) { return ++taken < stop; }));
            CHECK(taken == stop);
        }
    }

    TEST_CASE("a state written while threads note holds what was known before and can be read") {
        const admission_settings settings{
            .objects = 20'000, .age = seconds{60}, .false_positive_rate = 0.001};
        admission_filter filter{settings, start};
        for (std::uint64_t i = 0; i < 5'000; ++i) {
            filter.note(nth_key(1, i), start);
        }
        std::atomic<bool> stop{false};
        std::vector<std::jthread> threads;
        for (unsigned worker = 0; worker < 3; ++worker) {
            threads.emplace_back([&, worker] {
                for (std::uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
                    // Few enough keys that those of before stay within the objects.
                    filter.note(nth_key(2 + worker, i % 4'000), start);
                }
            });
        }
        for (int i = 0; i < 20; ++i) {
            const auto read = decode(encode(filter, any_seed()), settings, start);
            REQUIRE(read.has_value());
            for (std::uint64_t key = 0; key < 5'000; ++key) {
                REQUIRE(read->filter->peek(nth_key(1, key)) == 1);
            }
        }
        stop = true;
        threads.clear();
    }

    TEST_CASE("every reason has a sentence of its own") {
        std::vector<std::string> seen;
        for (int value = 1; value <= 10; ++value) {
            const auto message = make_error_code(static_cast<admission_errc>(value)).message();
            CHECK(message != "unknown error");
            CHECK(std::count(seen.begin(), seen.end(), message) == 0);
            seen.push_back(message);
        }
        CHECK(admission_category().message(11) == "unknown error");
        CHECK(std::string{admission_category().name()} == "admission state");
    }
}

}  // namespace reprise::filter
