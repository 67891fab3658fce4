#include "proxy/peer/fleet_wire.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <string>
#include <vector>

namespace reprise::proxy::peer::test::of_fleet_wire {
namespace {

using namespace std::chrono_literals;
using bytes = std::vector<std::byte>;

node_record record_of(std::string name) {
    node_record out;
    out.name = std::move(name);
    out.epoch = 0x0123456789abcdef;
    out.sequence = 42;
    out.age = 1500ms;
    out.figures = {.up_ms = 1,
                   .requests = 2,
                   .hits = 3,
                   .siblings = 4,
                   .joined = 5,
                   .bytes = 6,
                   .bytes_from_store = 7,
                   .bytes_from_siblings = 8,
                   .bytes_joined = 9,
                   .objects = 10,
                   .listed = 11,
                   .sights_told = std::numeric_limits<std::uint64_t>::max()};
    return out;
}

bytes two() {
    return encode_fleet(std::vector{record_of("ann"), record_of("ben")});
}

// Where the first record of two() has what.
constexpr std::size_t version_at = 4, count_at = 6, length_at = 8, name_at = 11;

void expect(const bytes& wire, fleet_fault why) {
    const auto read = decode_fleet(wire);
    REQUIRE(read.has_error());
    CHECK(to_string(read.error()) == to_string(why));
}

}  // namespace

TEST_SUITE("peer/fleet_wire") {
    TEST_CASE("what is written is read as it was, an empty set and the largest too") {
        CHECK(decode_fleet(encode_fleet({}))->empty());
        std::vector<node_record> all;
        for (unsigned i = 0; i < most_fleet_nodes; ++i) {
            all.push_back(record_of("n" + std::to_string(1000 + i) + std::string(59, 'x')));
        }
        const auto wire = encode_fleet(all);
        CHECK(wire.size() == most_fleet_bytes_written);
        CHECK(*decode_fleet(wire) == all);
    }

    TEST_CASE(
        "an age that is below nothing or beyond the field is told as the nearest that is not") {
        auto young = record_of("young"), old = record_of("old");
        young.age = -5ms;
        old.age = std::chrono::hours{24 * 100};
        const auto read = decode_fleet(encode_fleet(std::vector{old, young}));
        CHECK(read->at(0).age == std::chrono::milliseconds{0xffffffff});
        CHECK(read->at(1).age == 0ms);
    }

    TEST_CASE("every proper beginning of a set is refused as truncated") {
        const auto wire = two();
        for (std::size_t cut = 0; cut < wire.size(); ++cut) {
            CAPTURE(cut);
            expect(bytes(wire.begin(), wire.begin() + static_cast<std::ptrdiff_t>(cut)),
                   fleet_fault::truncated);
        }
    }

    TEST_CASE("a set with one thing wrong is refused by that thing's name") {
        auto wire = two();
        wire[0] = std::byte{'X'};
        expect(wire, fleet_fault::not_figures);
        wire = two();
        wire[version_at] = std::byte{2};
        expect(wire, fleet_fault::other_version);
        wire = two();
        wire[count_at + 1] = std::byte{2};
        expect(wire, fleet_fault::too_many);
        wire = two();
        wire.push_back(std::byte{0});
        expect(wire, fleet_fault::trailing);
        wire = two();
        wire[name_at - 1] = std::byte{200};
        expect(wire, fleet_fault::bad_record);
        expect(encode_fleet(std::vector{record_of("ann"), record_of("ann")}),
               fleet_fault::out_of_order);
        expect(encode_fleet(std::vector{record_of("ben"), record_of("ann")}),
               fleet_fault::out_of_order);
    }

    TEST_CASE("a name that is no pseudonym, and might break a line or a label, is refused") {
        for (const char c : {' ', '\n', '"', '\\', '\0', '\x7f', '\xc3', '1', '-', '<'}) {
            CAPTURE(static_cast<int>(c));
            auto wire = two();
            wire[name_at] = static_cast<std::byte>(c);
            expect(wire, fleet_fault::bad_name);
        }
        CHECK(is_node_name("reprise-abc.d_2"));
        CHECK(is_node_name(std::string(64, 'a')));
        CHECK_FALSE(is_node_name(std::string(65, 'a')));
        CHECK_FALSE(is_node_name(""));
    }

    TEST_CASE("what a later release adds to a record is passed over") {
        auto wire = two();
        const auto length = std::to_integer<unsigned>(wire[length_at]);
        const auto end = static_cast<std::ptrdiff_t>(length_at + 2 + length);
        wire.insert(wire.begin() + end, 7, std::byte{0x55});
        wire[length_at] = static_cast<std::byte>(length + 7);
        const auto read = decode_fleet(wire);
        REQUIRE(read.has_value());
        CHECK(*read == std::vector{record_of("ann"), record_of("ben")});
    }

    TEST_CASE("a record that is longer than any may be is refused") {
        auto wire = two();
        const auto length = std::to_integer<unsigned>(wire[length_at]);
        wire.insert(wire.begin() + static_cast<std::ptrdiff_t>(length_at + 2 + length),
                    600 - length,
                    std::byte{0});
        wire[length_at] = static_cast<std::byte>(600 & 0xff);
        wire[length_at + 1] = static_cast<std::byte>(600 >> 8);
        expect(wire, fleet_fault::bad_record);
    }
}

}  // namespace reprise::proxy::peer::test::of_fleet_wire
