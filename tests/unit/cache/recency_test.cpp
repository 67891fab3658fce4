#include "proxy/cache/recency.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>

namespace reprise::proxy::cache::test::of_recency {
namespace {

using namespace std::chrono_literals;

/// Asked for and come so many milliseconds after one moment.
drafted exchanged(std::chrono::milliseconds asked,
                  std::chrono::milliseconds came,
                  std::string_view date = {}) {
    constexpr wall_time start{std::chrono::hours{24 * 365 * 50}};
    auto made = test::response({});
    if (!date.empty()) {
        made->head = "HTTP/1.1 200 OK\r\nDate: " + std::string{date} + "\r\n";
        index_head(made);
    }
    made->asked_at = start + asked;
    made->freshness.response_time = start + came;
    return made;
}

constexpr std::string_view noon = "Sat, 01 Jan 2022 12:00:00 GMT";
constexpr std::string_view later = "Sat, 01 Jan 2022 12:00:05 GMT";
constexpr std::string_view far_ahead = "Sat, 01 Jan 2050 12:00:00 GMT";

}  // namespace

TEST_SUITE("cache/recency") {
    TEST_CASE(
        "what was asked for after the other had come is the more recent, whatever Dates say") {
        const auto before = exchanged(0ms, 10ms, far_ahead);
        const auto after = exchanged(10ms, 20ms, noon);
        CHECK_FALSE(is_outdated_by(*after, *before));
        CHECK(is_outdated_by(*before, *after));
    }

    TEST_CASE(
        "of two within one millisecond the one whose request was sent later is the more recent") {
        const auto in_turn = [](unsigned turn, std::string_view date = {}) {
            auto made = exchanged(10ms, 10ms, date);
            made->asked_turn = static_cast<std::uint16_t>(turn % turns);
            return made;
        };
        for (const unsigned turn : {0u, 1u, turns - 1u, turns / 2u}) {
            CAPTURE(turn);
            const auto first = in_turn(turn, far_ahead);
            const auto second = in_turn(turn + 1, noon);
            CHECK_FALSE(is_outdated_by(*second, *first));
            CHECK(is_outdated_by(*first, *second));
            CHECK_FALSE(is_outdated_by(*first, *in_turn(turn)));  // the newcomer wins
        }
        auto from_disk = in_turn(7);
        from_disk->asked_at = wall_time::min();
        CHECK_FALSE(is_outdated_by(*from_disk, *in_turn(8)));
        CHECK_FALSE(is_outdated_by(*in_turn(6), *from_disk));
        const auto one = next_turn();
        CHECK((next_turn() + turns - one) % turns == 1);
    }

    TEST_CASE("of two that overlapped the later Date decides") {
        const auto long_ago = exchanged(0ms, 30ms, noon);
        const auto within = exchanged(10ms, 20ms, later);
        CHECK(is_outdated_by(*long_ago, *within));
        CHECK_FALSE(is_outdated_by(*within, *long_ago));
    }

    TEST_CASE("of two that overlapped under one Date, or none, the later to come stays") {
        for (const auto date : {noon, std::string_view{}}) {
            const auto first = exchanged(0ms, 20ms, date);
            const auto second = exchanged(10ms, 30ms, date);
            CHECK_FALSE(is_outdated_by(*second, *first));
            CHECK(is_outdated_by(*first, *second));
        }
    }

    TEST_CASE("a response whose request is not known was asked for when it came") {
        auto from_disk = exchanged(0ms, 20ms, far_ahead);
        from_disk->asked_at = wall_time::min();
        CHECK_FALSE(is_outdated_by(*exchanged(20ms, 30ms, noon), *from_disk));
        CHECK(is_outdated_by(*exchanged(0ms, 20ms, noon), *from_disk));
        CHECK_FALSE(is_outdated_by(*from_disk, *exchanged(0ms, 10ms, far_ahead)));
    }

    TEST_CASE("by Date alone: the earlier is the older, and where one has none nobody knows") {
        const auto held = exchanged(0ms, 10ms, later);
        const auto is_before = [](const stored_response& one, const stored_response& kept) {
            return is_dated_before(one.fields(), one.freshness().response_time, kept);
        };
        const auto at_noon = exchanged(20ms, 30ms, noon), undated = exchanged(20ms, 30ms);
        CHECK(is_before(*at_noon, *held));
        CHECK_FALSE(is_before(*held, *at_noon));
        CHECK_FALSE(is_before(*held, *held));
        CHECK_FALSE(is_before(*undated, *held));
        CHECK_FALSE(is_before(*at_noon, *undated));
    }

    TEST_CASE("of two of which one must be kept, one is") {
        // Two replace each other only where nothing tells them apart.
        for (const auto asked : {0ms, 5ms, 15ms, 25ms}) {
            for (const auto took : {0ms, 8ms, 20ms}) {
                for (const auto date : {noon, later, std::string_view{}}) {
                    const auto one = exchanged(asked, asked + took, date);
                    const auto other = exchanged(10ms, 20ms, noon);
                    CHECK_FALSE((is_outdated_by(*one, *other) && is_outdated_by(*other, *one)));
                }
            }
        }
    }
}

}  // namespace reprise::proxy::cache::test::of_recency
