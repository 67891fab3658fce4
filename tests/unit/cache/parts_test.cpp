#include "proxy/cache/parts.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace reprise::proxy::cache::test::of_parts {

namespace {

constexpr auto any = std::uint64_t{1} << 40;

part part_of(std::uint64_t first, std::string_view bytes) {
    return {first, body_of(bytes)};
}

/// "0:abc 9:xyz"
std::string text_of(const partial_body& body) {
    std::string text;
    for (const auto& one : body.held) {
        text += (text.empty() ? "" : " ") + std::to_string(one.first) + ":" + bytes_of(*one.bytes);
    }
    return text;
}

partial_body made_of(std::initializer_list<part> parts, std::uint64_t total = 26) {
    partial_body all;
    for (const auto& one : parts) {
        all = *with_part(all, one, total, any);
    }
    return all;
}

}  // namespace

TEST_SUITE("cache/parts") {
    TEST_CASE("parts are kept in order of their place, whenever they came") {
        const auto all = made_of({part_of(9, "jk"), part_of(0, "ab"), part_of(4, "e")});
        CHECK(text_of(all) == "0:ab 4:e 9:jk");
        CHECK(all.bytes() == 5);
        CHECK(all.total == 26);
    }

    TEST_CASE("a part that touches another becomes one with it") {
        CHECK(text_of(made_of({part_of(0, "ab"), part_of(2, "cd")})) == "0:abcd");
        CHECK(text_of(made_of({part_of(2, "cd"), part_of(0, "ab")})) == "0:abcd");
        CHECK(text_of(made_of({part_of(0, "ab"), part_of(3, "d")})) == "0:ab 3:d");
    }

    TEST_CASE("a part that fills a gap joins both its sides") {
        const auto all = made_of({part_of(0, "ab"), part_of(4, "ef"), part_of(2, "cd")});
        CHECK(text_of(all) == "0:abcdef");
    }

    TEST_CASE("of bytes that come twice those that were there stay") {
        CHECK(text_of(made_of({part_of(2, "cde"), part_of(0, "ABCDEFG")})) == "0:ABcdeFG");
        CHECK(text_of(made_of({part_of(0, "abc"), part_of(1, "BCD")})) == "0:abcD");
        CHECK(text_of(made_of({part_of(3, "def"), part_of(1, "BCD")})) == "1:BCdef");
        CHECK(text_of(made_of({part_of(1, "b"), part_of(3, "d"), part_of(0, "ABCDE")})) ==
              "0:AbCdE");
    }

    TEST_CASE("a part that is there already changes nothing and copies nothing") {
        const auto before = made_of({part_of(0, "abcdef")});
        const auto after = with_part(before, part_of(2, "cd"), 26, any);
        REQUIRE(after);
        CHECK(after->held.front().bytes == before.held.front().bytes);
    }

    TEST_CASE("a run that a new part does not touch is shared") {
        const auto before = made_of({part_of(0, "ab"), part_of(10, "kl")});
        const auto after = with_part(before, part_of(2, "cd"), 26, any);
        REQUIRE(after);
        CHECK(after->held.back().bytes == before.held.back().bytes);
    }

    TEST_CASE("it is whole when one part reaches from the first byte to the known end") {
        CHECK(made_of({part_of(0, "ab"), part_of(2, "cd")}, 4).is_whole());
        CHECK_FALSE(made_of({part_of(0, "abc")}, 4).is_whole());
        CHECK_FALSE(made_of({part_of(1, "bcd")}, 4).is_whole());
        CHECK_FALSE(made_of({part_of(0, "abcd")}, partial_body::unknown).is_whole());
    }

    TEST_CASE("the complete length is learnt from whichever part knows it") {
        const auto before = made_of({part_of(0, "ab")}, partial_body::unknown);
        CHECK_FALSE(before.knows_total());
        const auto after = with_part(before, part_of(3, "d"), 4, any);
        REQUIRE(after);
        CHECK(after->total == 4);
        CHECK(with_part(*after, part_of(2, "c"), partial_body::unknown, any)->is_whole());
    }

    TEST_CASE("a range is held when one part has all of it") {
        const auto all = made_of({part_of(2, "cde"), part_of(8, "ij")});
        CHECK(all.holds({2, 4}));
        CHECK(all.holds({3, 3}));
        CHECK(all.holds({8, 9}));
        CHECK_FALSE(all.holds({1, 2}));
        CHECK_FALSE(all.holds({4, 5}));
        CHECK_FALSE(all.holds({4, 8}));
        CHECK_FALSE(all.holds({9, 10}));
        CHECK_FALSE(all.holds({12, 13}));
    }

    TEST_CASE("a gap reaches from the first missing byte to the last") {
        const auto all = made_of({part_of(2, "cde"), part_of(8, "ij"), part_of(14, "op")});
        const auto gap = [&](std::uint64_t first, std::uint64_t last) {
            const auto found = all.gap_in({first, last});
            return found ? std::to_string(found->first) + "-" + std::to_string(found->last) : "";
        };
        CHECK(gap(2, 4) == "");
        CHECK(gap(3, 4) == "");
        CHECK(gap(2, 6) == "5-6");
        CHECK(gap(0, 3) == "0-1");
        CHECK(gap(3, 8) == "5-7");
        CHECK(gap(3, 15) == "5-13");
        CHECK(gap(0, 25) == "0-25");
        CHECK(gap(4, 11) == "5-11");
        CHECK(gap(5, 7) == "5-7");
        CHECK(gap(17, 25) == "17-25");
        CHECK(gap(0, 0) == "0-0");
    }

    TEST_CASE("the slices of a range are its bytes") {
        const auto all = made_of({part_of(2, std::string(5000, 'x') + "abc"),
                                  part_of(5005, "def" + std::string(6000, 'y'))},
                                 20000);
        std::string bytes;
        all.each_slice({5001, 5008}, [&](const slice& one, std::size_t skip, std::size_t size) {
            bytes += one.view().substr(skip, size);
        });
        CHECK(bytes == "xabcdefy");
    }

    TEST_CASE("more bytes than may be held are refused") {
        const auto before = made_of({part_of(0, "abcd")});
        CHECK(with_part(before, part_of(6, "gh"), 26, 6));
        CHECK_FALSE(with_part(before, part_of(6, "gh"), 26, 5));
        CHECK(with_part(before, part_of(1, "bcde"), 26, 5));
    }

    TEST_CASE("beyond the most parts the smallest other goes") {
        partial_body all;
        for (std::uint64_t i = 0; i < partial_body::most_parts; ++i) {
            const std::string bytes(i == 7 ? 1 : 2, 'x');
            all = *with_part(all, part_of(10 * i, bytes), 10'000, any);
        }
        CHECK(all.held.size() == partial_body::most_parts);
        all = *with_part(all, part_of(5000, "n"), 10'000, any);
        CHECK(all.held.size() == partial_body::most_parts);
        CHECK_FALSE(all.holds({70, 70}));
        CHECK(all.holds({5000, 5000}));
        CHECK(all.holds({0, 1}));
    }

    TEST_CASE("a run that came a byte at a time costs little more than one that came at once") {
        constexpr std::size_t size = 20'000;
        partial_body all;
        for (std::uint64_t i = 0; i < size; ++i) {
            all = *with_part(all, part_of(i, "x"), size, any);
        }
        REQUIRE(all.is_whole());
        CHECK(all.held.front().bytes->slices.size() <= 2 * size / 4096 + 1);
        CHECK(all.footprint() < size + size / 8);
    }

    TEST_CASE("a few bytes of a large block do not keep the block") {
        auto content = std::make_shared<body>();
        auto memory = block::make(64u << 10);
        std::memset(memory->data(), 'y', memory->capacity());
        content->slices.push_back(slice{std::move(memory), 0, 64u << 10});
        content->size = 64u << 10;
        const auto before = made_of({part_of(0, std::string((64u << 10) - 10, 'x'))}, 1u << 20);
        const auto after = with_part(before, {0, content}, 1u << 20, any);
        REQUIRE(after);
        CHECK(after->bytes() == 64u << 10);
        CHECK(after->footprint() < (65u << 10));
    }
}

}  // namespace reprise::proxy::cache::test::of_parts
