#include "proxy/cache/uncacheable.hpp"

#include <doctest/doctest.h>

namespace reprise::proxy::cache::test::of_uncacheable {

using namespace std::chrono_literals;

TEST_SUITE_BEGIN("cache/uncacheable");

namespace {
constexpr reprise::filter::key_hash one{0x1234, 0xabcdef0123456789};
constexpr reprise::filter::key_hash same_slot{0x1234, 0x1111111111111111};
const steady_time start{std::chrono::hours{1000}};
}  // namespace

TEST_CASE("a key is remembered for as long as was said, and no longer") {
    uncacheable_keys keys;
    CHECK_FALSE(keys.has(one, start));
    keys.note(one, http::storability::no_store, start, 120s);
    CHECK(keys.has(one, start));
    CHECK(keys.has(one, start + 119s));
    CHECK_FALSE(keys.has(one, start + 120s));
    CHECK_FALSE(keys.has(one, start + std::chrono::hours{24 * 60}));
}

TEST_CASE("an answer speaks for the next ones only where it says so itself") {
    using http::storability;
    for (const auto verdict : {storability::no_store,
                               storability::private_response,
                               storability::vary_any,
                               storability::set_cookie,
                               storability::useless}) {
        CAPTURE(http::to_string(verdict));
        CHECK(speaks_for_next(verdict, 200));
        CHECK(speaks_for_next(verdict, 404));
        for (const unsigned passing : {408U, 425U, 429U, 500U, 502U, 503U, 504U, 599U}) {
            CAPTURE(passing);
            CHECK_FALSE(speaks_for_next(verdict, passing));
        }
    }
    CHECK(speaks_for_next(storability::no_lifetime, 302));
    CHECK_FALSE(speaks_for_next(storability::no_lifetime, 403));
    for (const auto of_request : {storability::storable,
                                  storability::method,
                                  storability::no_store_request,
                                  storability::partial,
                                  storability::status,
                                  storability::authorization}) {
        CHECK_FALSE(speaks_for_next(of_request, 200));
    }
}

TEST_CASE("a key that could be stored after all is forgotten") {
    uncacheable_keys keys;
    keys.note(one, http::storability::no_store, start, 120s);
    keys.forget(same_slot);
    CHECK(keys.has(one, start));
    keys.forget(one);
    CHECK_FALSE(keys.has(one, start));
}

TEST_CASE("two keys of one slot displace each other and are never taken for each other") {
    uncacheable_keys keys;
    keys.note(one, http::storability::no_store, start, 120s);
    CHECK_FALSE(keys.has(same_slot, start));
    keys.note(same_slot, http::storability::set_cookie, start, 120s);
    CHECK(keys.has(same_slot, start));
    CHECK_FALSE(keys.has(one, start));
}

TEST_CASE("why it could not be stored is remembered with the key") {
    using http::storability;
    uncacheable_keys keys;
    CHECK_FALSE(keys.why(one, start));
    for (const auto why : {storability::no_store, storability::useless, storability::set_cookie}) {
        keys.note(one, why, start, 120s);
        CHECK(keys.why(one, start + 119s) == why);
        CHECK_FALSE(keys.why(one, start + 120s));
        CHECK_FALSE(keys.why(same_slot, start));
    }
}

TEST_CASE("what was too large is remembered, and is no reason to go alone") {
    uncacheable_keys keys;
    CHECK_FALSE(keys.was_too_large(one, start));
    keys.note_too_large(one, start, 120s);
    CHECK(keys.was_too_large(one, start + 119s));
    CHECK_FALSE(keys.was_too_large(one, start + 120s));
    CHECK_FALSE(keys.was_too_large(same_slot, start));
    CHECK_FALSE(keys.has(one, start));
    CHECK_FALSE(keys.why(one, start));
    keys.note(one, http::storability::no_store, start, 120s);
    CHECK_FALSE(keys.was_too_large(one, start));
    keys.note_too_large(one, start, 120s);
    keys.forget(one);
    CHECK_FALSE(keys.was_too_large(one, start));
}

TEST_CASE("what is over stays over, however long nobody asks for it") {
    constexpr auto day = std::chrono::hours{24};
    for (const steady_time noted : {start, steady_time{std::chrono::seconds{(1 << 24) - 5}}}) {
        uncacheable_keys keys;
        keys.note(one, http::storability::no_store, noted, 10s);
        CHECK(keys.has(one, noted + 9s));
        for (int days = 0; days < 1000; days += 10) {
            CAPTURE(days);
            CHECK_FALSE(keys.has(one, noted + 10s + days * day));
        }
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::cache::test::of_uncacheable
