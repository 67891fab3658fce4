#include "proxy/cache/disk/format.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace reprise::proxy::cache::disk {

namespace {

superblock some_superblock() {
    superblock made{.store_id = 42,
                    .segment_bytes = 1u << 20,
                    .made = wall_time{std::chrono::seconds{1'700'000'000}}};
    made.seed.fill(std::byte{7});
    return made;
}

}  // namespace

TEST_SUITE("cache/disk/format") {
    TEST_CASE("what a plan names is together no more than the size") {
        for (std::uint64_t size = smallest_store; size < (std::uint64_t{1} << 45);
             size += size / 3 + 4096) {
            CAPTURE(size);
            const auto made = plan(size);
            CHECK(made.segments >= 8);
            CHECK(made.segments <= most_segments);
            CHECK(made.segment_bytes >= smallest_segment);
            CHECK(made.segment_bytes <= largest_segment);
            CHECK(made.segments * made.segment_bytes + made.journal_most + superblock_bytes <=
                  size);
            CHECK(made.inline_most <= made.record_most);
        }
    }

    TEST_CASE("a store of some size has about 128 segments between their bounds") {
        CHECK(plan(1u << 30).segment_bytes == 8u << 20);
        CHECK(plan(std::uint64_t{20} << 30).segment_bytes == 160u << 20);
        CHECK(plan(std::uint64_t{20} << 30).segments >= 120);
        CHECK(plan(std::uint64_t{1} << 40).segment_bytes == largest_segment);
        CHECK(plan(smallest_store).segment_bytes == smallest_segment);
    }

    TEST_CASE("a store too large for all of its segments to be named has as many as can be") {
        for (const std::uint64_t segment : {std::uint64_t{0}, std::uint64_t{8} << 20}) {
            CAPTURE(segment);
            for (const std::uint64_t tebibytes : {15u, 64u}) {
                CAPTURE(tebibytes);
                const auto made = plan(tebibytes << 40, segment);
                CHECK(made.segment_bytes <= largest_segment);
                CHECK(made.segments <= most_segments);
                const auto most = std::min(tebibytes << 40, largest_segment * most_segments);
                CHECK(made.segments * made.segment_bytes >= most / 100 * 99);
            }
        }
    }

    TEST_CASE("a store keeps the segments that it has") {
        CHECK(plan(std::uint64_t{20} << 30, 8u << 20).segment_bytes == 8u << 20);
        CHECK(plan(64u << 20, 1).segment_bytes == smallest_segment);
    }

    TEST_CASE("from its least size on a store has the fewest segments that one may have, or more") {
        for (const auto segment : {smallest_segment,
                                   std::uint64_t{2} << 20,
                                   std::uint64_t{160} << 20,
                                   largest_segment}) {
            CAPTURE(segment);
            const auto least = least_size_for(segment);
            CHECK(plan(least, segment).segments >= fewest_segments);
            if (least > smallest_store) {
                CHECK(plan(least - (1u << 20), segment).segments < fewest_segments);
            }
        }
    }

    TEST_CASE("a superblock comes back as it was") {
        const auto made = some_superblock();
        const auto read = read_superblock(encode(made));
        REQUIRE(read.has_value());
        CHECK(read->store_id == made.store_id);
        CHECK(read->seed == made.seed);
        CHECK(read->segment_bytes == made.segment_bytes);
        CHECK(read->made == made.made);
    }

    TEST_CASE("a superblock with any bit flipped, or cut short, is refused") {
        const auto image = encode(some_superblock());
        for (std::size_t bit = 0; bit < image.size() * 8; ++bit) {
            CAPTURE(bit);
            auto bent = image;
            bent[bit / 8] = static_cast<char>(bent[bit / 8] ^ (1 << (bit % 8)));
            CHECK(read_superblock(bent).has_error());
        }
        CHECK(read_superblock(std::span{image}.first(image.size() - 1)).error() ==
              format_errc::truncated);
    }

    TEST_CASE("the first bytes of a superblock are those that the format page names") {
        const auto image = encode(some_superblock());
        CHECK(std::string_view{image.data() + 8, 8} == "REPSTORE");
        CHECK(image[16] == 1);
        CHECK(image[24] == 42);
    }

    TEST_CASE("segments' names are numbers, and nothing else is a segment's name") {
        for (const std::uint32_t number : {0u, 42u, 65534u}) {
            CHECK(segment_number_in(segment_name(number)) == number);
        }
        CHECK(segment_name(42) == "s-0000002a");
        for (const auto* other : {"",
                                  "s-",
                                  "s-0000002",
                                  "s-0000002A",
                                  "s-0000002a0",
                                  "t-0000002a",
                                  "s-ffffffff",
                                  "s-+000002a",
                                  "purges"}) {
            CAPTURE(other);
            CHECK(segment_number_in(other) == most_segments);
        }
    }

    TEST_CASE("a coarse time is after now until its quarter of an hour") {
        using namespace std::chrono_literals;
        for (std::int64_t years = 0; years < 300; years += 7) {
            const wall_time now{std::chrono::hours{24 * 365 * years} + 7min};
            for (const std::chrono::minutes ahead : {16min, 60min, 144000min, 488160min}) {
                CAPTURE(ahead.count());
                const auto coarse = coarse_time(now + ahead, now);
                CHECK(is_after(coarse, now));
                CHECK(is_after(coarse, now + ahead - 16min));
                CHECK_FALSE(is_after(coarse, now + ahead));
                CHECK_FALSE(is_after(coarse, now + ahead + 24h * 300));
            }
            CHECK_FALSE(is_after(coarse_time(now, now), now));
            CHECK_FALSE(is_after(coarse_time(wall_time::min(), now), now));
            CHECK(is_after(coarse_time(wall_time::max(), now), now + 24h * 339));
            CHECK(is_later(coarse_time(now + 2h, now), coarse_time(now + 1h, now), now));
            CHECK_FALSE(is_later(coarse_time(now + 1h, now), coarse_time(now + 2h, now), now));
            CHECK(is_later(coarse_time(now + 1h, now), 0, now));
        }
    }

    TEST_CASE("every error has words") {
        for (int code = static_cast<int>(format_errc::truncated);
             code <= static_cast<int>(format_errc::too_large);
             ++code) {
            CHECK(make_error_code(static_cast<format_errc>(code)).message() != "unknown error");
        }
    }
}

}  // namespace reprise::proxy::cache::disk
