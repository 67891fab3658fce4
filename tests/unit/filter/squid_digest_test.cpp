#include "filter/squid_digest.hpp"
#include "filter/squid_key.hpp"
#include "tests/unit/filter/squid_fixtures.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>

namespace reprise::filter {

using test::squid_bytes;
using test::squid_fixtures;
using test::squid_lines;

namespace {

using wire_bytes = std::vector<std::byte>;

squid_digest fixture(const std::string& name) {
    return squid_digest::decode(squid_bytes(name + ".bin")).value();
}

void put_big_endian(wire_bytes& wire, std::size_t at, std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
        wire[at + i] = static_cast<std::byte>(value >> (8 * (bytes - 1 - i)));
    }
}

wire_bytes with(std::size_t at, std::uint64_t value, std::size_t bytes) {
    auto wire = squid_bytes("digest-small.bin");
    put_big_endian(wire, at, value, bytes);
    return wire;
}

boost::system::error_code squid_refusal(const wire_bytes& wire) {
    return squid_digest::decode(wire).error();
}

/// A digest of this size, its first `on` bits on.
wire_bytes made(squid_size size, std::uint64_t on) {
    wire_bytes wire(squid_block_bytes + size.mask_bytes());
    put_big_endian(wire, 0, 5, 2);
    put_big_endian(wire, 2, 3, 2);
    put_big_endian(wire, 4, size.capacity, 4);
    put_big_endian(wire, 16, size.mask_bytes(), 4);
    put_big_endian(wire, 20, size.bits_per_entry, 1);
    put_big_endian(wire, 21, 4, 1);
    for (std::uint64_t i = 0; i < on; ++i) {
        wire[squid_block_bytes + i / 8] |= static_cast<std::byte>(1U << (i % 8));
    }
    return wire;
}

std::uint64_t false_positives(const squid_digest& asked, std::uint64_t count) {
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        found += asked.may_contain(squid_key_of("http://x.invalid/" + std::to_string(i))) ? 1 : 0;
    }
    return found;
}

}  // namespace

TEST_SUITE("filter/squid_digest") {
    TEST_CASE("every URL that a Squid listed is found") {
        for (const auto& one : squid_fixtures()) {
            CAPTURE(one.name);
            const auto read = fixture(one.name);
            const auto urls = squid_lines(one.name + ".urls");
            CHECK(urls.size() == one.entries);
            for (const auto& url : urls) {
                CAPTURE(url);
                CHECK(read.may_contain(squid_key_of(url)));
            }
        }
    }

    TEST_CASE("the control block is read") {
        for (const auto& one : squid_fixtures()) {
            CAPTURE(one.name);
            const auto read = fixture(one.name);
            CHECK(read.size() == squid_size{one.capacity, one.bits_per_entry});
            CHECK(read.reported() == squid_report{one.entries, 0});
            CHECK(read.bytes() == squid_bytes(one.name + ".bin").size() - 128);
        }
        // After a resize Squid's count is not of this mask.
        CHECK(fixture("digest-kinds").reported().added == 114);
        CHECK(fixture("digest-kinds").estimated_keys() < 70);
    }

    TEST_CASE("the share of bits on is as observed") {
        CHECK(fixture("digest-small").fill() == doctest::Approx(0.5375));
        CHECK(fixture("digest-1500").fill() == doctest::Approx(0.5534).epsilon(0.0001));
        CHECK(fixture("digest-bpe8").fill() == doctest::Approx(0.3983).epsilon(0.0002));
    }

    TEST_CASE("its bits tell its entries") {
        // One sigma is about sqrt(bits) / 4 at this fill: 4 % of the small ones.
        for (const auto& one : squid_fixtures()) {
            CAPTURE(one.name);
            CHECK(fixture(one.name).estimated_keys() ==
                  doctest::Approx(static_cast<double>(one.entries)).epsilon(0.12));
        }
    }

    TEST_CASE("strangers are found as often as predicted: the share of bits on to the fourth") {
        const std::map<std::string, double> predicted{
            {"digest-small", 835}, {"digest-1500", 938}, {"digest-bpe8", 252}};
        for (const auto& [name, of_ten_thousand] : predicted) {
            CAPTURE(name);
            const auto read = fixture(name);
            CHECK(read.false_positive_rate() * 10'000 ==
                  doctest::Approx(of_ten_thousand).epsilon(0.002));
            const auto found = static_cast<double>(false_positives(read, 10'000));
            const double rate = of_ten_thousand / 10'000;
            CHECK(std::abs(found - of_ten_thousand) < 4 * std::sqrt(10'000 * rate * (1 - rate)));
        }
    }

    TEST_CASE("what a Squid lists and leaves out is found and not found") {
        const auto read = fixture("digest-kinds");
        unsigned judged = 0;
        for (const auto& line : squid_lines("digest-kinds.txt")) {
            CAPTURE(line);
            std::istringstream fields{line.substr(std::min<std::size_t>(line.size(), 56))};
            std::string verdict, method, mark, url;
            if (!(fields >> verdict >> method >> mark >> url)) {
                continue;  // the first of two lines
            }
            REQUIRE((verdict == "in" || verdict == "out"));
            const auto key = squid_raw_key(url,
                                           method == "HEAD" ? squid_method::head
                                                            : squid_method::get,
                                           mark == "-" ? "" : mark);
            CHECK(read.may_contain(key) == (verdict == "in"));
            ++judged;
        }
        CHECK(judged == 26);
    }

    TEST_CASE("what Squid took from others is taken") {
        for (const auto& [current, required] : {std::pair{4, 3}, {3, 3}, {9, 5}}) {
            auto wire = with(0, static_cast<std::uint64_t>(current), 2);
            put_big_endian(wire, 2, static_cast<std::uint64_t>(required), 2);
            CHECK(squid_digest::decode(wire).has_value());
        }
        CHECK(squid_digest::decode(with(8, 0, 4)).has_value());
        CHECK(squid_digest::decode(with(8, 1'000'000, 4)).has_value());
        CHECK(squid_digest::decode(with(22, 0xffff, 2)).has_value());
        CHECK(squid_digest::decode(with(120, UINT64_MAX, 8)).has_value());
        CHECK(squid_digest::decode(made({100, 8}, 200)).has_value());
        CHECK(squid_digest::decode(made({100, 127}, 200)).has_value());
        CHECK(squid_digest::decode(made({2'097'152, 8}, 200)).has_value());
        CHECK(squid_digest::decode(made({100, 8}, 504)).has_value());  // 63 %
        CHECK(squid_digest::decode(made({100, 8}, 520)).has_value());  // 65 %
    }

    TEST_CASE("what Squid refused, and what made it abort, is refused by name") {
        auto wire = with(0, 2, 2);
        CHECK(squid_refusal(wire) == squid_errc::unknown_version);
        put_big_endian(wire, 2, 2, 2);
        CHECK(squid_refusal(wire) == squid_errc::unknown_version);
        CHECK(squid_refusal(with(2, 6, 2)) == squid_errc::unknown_version);
        wire = with(0, 3, 2);
        put_big_endian(wire, 2, 4, 2);
        CHECK(squid_refusal(wire) == squid_errc::unknown_version);
        wire = with(0, 6, 2);
        put_big_endian(wire, 2, 6, 2);
        CHECK(squid_refusal(wire) == squid_errc::unknown_version);
        CHECK(squid_refusal(with(20, 0, 1)) == squid_errc::bad_bits_per_entry);
        CHECK(squid_refusal(with(20, 128, 1)) == squid_errc::bad_bits_per_entry);
        CHECK(squid_refusal(with(20, 255, 1)) == squid_errc::bad_bits_per_entry);
        CHECK(squid_refusal(with(21, 3, 1)) == squid_errc::bad_hash_count);
        CHECK(squid_refusal(with(21, 5, 1)) == squid_errc::bad_hash_count);
        CHECK(squid_refusal(with(4, 0, 4)) == squid_errc::bad_size);
        CHECK(squid_refusal(with(4, 113 * 2, 4)) == squid_errc::bad_size);
        CHECK(squid_refusal(with(16, 0, 4)) == squid_errc::bad_size);
        CHECK(squid_refusal(with(16, 71, 4)) == squid_errc::bad_size);
        CHECK(squid_refusal(made({100, 8}, 521)) == squid_errc::saturated);
        CHECK(squid_refusal(made({100, 8}, 534)) == squid_errc::saturated);  // 66.75 %
        CHECK(squid_refusal(made({100, 8}, 800)) == squid_errc::saturated);

        auto longer = squid_bytes("digest-small.bin");
        longer.resize(longer.size() + 64);
        CHECK(squid_refusal(longer) == squid_errc::trailing_bytes);
    }

    TEST_CASE("every proper prefix is refused as cut short") {
        const auto wire = squid_bytes("digest-small.bin");
        for (std::size_t cut = 0; cut < wire.size(); ++cut) {
            CAPTURE(cut);
            CHECK(squid_refusal({wire.begin(), wire.begin() + static_cast<long>(cut)}) ==
                  squid_errc::truncated);
        }
    }

    TEST_CASE("a mask above the reader's limit, or above Squid's int, is refused unread") {
        const auto wire = squid_bytes("digest-small.bin");
        CHECK(squid_digest::decode(wire, 70).has_value());
        CHECK(squid_digest::decode(wire, 69).error() == squid_errc::over_limit);
        CHECK(squid_refusal(with(4, UINT32_MAX, 4)) == squid_errc::over_limit);
        auto large = with(4, 429'496'728, 4);  // 5 bits each: 2^31 - 8, and 7 more is 2^31 - 1
        put_big_endian(large, 16, 268'435'455, 4);
        CHECK(squid_refusal(large) == squid_errc::over_limit);
    }

    TEST_CASE("encoding what was decoded gives the same bytes") {
        for (const auto* name : {"digest-small",
                                 "digest-1500",
                                 "digest-bpe8",
                                 "digest-icons-only",
                                 "digest-kinds",
                                 "handbuilt"}) {
            CAPTURE(name);
            const auto read = fixture(name);
            const auto again = encode_squid_digest(read.size(), read.reported(), read.mask());
            REQUIRE(again.has_value());
            CHECK(*again == squid_bytes(std::string{name} + ".bin"));
        }
    }

    TEST_CASE("what Squid would refuse is not encoded") {
        const auto why = [](squid_size size, std::size_t on) {
            std::vector<std::byte> mask(size.mask_bytes());
            std::fill_n(mask.begin(), on, std::byte{0xff});
            return encode_squid_digest(size, {}, mask).error();
        };
        CHECK_FALSE(why({80, 8}, 52).failed());  // 65 %
        CHECK(why({80, 8}, 53) == squid_errc::saturated);
        CHECK(why({80, 0}, 0) == squid_errc::bad_bits_per_entry);
        CHECK(why({80, 128}, 0) == squid_errc::bad_bits_per_entry);
        CHECK(why({0, 5}, 0) == squid_errc::bad_size);
        CHECK(squid_size{429'496'727, 5}.judge() == boost::system::error_code{});
        CHECK(squid_size{429'496'728, 5}.judge() == squid_errc::over_limit);
        CHECK(squid_size{UINT32_MAX, 127}.judge() == squid_errc::over_limit);
    }

    TEST_CASE("counts above an int are reported as the largest int") {
        const auto wire = encode_squid_digest({1, 8}, {UINT64_MAX, 7}, std::vector<std::byte>(1));
        CHECK(squid_digest::decode(*wire)->reported() == squid_report{0x7fffffff, 7});
    }

    TEST_CASE("capacity follows the entries once they differ by more than a tenth") {
        CHECK(squid_capacity(0, 0, 5) == 1);
        CHECK(squid_capacity(1'000, 0, 5) == 1'000);
        CHECK(squid_capacity(1'000, 1'000, 5) == 1'000);
        CHECK(squid_capacity(1'000, 1'100, 5) == 1'100);
        CHECK(squid_capacity(1'000, 1'101, 5) == 1'000);
        CHECK(squid_capacity(1'000, 900, 5) == 900);
        CHECK(squid_capacity(1'000, 899, 5) == 1'000);
        CHECK(squid_capacity(UINT64_MAX, 0, 5) == 429'496'727);
        for (const unsigned bits : {1U, 5U, 8U, 127U}) {
            CHECK_FALSE(squid_size{squid_capacity(UINT64_MAX, 0, bits), bits}.judge().failed());
            CHECK_FALSE(
                squid_size{squid_capacity(UINT64_MAX, UINT32_MAX, bits), bits}.judge().failed());
        }
    }

    TEST_CASE("every reason has words of its own") {
        std::vector<std::string> all;
        for (int code = 1; code <= static_cast<int>(squid_errc::saturated); ++code) {
            all.push_back(make_error_code(static_cast<squid_errc>(code)).message());
        }
        std::sort(all.begin(), all.end());
        CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
        CHECK(std::find(all.begin(), all.end(), "unknown error") == all.end());
    }
}

}  // namespace reprise::filter
