#include "filter/digest_wire.hpp"
#include "proxy/peer/any_digest.hpp"
#include "tests/unit/filter/digests.hpp"
#include "tests/unit/filter/squid_fixtures.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace reprise::proxy::peer::test::of_any_digest {
namespace {

using filter::test::digest_of_keys;

std::string value_of(const std::vector<digest_line>& lines, std::string_view name) {
    for (const auto& line : lines) {
        if (line.name == name) {
            return line.value;
        }
    }
    return "(absent)";
}

double keys_in(const std::string& text) {
    return std::strtod(text.c_str(), nullptr);
}

any_digest squid(const std::string& name) {
    auto read = read_any(filter::test::squid_bytes(name));
    REQUIRE(read.has_value());
    return *read;
}

any_digest ours(std::uint64_t first, std::uint64_t last, unsigned times = 1) {
    auto size = filter::digest_size(20'000, 0.01);
    size.bits *= times;
    auto read = read_any(filter::encode(digest_of_keys(size, first, last)));
    REQUIRE(read.has_value());
    return *read;
}

}  // namespace

TEST_SUITE("peer/any_digest") {
    TEST_CASE("version 1 of the digest, as 0.1.0 made it, is read") {
        std::ifstream in{REPRISE_TEST_DATA "/formats/digest-1.bin", std::ios::binary};
        const std::string bytes{std::istreambuf_iterator<char>{in}, {}};
        const auto read = read_any(std::as_bytes(std::span{bytes}));
        REQUIRE(read.has_value());
        const auto secret = fleet_secret::none();
        for (const std::string name : {"small", "large", "variant", "refreshed"}) {
            CAPTURE(name);
            CHECK(lists(*read, "http://kept.example:18833/" + name, secret) == true);
        }
        for (const std::string name : {"purged", "soft", "never"}) {
            CAPTURE(name);
            CHECK(lists(*read, "http://kept.example:18833/" + name, secret) == false);
        }
        CHECK(value_of(describe(*read, secret), "secret is the one given") == "yes");
    }

    TEST_CASE("either kind is known by its bytes, and described") {
        const auto secret = fleet_secret::none();
        const auto lines = describe(ours(0, 10'000), secret);
        CHECK(value_of(lines, "kind") == "Reprise");
        CHECK(value_of(lines, "keys, as its owner says") == "10000");
        CHECK(keys_in(value_of(lines, "keys, estimated")) == doctest::Approx(10'000).epsilon(0.03));
        CHECK(value_of(lines, "secret is the one given") == "no");
        const auto theirs = describe(squid("digest-1500.bin"), secret);
        CHECK(value_of(theirs, "kind") == "Squid");
        CHECK(value_of(theirs, "capacity") == "1552");
        CHECK(keys_in(value_of(theirs, "keys, estimated")) == doctest::Approx(1551).epsilon(0.06));
    }

    TEST_CASE("what is no digest says why; a delta is none by itself") {
        CHECK(read_any({}).error() == filter::squid_errc::truncated);
        const std::vector<std::byte> garbage(500, std::byte{1});
        CHECK(read_any(garbage).has_error());
        const auto size = filter::digest_size(1000, 0.01);
        const auto delta = filter::encode_delta(digest_of_keys(size, 0, 100, 1),
                                                digest_of_keys(size, 0, 110, 2));
        CHECK(read_any(*delta).error() == filter::digest_errc::is_delta);
    }

    TEST_CASE("a URL is tested under its secret, and under no other") {
        const auto secret = *fleet_secret::from_content(std::string(32, 'x'));
        filter::standard_bloom bits{filter::digest_size(100, 1e-4)};
        bits.insert(key_of(name_of("http://a/b", secret), secret));
        const auto wire = filter::encode(filter::digest::of(
            bits, {.seed = secret.id(), .generation = {.epoch = 1, .counter = 1}, .keys = 1}));
        const auto read = read_any(wire);
        REQUIRE(read.has_value());
        CHECK(lists(*read, "http://a/b", secret) == true);
        CHECK(lists(*read, "http://a/c", secret) == false);
        CHECK(lists(*read, "http://a/b", fleet_secret::none()) == std::nullopt);
        const auto urls = filter::test::squid_lines("digest-small.urls");
        CHECK(lists(squid("digest-small.bin"), urls.front(), secret) == true);
    }

    TEST_CASE("two digests whose sizes fold to one are compared by their bits") {
        for (const unsigned times : {1u, 2u, 8u}) {
            CAPTURE(times);
            const auto lines = compare(ours(0, 10'000, times), ours(4000, 12'000));
            REQUIRE(lines.has_value());
            CHECK(keys_in(value_of(*lines, "keys in either")) ==
                  doctest::Approx(12'000).epsilon(0.03));
            CHECK(keys_in(value_of(*lines, "keys in both")) ==
                  doctest::Approx(6'000).epsilon(0.06));
            CHECK(keys_in(value_of(*lines, "in the first alone")) ==
                  doctest::Approx(4'000).epsilon(0.08));
            CHECK(keys_in(value_of(*lines, "in the second alone")) ==
                  doctest::Approx(2'000).epsilon(0.12));
        }
        CHECK_FALSE(compare(ours(0, 10, 2), ours(0, 10, 3)));
        CHECK(compare(squid("digest-1500.bin"), squid("digest-1500.bin")).has_value());
        CHECK_FALSE(compare(ours(0, 10), squid("digest-1500.bin")));
        CHECK_FALSE(compare(squid("digest-1500.bin"), squid("digest-small.bin")));
    }
}

}  // namespace reprise::proxy::peer::test::of_any_digest
