#include "proxy/cache/verdict.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

namespace reprise::proxy::cache::test::of_verdict {

using namespace std::chrono_literals;
using http::field;
using http::field_id;
using http::forward_reason;

namespace {

constexpr wall_time arrival{1000s};

struct kept_as {
    std::string fields = {};
    http::response_directives directives = {};
    std::chrono::seconds lifetime = 100s;
    unsigned status = 200;
};

lookup_result kept(const kept_as& how) {
    auto made = test::response({.arrived = 1000s});
    made->head.insert(made->status_line_size, how.fields);
    index_head(made);
    made->directives = how.directives;
    made->freshness.lifetime = how.lifetime;
    made->status = how.status;
    made->reusable_until = http::reusable_until(made->directives, made->freshness);
    return {lookup::present, made};
}

field directives(std::string_view value) {
    return {field_id::cache_control, "Cache-Control", value};
}

verdict judged(const lookup_result& what,
               const std::vector<field>& fields,
               std::chrono::seconds age,
               bool get = true) {
    return judge(what, read_request_facts(get, !get, fields), fields, arrival + age);
}

const std::string with_etag = "ETag: \"e\"\r\n";

}  // namespace

TEST_SUITE("cache/verdict") {

    TEST_CASE("facts are read from the fields that decide, and from no others") {
        const std::vector<field> fields{{field_id::authorization, "Authorization", "x"},
                                        {field_id::if_none_match, "If-None-Match", "\"e\""},
                                        {field_id::range, "Range", "bytes=0-1"},
                                        {field_id::accept, "Accept", "*/*"},
                                        directives("max-age=5, only-if-cached")};
        const auto facts = read_request_facts(true, false, fields);
        CHECK(facts.is_get);
        CHECK(facts.has_authorization);
        CHECK(facts.has_conditions);
        CHECK_FALSE(facts.has_origin_conditions);
        CHECK(facts.has_range);
        CHECK_FALSE(facts.has_cookie);
        CHECK(facts.asked.max_age == 5s);
        CHECK(facts.asked.only_if_cached);
    }

    TEST_CASE("what is not stored is forwarded, with the reason of RFC 9211") {
        const auto absent = judged({}, {}, 0s);
        CHECK(absent.what == ruling::forward);
        CHECK(absent.why == rule::nothing_stored);
        CHECK(absent.forward == forward_reason::uri_miss);
        const auto other = judged({lookup::other_variant, nullptr}, {}, 0s);
        CHECK(other.why == rule::other_variant);
        CHECK(other.forward == forward_reason::vary_miss);
        CHECK(judge({}, read_request_facts(false, false, {}), {}, arrival).why == rule::method);
    }

    TEST_CASE("fresh is a hit, and the ttl what is left") {
        const auto out = judged(kept({}), {}, 40s);
        CHECK(out.what == ruling::hit);
        CHECK(out.forward == forward_reason::none);
        CHECK(out.reuse.age == 40s);
        CHECK(out.reuse.ttl == 60s);
    }

    TEST_CASE("with directives or without, the same response is judged alike") {
        const auto stored = kept({.fields = with_etag});
        for (const auto age : {0s, 50s, 99s, 100s, 150s}) {
            CAPTURE(age.count());
            const auto plain = judged(stored, {}, age);
            const auto asked = judged(stored, {directives("x-unknown")}, age);
            CHECK(plain.what == asked.what);
            CHECK(plain.why == asked.why);
            CHECK(plain.reuse == asked.reuse);
        }
    }

    TEST_CASE("stale is validated if it can be, else fetched whole") {
        CHECK(judged(kept({.fields = with_etag}), {}, 150s).what == ruling::validate);
        CHECK(judged(kept({}), {}, 150s).what == ruling::forward);
        CHECK(judged(kept({}), {}, 150s).forward == forward_reason::stale);
        // A 304 would say that the error, or the redirection, is over.
        for (const unsigned status : {301U, 404U, 410U, 500U}) {
            CAPTURE(status);
            CHECK(judged(kept({.fields = with_etag, .status = status}), {}, 150s).what ==
                  ruling::forward);
        }
        CHECK(judged(kept({.fields = with_etag, .status = 203}), {}, 150s).what ==
              ruling::validate);
        // A HEAD's answer is not stored.
        CHECK(judged(kept({.fields = with_etag}), {}, 150s, false).what == ruling::forward);
        CHECK(judged(kept({.fields = with_etag}), {directives("no-store")}, 150s).what ==
              ruling::forward);
    }

    TEST_CASE("the client's directives are its reason to go forward") {
        const auto stored = kept({.fields = with_etag});
        const auto why = [&](std::string_view asked) {
            const auto out = judged(stored, {directives(asked)}, 40s);
            CHECK(out.forward == forward_reason::request);
            CHECK(out.what == ruling::validate);
            return out.why;
        };
        CHECK(why("no-cache") == rule::request_no_cache);
        CHECK(why("max-age=30") == rule::request_max_age);
        CHECK(why("min-fresh=70") == rule::request_min_fresh);
        CHECK(judged(stored, {directives("max-stale")}, 150s).what == ruling::stale_hit);
    }

    TEST_CASE("stale-while-revalidate answers a plain GET within its window") {
        http::response_directives allowed;
        allowed.stale_while_revalidate = 30s;
        const auto stored = kept({.fields = with_etag, .directives = allowed});
        const auto out = judged(stored, {}, 120s);
        CHECK(out.what == ruling::stale_behind);
        CHECK(out.why == rule::while_revalidating);
        CHECK(out.answers());
        CHECK(status_of(out, *stored.response).detail == "stale-while-revalidate");
        CHECK(judged(stored, {}, 131s).what == ruling::validate);
        CHECK(judged(stored, {}, 120s, false).what == ruling::forward);
        CHECK(judged(stored, {{field_id::authorization, "Authorization", "x"}}, 120s).what ==
              ruling::validate);
        CHECK(judged(stored, {directives("min-fresh=5")}, 120s).what == ruling::validate);
        CHECK(judged(stored, {directives("max-stale=10")}, 120s).what == ruling::validate);
        // Who says max-age alone wants nothing stale (RFC 9111 5.2.1.1).
        CHECK(judged(stored, {directives("max-age=600")}, 120s).what == ruling::validate);
        CHECK(judged(stored, {directives("max-stale=25")}, 120s).what == ruling::stale_hit);
    }

    TEST_CASE("only-if-cached goes nowhere, and keeps the reason") {
        const std::vector<field> asked{directives("only-if-cached")};
        CHECK(judged({}, asked, 0s).what == ruling::unavailable);
        CHECK(judged({}, asked, 0s).forward == forward_reason::uri_miss);
        CHECK(judged(kept({.fields = with_etag}), asked, 150s).what == ruling::unavailable);
        CHECK(judged(kept({}), asked, 50s).what == ruling::hit);
    }

    TEST_CASE("If-Match is the origin's to judge, fresh or not") {
        const std::vector<field> asked{{field_id::if_match, "If-Match", "\"e\""}};
        const auto out = judged(kept({.fields = with_etag}), asked, 10s);
        CHECK(out.what == ruling::forward);
        CHECK(out.why == rule::origin_conditions);
        CHECK(out.forward == forward_reason::request);
    }

    TEST_CASE("a stale response stands in for a failing origin as its directives and we allow") {
        http::response_directives allowed;
        allowed.stale_if_error = 30s;
        const auto plain = kept({});
        const auto told = kept({.directives = allowed});
        const auto facts = read_request_facts(true, false, {});
        const auto stands =
            [&](const lookup_result& what, std::chrono::seconds age, bool disconnected) {
                const auto out = judged(what, {}, age);
                return may_stand_in(what, out, facts, disconnected, 60s, arrival + age);
            };
        CHECK(stands(told, 120s, false));
        CHECK_FALSE(stands(told, 140s, false));
        CHECK(stands(told, 140s, true));
        CHECK_FALSE(stands(plain, 120s, false));
        CHECK(stands(plain, 159s, true));
        CHECK_FALSE(stands(plain, 160s, true));
        CHECK_FALSE(stands({}, 120s, true));
        http::response_directives strict;
        strict.must_revalidate = true;
        CHECK_FALSE(stands(kept({.directives = strict}), 120s, true));
    }

    TEST_CASE("what a client prefers gives way when the origin gives no answer") {
        http::response_directives strict;
        strict.must_revalidate = true;
        const auto stands = [&](const lookup_result& what,
                                const char* said,
                                std::chrono::seconds age,
                                bool disconnected,
                                std::chrono::seconds most) {
            const std::vector<field> asked{directives(said)};
            const auto facts = read_request_facts(true, false, asked);
            const auto out = judged(what, asked, age);
            REQUIRE_FALSE(out.answers());
            return may_stand_in(what, out, facts, disconnected, most, arrival + age);
        };
        const auto plain = kept({});
        for (const auto* preference : {"no-cache", "max-age=0", "max-age=30", "min-fresh=70"}) {
            CAPTURE(preference);
            CHECK(stands(plain, preference, 50s, true, 60s));
            CHECK(stands(kept({.directives = strict}), preference, 50s, true, 60s));
            CHECK_FALSE(stands(plain, preference, 50s, false, 60s));
            CHECK_FALSE(stands(plain, preference, 50s, true, 0s));
        }
        CHECK(stands(plain, "max-age=0", 159s, true, 60s));
        CHECK_FALSE(stands(plain, "max-age=0", 160s, true, 60s));
        CHECK_FALSE(stands(kept({.directives = strict}), "max-age=0", 120s, true, 60s));
        http::response_directives validated;
        validated.no_cache = true;
        CHECK_FALSE(stands(kept({.directives = validated}), "no-cache", 50s, true, 60s));
    }

    TEST_CASE("each rule has a name of its own and a section") {
        std::set<std::string_view> names;
        for (int i = 0; i <= static_cast<int>(rule::method); ++i) {
            const auto one = static_cast<rule>(i);
            CHECK(names.insert(to_string(one)).second);
            CHECK(section_of(one).starts_with("RFC "));
        }
    }
}

}  // namespace reprise::proxy::cache::test::of_verdict
