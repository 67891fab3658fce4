#include "proxy/net/distrusted_origins.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace std::chrono_literals;

TEST_SUITE("net/distrusted_origins") {

    TEST_CASE("an origin is distrusted for an hour from when it was last caught, and no other is") {
        distrusted_origins table;
        const auto now = steady_time{} + 500h;
        const auto bad = distrusted_origins::name_of("bad.example", 80, false);
        CHECK_FALSE(table.any());
        CHECK_FALSE(table.has(bad, now));
        CHECK(table.note(bad, now));
        CHECK(table.any());
        CHECK(table.has(bad, now));
        CHECK(table.has(bad, now + 59min));
        CHECK_FALSE(table.has(bad, now + 60min));
        CHECK_FALSE(table.note(bad, now + 30min));
        CHECK(table.has(bad, now + 89min));
        CHECK_FALSE(table.has(bad, now + 90min));
        CHECK(table.note(bad, now + 2h));
        for (const auto& other : {distrusted_origins::name_of("bad.example", 81, false),
                                  distrusted_origins::name_of("bad.example", 80, true),
                                  distrusted_origins::name_of("good.example", 80, false)}) {
            CHECK(other != bad);
            CHECK_FALSE(table.has(other, now + 2h));
        }
    }

    TEST_CASE("an origin that was forgiven stays so, however long the process runs") {
        distrusted_origins table;
        const auto now = steady_time{} + 500h;
        const auto bad = distrusted_origins::name_of("bad.example", 80, false);
        CHECK(table.note(bad, now));
        for (const auto days : {1, 96, 98, 100, 150, 193, 195, 300, 4'000}) {
            CAPTURE(days);
            CHECK_FALSE(table.has(bad, now + days * 24h));
        }
        CHECK(table.note(bad, now + 100 * 24h));
        CHECK(table.has(bad, now + 100 * 24h));
    }

    TEST_CASE("of more origins than there is room for the last caught are known") {
        distrusted_origins table;
        const auto now = steady_time{} + 500h;
        const auto name_of = [](int i) {
            return distrusted_origins::name_of("origin" + std::to_string(i), 80, false);
        };
        constexpr int many = 100'000;
        for (int i = 0; i < many; ++i) {
            (void)table.note(name_of(i), now + std::chrono::milliseconds{i});
        }
        CHECK(table.has(name_of(many - 1), now + 101s));
        int known = 0;
        for (int i = 0; i < many; ++i) {
            known += table.has(name_of(i), now + 101s) ? 1 : 0;
        }
        CHECK(known <= 4096);
        CHECK(known >= 4000);
    }

}  // TEST_SUITE
