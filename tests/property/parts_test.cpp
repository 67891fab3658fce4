// Parts of a body whose bytes derive from their place, in whatever order a seed brings them,
// against a model that holds one flag a byte.
//
// The model is a bitmap: which bytes came. The parts must be its runs, hold the right byte at each
// place, and name as the gap of a range the first and the last flag that is not set.

#include "proxy/cache/parts.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace reprise::proxy::cache::test::of_parts {

namespace {

char byte_at(std::uint64_t offset) {
    return static_cast<char>((offset * 2654435761u) >> 13);
}

/// Bytes of a body in slices of up to `most`, at odd places in blocks that are sometimes larger.
part any_part(std::uint64_t first, std::uint64_t size, std::size_t most, std::mt19937_64& random) {
    auto content = std::make_shared<body>();
    for (auto at = first; at < first + size;) {
        const auto bytes = static_cast<std::size_t>(
            std::min<std::uint64_t>(first + size - at, 1 + random() % most));
        const auto skip = static_cast<std::size_t>(random() % 200);
        auto memory = block::make(skip + bytes + static_cast<std::size_t>(random() % 2 * 5000));
        for (std::size_t i = 0; i < bytes; ++i) {
            memory->data()[skip + i] = byte_at(at + i);
        }
        content->slices.push_back(slice{std::move(memory), skip, bytes});
        content->size += bytes;
        at += bytes;
    }
    return {first, std::move(content)};
}

/// Runs of set flags.
std::vector<http::byte_range> runs_of(const std::vector<bool>& came) {
    std::vector<http::byte_range> runs;
    for (std::uint64_t i = 0; i < came.size(); ++i) {
        if (!came[i]) {
            continue;
        }
        if (runs.empty() || runs.back().last + 1 != i) {
            runs.push_back({i, i});
        }
        runs.back().last = i;
    }
    return runs;
}

std::optional<http::byte_range> gap_of(const std::vector<bool>& came, http::byte_range wanted) {
    std::optional<http::byte_range> gap;
    for (auto i = wanted.first; i <= wanted.last; ++i) {
        if (!came[i]) {
            gap = gap ? http::byte_range{gap->first, i} : http::byte_range{i, i};
        }
    }
    return gap;
}

http::byte_range any_range(std::uint64_t size, std::mt19937_64& random) {
    const auto first = random() % size;
    return {first, first + random() % std::min<std::uint64_t>(size - first, 1 + size / 8)};
}

}  // namespace

TEST_SUITE("property/parts") {
    TEST_CASE("parts are the runs of what came, with the right byte at each place") {
        for (std::uint64_t seed = 1; seed <= 150; ++seed) {
            CAPTURE(seed);
            std::mt19937_64 random{seed};
            const auto total = 1 + random() % 6000;
            const auto most = std::size_t{1} + static_cast<std::size_t>(random() % 3000);
            std::vector<bool> came(total);
            partial_body all;
            for (int turn = 0; turn < 30; ++turn) {
                CAPTURE(turn);
                const auto range = any_range(total, random);
                const auto added = any_part(range.first, range.size(), most, random);
                auto next = with_part(all, added, total, total);
                REQUIRE(next);
                all = std::move(*next);
                std::fill(came.begin() + static_cast<std::ptrdiff_t>(range.first),
                          came.begin() + static_cast<std::ptrdiff_t>(range.last) + 1,
                          true);
                const auto runs = runs_of(came);
                REQUIRE(all.held.size() == runs.size());
                for (std::size_t i = 0; i < runs.size(); ++i) {
                    REQUIRE(all.held[i].first == runs[i].first);
                    REQUIRE(all.held[i].end() == runs[i].last + 1);
                }
                const auto wanted = any_range(total, random);
                const auto gap = gap_of(came, wanted);
                CHECK(all.gap_in(wanted) == gap);
                REQUIRE(all.holds(wanted) == !gap.has_value());
                if (gap) {
                    continue;
                }
                auto at = wanted.first;
                bool right = true;
                all.each_slice(wanted, [&](const slice& piece, std::size_t skip, std::size_t size) {
                    for (const auto byte : piece.view().substr(skip, size)) {
                        right = right && byte == byte_at(at++);
                    }
                });
                CHECK(right);
                CHECK(at == wanted.last + 1);
            }
            const bool everything = std::find(came.begin(), came.end(), false) == came.end();
            CHECK(all.is_whole() == everything);
        }
    }

    TEST_CASE("however they came, parts cost little more than their bytes") {
        for (std::uint64_t seed = 1; seed <= 40; ++seed) {
            CAPTURE(seed);
            std::mt19937_64 random{seed};
            partial_body all;
            for (int turn = 0; turn < 200; ++turn) {
                const auto range = any_range(200'000, random);
                all = *with_part(
                    all, any_part(range.first, range.size(), 20'000, random), 200'000, 200'000);
            }
            // A part below 4 KiB has its own head and block; larger ones an eighth at most, and a
            // block's and a slice's head to each 2 KiB.
            const auto heads = all.held.size() * 400 + all.bytes() / 2048 * 100;
            CHECK(all.footprint() <= all.bytes() + all.bytes() / 8 + heads);
        }
    }

    TEST_CASE("never more parts than the most, in order, and always the one just added") {
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            CAPTURE(seed);
            std::mt19937_64 random{seed};
            partial_body all;
            for (int turn = 0; turn < 300; ++turn) {
                const auto first = random() % 1'000'000;
                const auto size = 1 + random() % 50;
                const auto next = with_part(
                    all, any_part(first, size, 100, random), 2'000'000, 2'000'000);
                REQUIRE(next);
                CHECK(next->held.size() <= partial_body::most_parts);
                CHECK(next->holds({first, first + size - 1}));
                const auto touching = std::adjacent_find(
                    next->held.begin(), next->held.end(), [](const part& a, const part& b) {
                        return b.first <= a.end();
                    });
                CHECK(touching == next->held.end());
                all = *next;
            }
        }
    }
}

}  // namespace reprise::proxy::cache::test::of_parts
