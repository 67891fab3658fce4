#include "proxy/fetch/freshening.hpp"
#include "tests/unit/fetch/arrivals.hpp"

#include <string>

using namespace std::chrono_literals;

namespace reprise::proxy::fetch::test::of_freshening {

namespace {

/// What is stored, once a 304 with these fields has come for it.
cache::stored_ptr freshened(node& at,
                            const std::string& fields,
                            word_of whom,
                            std::optional<http::seconds> at_most = std::nullopt,
                            const std::string& request = "",
                            const std::string& stored_with = "") {
    {
        arrival first{at};
        first.order->replaces = true;
        first.head(of_five + "ETag: \"1\"\r\n" + stored_with);
        first.body("hello");
        first.end();
    }
    arrival one{at, "GET http://a.example/x", request};
    const auto& order = *one.order;
    const auto stored = at.common.store.find(order.key, order.url, {}).response;
    REQUIRE(stored);
    one.order->what = wanted::validating{stored};
    received came;
    const auto text = "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n" + fields + "\r\n";
    REQUIRE(http::parse_response_head(text, came.head, {}).state == http::head_state::done);
    came.requested = came.came = wall_now();
    came.resident_requested = came.resident_came = resident_now();
    came.by = whom;
    came.at_most = at_most;
    const auto fresh = freshening{at.w, order, came, one.kept.begun_at()}.by_not_modified();
    REQUIRE(fresh);
    return at.common.store.find(order.key, order.url, {}).response;
}

}  // namespace

TEST_SUITE_BEGIN("fetch/freshening");

TEST_CASE(
    "a sibling's 304 is believed for no longer than its max_age, an origin's for what it says") {
    const std::string long_lived = "Cache-Control: max-age=31536000\r\n";
    node by_origin, by_sibling;
    const auto origins = freshened(by_origin, long_lived, word_of::origin);
    REQUIRE(origins);
    CHECK(origins->freshness().lifetime == 31'536'000s);
    const auto siblings = freshened(by_sibling, long_lived, word_of::sibling, 60s);
    REQUIRE(siblings);
    CHECK(siblings->freshness().lifetime == 60s);
}

TEST_CASE("a sibling's 304 does not take back what the origin allowed to be stored") {
    auto options = with_memory(1u << 20);
    options.caching.set_cookie = config::cookie_storing::explicit_lifetime;
    node at{options};
    CHECK(freshened(
        at, "Cache-Control: max-age=600\r\n", word_of::sibling, {}, "", "Set-Cookie: a=b\r\n"));
}

TEST_CASE("what a sibling that is not to be kept says freshens nothing") {
    node at;
    const auto kept = freshened(
        at, "Cache-Control: max-age=600\r\nX-More: 1\r\n", word_of::unkept_sibling);
    REQUIRE(kept);
    CHECK(kept->freshness().lifetime == 60s);
    CHECK_FALSE(http::has_line(kept->head(), "X-More"));
}

TEST_CASE(
    "what is said to whoever logged in freshens what all may have only where that is allowed") {
    const auto lifetime_after = [](const std::string& fields, const std::string& request) {
        node at;
        const auto kept = freshened(at, fields, word_of::origin, std::nullopt, request);
        REQUIRE(kept);
        return kept->freshness().lifetime;
    };
    const std::string ann = "Authorization: Bearer ann\r\n";
    CHECK(lifetime_after("Cache-Control: max-age=600\r\n", "") == 600s);
    CHECK(lifetime_after("Cache-Control: max-age=600\r\n", ann) == 60s);
    CHECK(lifetime_after("Cache-Control: max-age=600, public\r\n", ann) == 600s);
    CHECK(lifetime_after("Cache-Control: s-maxage=600\r\n", ann) == 600s);
    CHECK(lifetime_after("Cache-Control: max-age=600, must-revalidate\r\n", ann) == 600s);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::fetch::test::of_freshening
