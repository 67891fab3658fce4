#include "proxy/base/byte_sample.hpp"
#include "proxy/base/hosts_by_bytes.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <string>

namespace reprise::proxy::test::of_hosts_by_bytes {

TEST_SUITE_BEGIN("base/hosts_by_bytes");

TEST_CASE("the first requests are all looked at, for what they are") {
    byte_sample of;
    CHECK(of.weight_of(0) == 0);
    for (const std::uint64_t bytes : {1'000, 700, 50'000, 300}) {
        CHECK(of.weight_of(bytes) == bytes);
    }
}

TEST_CASE("few are looked at later, and no byte is lost") {
    byte_sample of;
    constexpr unsigned requests = 1'000'000;
    constexpr std::uint64_t bytes = 10'000;
    std::uint64_t told = 0;
    unsigned looked_at = 0;
    for (unsigned i = 0; i < requests; ++i) {
        const auto weight = of.weight_of(bytes);
        told += weight;
        looked_at += weight != 0 ? 1 : 0;
    }
    // 4 GiB are reached after 430,000: a thousand times ln(430,000), then one for each 4 MiB.
    CHECK(looked_at < 18'000);
    CHECK(looked_at > 8'000);
    CHECK(told <= requests * bytes);
    CHECK(told >= requests * bytes - 2 * byte_sample::largest_threshold);
}

TEST_CASE("a host's share of what is told is its share of the bytes, whatever the pattern") {
    struct pattern {
        std::array<std::uint64_t, 4> bytes;  // of four hosts, one after the other
    };
    for (const auto& one : {pattern{{1'024, 1'024, 1'024, 1'024}},
                            pattern{{100, 3'000, 20'000, 900}},
                            pattern{{500, 60'000'000, 4'000, 4'000}}}) {
        byte_sample of;
        std::array<std::uint64_t, 4> told{};
        std::uint64_t all = 0;
        constexpr unsigned rounds = 400'000;
        for (unsigned i = 0; i < rounds; ++i) {
            for (std::size_t host = 0; host < told.size(); ++host) {
                told[host] += of.weight_of(one.bytes[host]);
                all += one.bytes[host];
            }
        }
        for (std::size_t host = 0; host < told.size(); ++host) {
            const double is = static_cast<double>(one.bytes[host]) * rounds;
            CAPTURE(host);
            CAPTURE(one.bytes[host]);
            // Within a fiftieth of all, far beyond what lots of a thousand draws would miss by.
            CHECK(std::abs(static_cast<double>(told[host]) - is) < static_cast<double>(all) / 50);
        }
    }
}

TEST_CASE("one large answer stands for itself alone") {
    byte_sample of;
    for (unsigned i = 0; i < 100'000; ++i) {
        (void)of.weight_of(1'000);
    }
    CHECK(of.weight_of(1 << 30) == 1 << 30);
}

TEST_CASE("hosts are told the heaviest first, with what the store gave") {
    hosts_by_bytes some;
    some.note("a.test", 100, false);
    some.note("b.test", 500, true);
    some.note("a.test", 50, true);
    const auto all = some.figures();
    REQUIRE(all.size() == 2);
    CHECK(all[0].host == "b.test");
    CHECK(all[0].bytes == 500);
    CHECK(all[0].from_store == 500);
    CHECK(all[1].bytes == 150);
    CHECK(all[1].from_store == 50);
}

TEST_CASE("a newcomer in a full table begins with its own bytes") {
    hosts_by_bytes some;
    for (std::size_t i = 0; i < hosts_by_bytes::most; ++i) {
        some.note("host" + std::to_string(i), 1'000, true);
    }
    some.note("new.test", 5'000, false);
    const auto all = some.figures();
    REQUIRE(all.size() == hosts_by_bytes::most);
    CHECK(all[0].host == "new.test");
    CHECK(all[0].bytes == 5'000);
    CHECK(all[0].from_store == 0);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::test::of_hosts_by_bytes
