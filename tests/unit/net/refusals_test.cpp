#include "proxy/net/refusals.hpp"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

namespace reprise::proxy::net::test::of_refusals_test {
namespace {

using namespace std::chrono_literals;

address_bytes client(unsigned number) {
    address_bytes made{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0};
    made[14] = static_cast<std::uint8_t>(number >> 8);
    made[15] = static_cast<std::uint8_t>(number);
    return made;
}

constexpr steady_time begin{24h * 400};

}  // namespace

TEST_SUITE("net/refusals") {

    TEST_CASE("a client's refusal is of that client and that host, until its time is over") {
        refusals table;
        CHECK_FALSE(table.has_client(client(1), "a.test", begin));
        CHECK(table.note_client(client(1), "a.test", begin + 1h, begin));
        CHECK(table.has_client(client(1), "a.test", begin));
        CHECK(table.has_client(client(1), "a.test", begin + 59min));
        CHECK_FALSE(table.has_client(client(1), "a.test", begin + 1h));
        CHECK_FALSE(table.has_client(client(2), "a.test", begin));
        CHECK_FALSE(table.has_client(client(1), "b.test", begin));
        CHECK_FALSE(table.has_host("a.test", 443, begin));
    }

    TEST_CASE("a refusal that is repeated is known, and ends when the last one says") {
        refusals table;
        CHECK(table.note_client(client(1), "a.test", begin + 1h, begin));
        CHECK_FALSE(table.note_client(client(1), "a.test", begin + 90min, begin + 30min));
        CHECK(table.has_client(client(1), "a.test", begin + 89min));
        CHECK(table.note_client(client(1), "a.test", begin + 4h, begin + 3h));
    }

    TEST_CASE("what is over stays over, however long the process runs") {
        refusals table;
        CHECK(table.note_client(client(1), "a.test", begin + 1h, begin));
        CHECK(table.note_host("a.test", 443, begin));
        table.note_taken(client(1), "a.test", begin);
        for (const auto days : {1, 96, 98, 100, 150, 193, 195, 300, 4'000}) {
            CAPTURE(days);
            const auto later = begin + days * 24h;
            CHECK_FALSE(table.has_client(client(1), "a.test", later));
            CHECK_FALSE(table.has_host("a.test", 443, later));
            CHECK(table.is_refusal(client(1), "a.test", later));
        }
        CHECK(table.note_client(client(1), "a.test", begin + 24h * 190, begin + 24h * 100));
        CHECK(table.has_client(client(1), "a.test", begin + 24h * 189));
        CHECK_FALSE(table.has_client(client(1), "a.test", begin + 24h * 190));
    }

    TEST_CASE("one connection that is left silently within a minute of a request refuses nothing") {
        refusals table;
        table.note_taken(client(1), "a.test", begin);
        CHECK(table.is_refusal(client(2), "a.test", begin));
        CHECK(table.is_refusal(client(1), "b.test", begin));
        CHECK_FALSE(table.is_refusal(client(1), "a.test", begin + 59s));
        CHECK(table.is_refusal(client(1), "a.test", begin + 59s));  // the second one in a row
        table.note_taken(client(1), "a.test", begin + 60s);
        CHECK_FALSE(table.is_refusal(client(1), "a.test", begin + 61s));
        table.note_taken(client(1), "a.test", begin + 62s);
        CHECK(table.is_refusal(client(1), "a.test", begin + 122s));
        CHECK_FALSE(table.has_client(client(1), "a.test", begin));
    }

    TEST_CASE("a host is closed for everybody for an hour") {
        refusals table;
        CHECK(table.note_host("a.test", 443, begin));
        CHECK(table.has_host("a.test", 443, begin + 59min));
        CHECK_FALSE(table.has_host("a.test", 443, begin + 1h));
        CHECK_FALSE(table.has_host("b.test", 443, begin));
        CHECK_FALSE(table.has_host("a.test", 8443, begin));
        CHECK_FALSE(table.has_client(client(1), "a.test", begin));
    }

    TEST_CASE("whatever one client refuses, no host is closed for another") {
        refusals table;
        for (unsigned i = 0; i < 100'000; ++i) {
            const auto host = "h" + std::to_string(i % 5'000) + ".test";
            static_cast<void>(table.note_client(client(1), host, begin + 24h * 30, begin));
        }
        for (unsigned i = 0; i < 5'000; ++i) {
            const auto host = "h" + std::to_string(i) + ".test";
            CHECK_FALSE(table.has_host(host, 443, begin));
            CHECK_FALSE(table.has_client(client(2), host, begin));
        }
    }

    TEST_CASE("refusals by the thousand are remembered, and where too many meet the last stay") {
        refusals table;
        const auto many = [&](unsigned count) {
            unsigned kept = 0;
            for (unsigned i = 0; i < count; ++i) {
                kept += table.has_client(client(i), "a.test", begin) ? 1 : 0;
            }
            return kept;
        };
        for (unsigned i = 0; i < 4'000; ++i) {
            static_cast<void>(table.note_client(client(i), "a.test", begin + 1h, begin));
        }
        // A quarter of the places: on average one name for four of them.
        CHECK(many(4'000) > 3'900);
        for (unsigned i = 0; i < 60'000; ++i) {
            static_cast<void>(table.note_client(client(i), "a.test", begin + 1h, begin));
            CHECK(table.has_client(client(i), "a.test", begin));
        }
        CHECK(many(60'000) <= 16'384);
    }

    TEST_CASE("threads note and ask at once") {
        refusals table;
        std::vector<std::thread> threads;
        for (unsigned thread = 0; thread < 4; ++thread) {
            threads.emplace_back([&table, thread] {
                for (unsigned i = 0; i < 1'000; ++i) {
                    table.note_client(client(thread), std::to_string(i), begin + 1h, begin);
                    static_cast<void>(table.has_client(client(i), "0", begin));
                    table.note_host(std::to_string(i % 8), 443, begin);
                }
            });
        }
        for (auto& one : threads) {
            one.join();
        }
        CHECK(table.has_host("7", 443, begin));
        // A quarter of the places, under a secret: of some buckets more is wanted than they have.
        unsigned known = 0;
        for (unsigned thread = 0; thread < 4; ++thread) {
            for (unsigned i = 0; i < 1'000; ++i) {
                known += table.has_client(client(thread), std::to_string(i), begin) ? 1 : 0;
            }
        }
        CHECK(known > 3'900);
    }

}  // TEST_SUITE

}  // namespace reprise::proxy::net::test::of_refusals_test
