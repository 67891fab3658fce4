#include "proxy/fetch/freshening.hpp"
#include "proxy/http/date.hpp"
#include "proxy/http/range.hpp"
#include "tests/unit/fetch/arrivals.hpp"

#include <string>

using namespace std::chrono_literals;

namespace reprise::proxy::fetch::test::of_freshening {

namespace {

/// What is stored, and how a client validates it.
struct validation {
    std::string request{};  ///< fields of the client's own
    word_of whom = word_of::origin;
    std::optional<http::seconds> at_most{};
    std::string stored = of_five;  ///< beside its ETag
    bool inside = false;
    std::uint64_t owner = 0;
    const http::freshness_rules* rules = nullptr;
};

struct validated {
    cache::stored_ptr kept;  ///< what is stored then
    bool for_one_client = false;
};

/// Once a 304 with these fields has come for it.
validated validate(node& at, const std::string& fields, const validation& how) {
    {
        arrival first{at};
        first.order->replaces = true;
        first.order->url_freshness = how.rules;
        first.head(how.stored + "ETag: \"1\"\r\n");
        first.body("hello");
        first.end();
    }
    arrival one{at, "GET http://a.example/x", how.request};
    one.order->inside = how.inside;
    one.order->owner = how.owner;
    one.order->url_freshness = how.rules;
    const auto& order = *one.order;
    const auto stored = at.common.store.find(order.key, order.url, {}).response;
    REQUIRE(stored);
    one.order->what = wanted::validating{stored};
    received came;
    const auto text = "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n" + fields + "\r\n";
    REQUIRE(http::parse_response_head(text, came.head, {}).state == http::head_state::done);
    came.requested = came.came = wall_now();
    came.resident_requested = came.resident_came = resident_now();
    came.by = how.whom;
    came.at_most = how.at_most;
    freshening by{at.w, order, came, one.kept.begun_at()};
    const auto fresh = by.by_not_modified();
    REQUIRE(fresh);
    return {at.common.store.find(order.key, order.url, {}).response, by.is_for_one_client()};
}

cache::stored_ptr freshened(node& at,
                            const std::string& fields,
                            word_of whom,
                            std::optional<http::seconds> at_most = std::nullopt,
                            const std::string& request = "",
                            const std::string& stored_with = "") {
    return validate(at,
                    fields,
                    {.request = request,
                     .whom = whom,
                     .at_most = at_most,
                     .stored = of_five + stored_with})
        .kept;
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

TEST_CASE(
    "a later Date makes no Last-Modified a strong validator of the bytes that were there before") {
    const auto strong_after = [](const std::string& stored_with, const std::string& more = "") {
        node at;
        const auto now = http::format_date(wall_now());
        const std::string date{now.data(), now.size()};
        const auto kept = freshened(
            at, "Date: " + date + "\r\n" + more, word_of::origin, std::nullopt, "", stored_with);
        REQUIRE(kept);
        const auto lines = kept->validating_fields();
        return http::has_strong_last_modified(lines, wall_now());
    };
    const std::string changed = "Last-Modified: Sun, 06 Nov 1994 08:00:00 GMT\r\n";
    CHECK(strong_after(changed + "Date: Sun, 06 Nov 1994 08:00:01 GMT\r\n"));
    CHECK_FALSE(strong_after(changed + "Date: Sun, 06 Nov 1994 08:00:00 GMT\r\n"));
    // Another date of the same strong tag is one of the same bytes; what was weak stays so.
    const std::string other = "Last-Modified: Sun, 06 Nov 1994 07:00:00 GMT\r\n";
    CHECK(strong_after(changed + "Date: Sun, 06 Nov 1994 08:00:01 GMT\r\n", other));
    CHECK_FALSE(strong_after(changed + "Date: Sun, 06 Nov 1994 08:00:00 GMT\r\n", other));
    CHECK(strong_after(changed));  // by our own clock, long ago
    const auto lately = http::format_date(wall_now() - 30s);
    CHECK_FALSE(
        strong_after("Last-Modified: " + std::string{lately.data(), lately.size()} + "\r\n"));
}

TEST_CASE(
    "what is said to a client's cookie or login alone is so for whoever waits beside it, too") {
    const std::string lasts = "Cache-Control: max-age=600\r\n";
    const std::string shared = "Cache-Control: max-age=600, public\r\n";
    const std::string cookie = "Cookie: a=b\r\n";
    const std::string ann = "Authorization: Bearer ann\r\n";
    struct {
        std::string fields;
        validation how;
        bool for_one_client;
    } const rows[]{{lasts, {}, false},
                   {lasts, {.inside = true}, false},
                   {lasts, {.request = cookie}, false},
                   {lasts, {.request = cookie, .inside = true}, true},
                   {shared, {.request = cookie, .inside = true}, false},
                   {lasts, {.request = ann}, true},
                   {shared, {.request = ann}, false},
                   {shared, {.owner = 1}, true},
                   {lasts, {.whom = word_of::unkept_sibling}, false}};
    for (const auto& row : rows) {
        CAPTURE(row.fields);
        CAPTURE(row.how.request);
        CAPTURE(row.how.inside);
        node at;
        const auto now = validate(at, row.fields, row.how);
        CHECK(now.for_one_client == row.for_one_client);
        REQUIRE(now.kept);
        const bool is_old = row.for_one_client || row.how.whom == word_of::unkept_sibling;
        CHECK(now.kept->freshness().lifetime == (is_old ? 60s : 600s));
    }
}

TEST_CASE("what may not be stored, says a 304, is nobody's who waits beside its client") {
    for (const std::string directive : {"no-store", "private"}) {
        node at;
        const auto now = validate(at, "Cache-Control: " + directive + "\r\n", {});
        CHECK(now.for_one_client);
        CHECK_FALSE(now.kept);
    }
}

TEST_CASE(
    "a client's cookie takes nothing out of the store that an operator's rule has put there") {
    const http::freshness_rules rules{.set_aside = {.private_ = true}};
    const std::string own = "Cache-Control: private, max-age=600\r\n";
    const std::string cookie = "Cookie: a=b\r\n";
    validation how;
    how.stored = "200 OK\r\nCache-Control: private, max-age=60\r\nContent-Length: 5\r\n";
    how.rules = &rules;
    SUBCASE("what it says to a cookie is left to that client") {
        node at;
        how.request = cookie;
        const auto now = validate(at, own, how);
        CHECK(now.for_one_client);
        REQUIRE(now.kept);
        CHECK(now.kept->freshness().lifetime == 60s);
    }
    SUBCASE("without one it is for all, as the rule has it") {
        node at;
        const auto now = validate(at, own, how);
        CHECK_FALSE(now.for_one_client);
        REQUIRE(now.kept);
        CHECK(now.kept->freshness().lifetime == 600s);
    }
    SUBCASE("what no rule sets aside ends it, whoever validates") {
        for (const auto& request : {cookie, std::string{}}) {
            node at;
            how.request = request;
            CHECK_FALSE(validate(at, "Cache-Control: no-store\r\n", how).kept);
        }
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::fetch::test::of_freshening
