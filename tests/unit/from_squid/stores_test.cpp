#include "tests/unit/from_squid/converted.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

namespace reprise::from_squid {

TEST_SUITE("from_squid/stores") {
    TEST_CASE("a cache_dir that is smaller than any store here is the least one, and said so") {
        const auto small = settings_of("cache_dir ufs /var/spool/squid 8 16 256\n");
        CHECK(small.options.disk.path == "/var/cache/reprise");
        CHECK(small.options.disk.size == 16u << 20);
        CHECK(small.says(fate::approximated, "from 16 MiB"));
        const auto large = settings_of("cache_dir ufs /var/spool/squid 999999999 16 256\n");
        CHECK(large.options.disk.size == std::uint64_t{16} << 40);
        CHECK_FALSE(settings_of("cache_dir ufs /var/spool/squid 16 16 256\n")
                        .says(fate::approximated, "from 16 MiB"));
    }

    TEST_CASE("what a cache_dir takes at most is what the disk does") {
        const std::string dir = "cache_dir ufs /x 1000 16 256";
        CHECK(settings_of(dir + " max-size=1048576\n").options.disk.max_object == 1u << 20);
        // Its own bound comes first, wherever the general one stands.
        for (const auto& text : {"maximum_object_size 100 MB\n" + dir + " max-size=1048576\n",
                                 dir + " max-size=1048576\nmaximum_object_size 100 MB\n"}) {
            CAPTURE(text);
            CHECK(settings_of(text).options.disk.max_object == 1u << 20);
        }
        CHECK(settings_of(dir + " max-size=large\n").says(fate::left_out, "no number of bytes"));
        CHECK(settings_of(dir + "\nmaximum_object_size 500 MB\n").options.disk.max_object ==
              std::uint64_t{250} << 20);
    }

    TEST_CASE("bounds that are not written are Squid's own") {
        const auto r = settings_of("cache_mem 64 MB\ncache_dir ufs /s 4096 16 256\n");
        CHECK(r.options.disk.max_object == 4u << 20);
        CHECK(r.options.memory.max_object == 512u << 10);
        CHECK(r.says(fate::changed, "Squid's own bound"));
        const auto bounded = settings_of(
            "maximum_object_size_in_memory 1 MB\ncache_dir ufs /s 4096 16 256 max-size=9000000\n");
        CHECK_FALSE(bounded.says(fate::changed, "Squid's own bound"));
        CHECK(bounded.options.disk.max_object == 9'000'000);
        // Where nothing but memory stores, what it takes at most is all that is stored.
        CHECK(settings_of("http_port 3128\n").options.memory.max_object == 512u << 10);
    }

    TEST_CASE("of several directories the disk takes the largest that one of them does") {
        const std::string small = "cache_dir rock /r 1000 max-size=32768\n";
        const std::string large = "cache_dir aufs /a 4000 16 256 min-size=32769 max-size=1048576\n";
        const auto r = settings_of(small + large);
        CHECK(r.options.disk.size == std::uint64_t{5000} << 20);
        CHECK(r.options.disk.max_object == 1u << 20);
        CHECK(r.says(fate::approximated, "max-size: one bound"));
        CHECK(r.says(fate::left_out, "min-size: small things are stored"));
        const std::string open = "cache_dir aufs /a 4000 16 256\n";
        CHECK(settings_of(small + open + "maximum_object_size 2 MB\n").options.disk.max_object ==
              2u << 20);
        const auto unbounded = settings_of(small + open);
        CHECK(unbounded.options.disk.max_object == 4u << 20);
        CHECK(unbounded.says(fate::approximated, "max-size: one bound"));
    }

    TEST_CASE("a directory that nothing new goes to is none") {
        const std::string old = "cache_dir ufs /old 1000 16 256 no-store\n";
        const auto beside = settings_of(old + "cache_dir ufs /new 500 16 256\n");
        CHECK(beside.options.disk.size == std::uint64_t{500} << 20);
        CHECK(beside.says(fate::left_out, "no-store"));
        CHECK(settings_of(old).options.disk.path.empty());
    }

    TEST_CASE("what memory takes at most is written as it is in force, a fifth of all") {
        const auto r = settings_of("cache_mem 256 MB\nmaximum_object_size_in_memory 100 MB\n");
        CHECK(r.options.memory.max_object == (std::uint64_t{256} << 20) / 5);
        CHECK(r.options.memory.max_object == r.options.memory.largest());
        CHECK(r.says(fate::approximated, "no larger part of the store"));
        CHECK_FALSE(settings_of("cache_mem 256 MB\nmaximum_object_size_in_memory 50 MB\n")
                        .says(fate::approximated, "no larger part of the store"));
    }

    TEST_CASE("a bound of the disk is said to be lost where there is no disk") {
        const auto r = settings_of("maximum_object_size 100 MB\n");
        CHECK(r.options.disk.path.empty());
        CHECK(r.says(fate::left_out, "memory.max_object is memory's"));
        CHECK(settings_of("maximum_object_size lots\n").says(fate::left_out, "not a size"));
    }
}

}  // namespace reprise::from_squid
