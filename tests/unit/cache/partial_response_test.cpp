#include "proxy/cache/partial_response.hpp"
#include "proxy/http/date.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

namespace reprise::proxy::cache::test::of_partial_response {

using http::field_id;

namespace {

constexpr wall_time now{std::chrono::seconds{1'700'000'000}};

std::string date(std::chrono::seconds before) {
    const auto text = http::format_date(now - before);
    return {text.data(), text.size()};
}

struct recipe {
    std::string fields = "ETag: \"v1\"\r\nCache-Control: max-age=60\r\n";
    std::uint64_t first = 0;
    std::string bytes = "abcd";
    std::uint64_t total = 26;
};

drafted part_of(const recipe& wanted) {
    const part_place place{{wanted.first, wanted.first + wanted.bytes.size() - 1}, wanted.total};
    const auto head = "HTTP/1.1 206 Partial Content\r\nDate: " + date(std::chrono::seconds{0}) +
                      "\r\nContent-Range: bytes 0-0/1\r\nVia: 1.1 test\r\n" + wanted.fields;
    auto made = made_of_part(head, place, body_of(wanted.bytes));
    made.freshness.response_time = now;
    made.freshness.lifetime = std::chrono::seconds{60};
    return made;
}

combining_rules rules(std::uint64_t most_bytes = 1000) {
    combining_rules all;
    all.most_bytes = most_bytes;
    all.head_bytes = 10'000;
    all.head_fields = 100;
    return all;
}

part_plan plan_of(const stored_response& stored,
                  std::string_view range,
                  std::string_view if_range = {}) {
    std::vector<http::field> request;
    if (!range.empty()) {
        request.push_back({field_id::range, "Range", range});
    }
    if (!if_range.empty()) {
        request.push_back({field_id::if_range, "If-Range", if_range});
    }
    return plan_parts(stored, "GET", request, now);
}

}  // namespace

TEST_SUITE("cache/partial_response") {
    TEST_CASE("a part is kept under the head that the whole would have") {
        const auto made = part_of({.first = 4});
        CHECK(made->status == 200);
        CHECK(made->head.starts_with("HTTP/1.1 200 OK\r\n"));
        CHECK(made->head.ends_with("\r\nContent-Length: 26\r\n"));
        CHECK(made->head.find("Content-Range") == std::string::npos);
        CHECK(made->head.find("Via: 1.1 test\r\n") != std::string::npos);
        CHECK(made->head.substr(made->length_at) == "Content-Length: 26\r\n");
        CHECK(made->content == nullptr);
        CHECK(made->reusable_until == wall_time::min());
    }

    TEST_CASE("of an object of unknown length no Content-Length is kept, until a part tells it") {
        const auto made = part_of({.total = partial_body::unknown});
        CHECK(made->head.find("Content-Length") == std::string::npos);
        CHECK(made->length_at == made->head.size());
        const auto both = combine(*made, *part_of({.first = 10}), rules());
        REQUIRE(both.what == combination::combined);
        CHECK(both.response->head().substr(both.response->length_at()) == "Content-Length: 26\r\n");
        CHECK(both.response->parts()->total == 26);
    }

    TEST_CASE("a place is one right Content-Range") {
        const auto place = [](std::string_view text) {
            const http::field line{field_id::content_range, "Content-Range", text};
            return part_place_of({&line, 1});
        };
        REQUIRE(place("bytes 2-5/26"));
        CHECK(place("bytes 2-5/26")->range == http::byte_range{2, 5});
        CHECK(place("bytes 2-5/26")->total == 26);
        REQUIRE(place("bytes 2-5/*"));
        CHECK(place("bytes 2-5/*")->range == http::byte_range{2, 5});
        CHECK(place("bytes 2-5/*")->total == partial_body::unknown);
        for (const auto* wrong : {"",
                                  "/*",
                                  "bytes */26",
                                  "bytes 5-2/26",
                                  "bytes 2-5/5",
                                  "bytes 2-5",
                                  "bytes 2-5/",
                                  "octets 2-5/26",
                                  "bytes 5-2/*",
                                  "bytes 2-5/**",
                                  "bytes 2-18446744073709551615/*"}) {
            CAPTURE(wrong);
            CHECK_FALSE(place(wrong));
        }
        CHECK_FALSE(part_place_of({}));
        const http::field line{field_id::content_range, "Content-Range", "bytes 2-5/26"};
        const std::vector<http::field> twice{line, line};
        CHECK_FALSE(part_place_of(twice));
    }

    TEST_CASE("a strong validator is a strong ETag, or without any ETag a strong date") {
        const auto of = [](const std::vector<http::field>& lines) {
            return std::string{strong_validator_of(lines, now)};
        };
        const auto day = date(std::chrono::hours{24});
        const auto today = date(std::chrono::seconds{0});
        const http::field dated{field_id::date, "Date", today};
        const http::field changed{field_id::last_modified, "Last-Modified", day};
        const http::field just{field_id::last_modified, "Last-Modified", today};
        const http::field strong{field_id::etag, "ETag", "\"v1\""};
        const http::field weak{field_id::etag, "ETag", "W/\"v1\""};
        const http::field bare{field_id::etag, "ETag", "v1"};
        CHECK(of({strong, dated}) == "\"v1\"");
        CHECK(of({strong, changed, dated}) == "\"v1\"");
        CHECK(of({changed, dated}) == day);
        CHECK(of({changed}) == "");
        CHECK(of({just, dated}) == "");
        CHECK(of({weak, changed, dated}) == "");
        CHECK(of({bare, changed, dated}) == "");
        CHECK(of({strong, strong}) == "");
        CHECK(of({}) == "");
    }

    TEST_CASE("parts of one representation are combined, and the newer fields win") {
        const auto old = part_of({.fields = "ETag: \"v1\"\r\nX: 1\r\nY: 1\r\n"});
        const auto both = combine(
            *old,
            *part_of(
                {.fields = "ETag: \"v1\"\r\nX: 2\r\nCache-Control: max-age=9\r\n", .first = 9}),
            rules());
        REQUIRE(both.what == combination::combined);
        const auto& head = both.response->head();
        CHECK(head.find("X: 2\r\n") != std::string::npos);
        CHECK(head.find("X: 1\r\n") == std::string::npos);
        CHECK(head.find("Y: 1\r\n") != std::string::npos);
        CHECK(both.response->freshness().lifetime == std::chrono::seconds{9});
        CHECK(both.response->parts()->held.size() == 2);
        CHECK(old->parts->held.size() == 1);
    }

    TEST_CASE("combined parts are as old as the newer was when it came") {
        auto newer = part_of({.first = 9});
        newer->freshness.initial_age = std::chrono::seconds{7};
        const auto both = combine(*part_of({}), *newer, rules());
        REQUIRE(both.what == combination::combined);
        CHECK(http::current_age(both.response->freshness(), now) == std::chrono::seconds{7});
    }

    TEST_CASE("parts that need not be of one representation are not combined") {
        const auto held = part_of({});
        const auto against = [&](const recipe& other) {
            return combine(*held, *part_of(other), rules()).what;
        };
        CHECK(against({.first = 9}) == combination::combined);
        CHECK(against({.fields = "ETag: \"v2\"\r\n", .first = 9}) == combination::other_object);
        CHECK(against({.fields = "ETag: W/\"v1\"\r\n", .first = 9}) == combination::other_object);
        CHECK(against({.fields = "", .first = 9}) == combination::other_object);
        CHECK(against({.first = 9, .total = 27}) == combination::other_object);
        const auto weak = part_of({.fields = "ETag: W/\"v1\"\r\n"});
        CHECK(combine(*weak, *weak, rules()).what == combination::other_object);
        const auto none = part_of({.fields = ""});
        CHECK(combine(*none, *none, rules()).what == combination::other_object);
    }

    TEST_CASE("a part beyond the end that another knows is of another object") {
        const auto open = part_of({.first = 40, .total = partial_body::unknown});
        CHECK(combine(*part_of({}), *open, rules()).what == combination::other_object);
        CHECK(combine(*open, *part_of({}), rules()).what == combination::other_object);
    }

    TEST_CASE("more bytes than one object may hold are refused") {
        CHECK(combine(*part_of({}), *part_of({.first = 9}), rules(7)).what ==
              combination::too_large);
        CHECK(combine(*part_of({}), *part_of({.first = 9}), rules(8)).what ==
              combination::combined);
    }

    TEST_CASE("parts that miss nothing are an ordinary stored response") {
        const auto both = combine(
            *part_of({.total = 8}), *part_of({.first = 4, .bytes = "efgh", .total = 8}), rules());
        REQUIRE(both.what == combination::combined);
        CHECK(both.response->parts() == nullptr);
        REQUIRE(both.response->content());
        CHECK(bytes_of(*both.response->content()) == "abcdefgh");
        CHECK(both.response->reusable_until() == now + std::chrono::seconds{60});
    }

    TEST_CASE("parts that made a whole are combined with nothing more") {
        auto whole = part_of({.bytes = "abcd", .total = 4});
        complete_if_whole(whole);
        const auto both = combine(*part_of({.bytes = "ab", .total = 4}), *whole, rules());
        CHECK(both.what == combination::other_object);
        CHECK(both.response == nullptr);
    }

    TEST_CASE("a part of what is held whole freshens it") {
        auto whole = part_of({.bytes = "abcd", .total = 4});
        complete_if_whole(whole);
        REQUIRE(whole->content);
        const auto both = combine(
            *whole,
            *part_of({.fields = "ETag: \"v1\"\r\nX: 2\r\n", .bytes = "ab", .total = 4}),
            rules());
        REQUIRE(both.what == combination::combined);
        CHECK(bytes_of(*both.response->content()) == "abcd");
        CHECK(both.response->head().find("X: 2\r\n") != std::string::npos);
    }

    TEST_CASE("a plan says what parts can do") {
        const auto held =
            combine(*part_of({.first = 4}), *part_of({.first = 20, .bytes = "uvwxyz"}), rules())
                .response;
        CHECK(plan_of(*held, "bytes=4-7").use == part_use::held);
        CHECK(plan_of(*held, "bytes=5-5").use == part_use::held);
        CHECK(plan_of(*held, "bytes=-3").use == part_use::held);
        CHECK(plan_of(*held, "bytes=21-").use == part_use::held);
        CHECK(plan_of(*held, "bytes=26-").use == part_use::unsatisfiable);
        CHECK(plan_of(*held, "bytes=9-12").use == part_use::none);
        CHECK(plan_of(*held, "bytes=4-4,6-6").use == part_use::held);  // close: one range
        CHECK(plan_of(*held, "lines=4-5").use == part_use::none);
        CHECK(plan_of(*held, "").use == part_use::none);
        CHECK(plan_of(*held, "bytes=4-7", "\"v1\"").use == part_use::held);
        CHECK(plan_of(*held, "bytes=4-7", "\"v0\"").use == part_use::none);
        CHECK(plan_parts(*held, "HEAD", {}, now).use == part_use::head);
        const auto tail = plan_of(*held, "bytes=6-22");
        CHECK(tail.use == part_use::gap);
        CHECK(tail.gap == http::byte_range{8, 19});
        CHECK(tail.wanted == http::byte_range{6, 22});
        CHECK(tail.validator == "\"v1\"");
        CHECK_FALSE(tail.open);
    }

    TEST_CASE("several ranges are not planned") {
        const auto held = part_of({.bytes = std::string(1000, 'x'), .total = 2000});
        CHECK(plan_of(*held, "bytes=0-1,500-501").use == part_use::none);
        CHECK(plan_of(*held, "bytes=0-1").use == part_use::held);
    }

    TEST_CASE("a whole is planned from its beginning, and to its end without naming it") {
        const auto plan = plan_of(*part_of({}), "");
        CHECK(plan.use == part_use::gap);
        CHECK_FALSE(plan.ranged);
        CHECK(plan.gap == http::byte_range{4, 25});
        CHECK(plan.open);
        CHECK(plan_of(*part_of({.total = partial_body::unknown}), "").use == part_use::none);
    }

    TEST_CASE("without a strong validator nothing is completed, a range or the whole") {
        const auto held = part_of({.fields = ""});
        CHECK(plan_of(*held, "bytes=1-2").use == part_use::held);
        CHECK(plan_of(*held, "bytes=1-9").use == part_use::none);
        CHECK(plan_of(*held, "").use == part_use::none);
    }

    TEST_CASE("where no end is known only what is held is planned") {
        const auto held = part_of({.first = 4, .total = partial_body::unknown});
        CHECK(plan_of(*held, "bytes=4-7").use == part_use::held);
        CHECK(plan_of(*held, "bytes=6-9").use == part_use::none);
        CHECK(plan_of(*held, "bytes=6-").use == part_use::none);
        CHECK(plan_of(*held, "bytes=-2").use == part_use::none);
        CHECK(plan_of(*held, "bytes=900-").use == part_use::none);
    }

    TEST_CASE("only the very gap of the same representation fills it") {
        const auto held = part_of({});
        const auto plan = plan_of(*held, "bytes=2-9");
        REQUIRE(plan.gap == http::byte_range{4, 9});
        const auto fills = [&](unsigned status, std::string_view etag, std::string_view range) {
            const std::vector<http::field> lines{{field_id::etag, "ETag", etag},
                                                 {field_id::content_range, "Content-Range", range}};
            return fills_gap(plan, 26, status, lines, now);
        };
        CHECK(fills(206, "\"v1\"", "bytes 4-9/26"));
        CHECK_FALSE(fills(200, "\"v1\"", "bytes 4-9/26"));
        CHECK_FALSE(fills(206, "\"v2\"", "bytes 4-9/26"));
        CHECK_FALSE(fills(206, "W/\"v1\"", "bytes 4-9/26"));
        CHECK_FALSE(fills(206, "\"v1\"", "bytes 4-8/26"));
        CHECK_FALSE(fills(206, "\"v1\"", "bytes 3-9/26"));
        CHECK_FALSE(fills(206, "\"v1\"", "bytes 4-9/27"));
        CHECK_FALSE(fills(206, "\"v1\"", "bytes 4-9/*"));
    }

    TEST_CASE("what shows another object, or none, ends the parts, and an error leaves them") {
        part_plan plan;
        plan.use = part_use::gap;
        plan.gap = {4, 9};
        plan.validator = "\"v1\"";
        const auto ends = [&](unsigned status, std::string_view etag, std::string_view range) {
            const std::vector<http::field> lines{{field_id::etag, "ETag", etag},
                                                 {field_id::content_range, "Content-Range", range}};
            return ends_parts(plan, 26, status, lines, now);
        };
        for (const unsigned status : {404U, 410U, 416U}) {
            CHECK(ends(status, "\"v1\"", ""));
        }
        for (const unsigned status : {301U, 304U, 400U, 403U, 429U, 500U, 503U}) {
            CAPTURE(status);
            CHECK_FALSE(ends(status, "\"v2\"", ""));
        }
        CHECK(ends(200, "\"v2\"", ""));
        CHECK(ends(206, "W/\"v1\"", "bytes 4-9/26"));
        CHECK(ends(206, "\"v1\"", "bytes 4-9/27"));
        CHECK_FALSE(ends(200, "\"v1\"", ""));
        CHECK_FALSE(ends(206, "\"v1\"", "bytes 4-8/26"));
        CHECK_FALSE(ends(206, "\"v1\"", "bytes 4-9/*"));
        CHECK_FALSE(ends(206, "\"v1\"", ""));
    }

    TEST_CASE("parts are charged with every byte that they hold") {
        const auto one = part_of({.bytes = std::string(10'000, 'x'), .total = 30'000});
        CHECK((*one).footprint() > 10'000);
        const auto both = combine(
            *one,
            *part_of({.first = 20'000, .bytes = std::string(10'000, 'y'), .total = 30'000}),
            rules(30'000));
        REQUIRE(both.what == combination::combined);
        CHECK(both.response->footprint() > 20'000);
        CHECK(both.response->footprint() < 22'000);
    }
}

}  // namespace reprise::proxy::cache::test::of_partial_response
