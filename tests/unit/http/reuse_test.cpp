#include "proxy/http/reuse.hpp"
#include "tests/unit/http/field_lines.hpp"

#include <doctest/doctest.h>

namespace reprise::proxy::http {

namespace {

using namespace std::chrono_literals;

response_directives stored_with(std::string_view value) {
    const field line{field_id::cache_control, "Cache-Control", value};
    return read_response_directives({&line, 1});
}

request_directives asked_with(std::string_view value) {
    const field line{field_id::cache_control, "Cache-Control", value};
    return read_request_directives({&line, 1});
}

/// Arrived at `sunday`, fresh for 100 seconds.
constexpr freshness_facts hundred{sunday, 0s, 100s, lifetime_source::max_age};

reuse_verdict judge(std::string_view stored, std::string_view asked, seconds after) {
    return judge_reuse(stored_with(stored), hundred, asked_with(asked), sunday + after);
}

TEST_SUITE("http/reuse") {
    TEST_CASE("each directive decides as its section says") {
        struct row {
            const char* stored;
            const char* asked;
            seconds after;
            reuse what;
            reuse_reason why;
        };
        const row rows[] = {
            {"", "", 0s, reuse::fresh, reuse_reason::fresh},
            {"", "", 99s, reuse::fresh, reuse_reason::fresh},
            {"", "", 100s, reuse::must_validate, reuse_reason::stale},
            {"must-revalidate", "", 99s, reuse::fresh, reuse_reason::fresh},
            {"immutable", "", 100s, reuse::must_validate, reuse_reason::stale},
            {"no-cache", "", 0s, reuse::must_validate, reuse_reason::response_no_cache},
            {"no-cache=\"x\"", "", 0s, reuse::fresh, reuse_reason::fresh},
            {"no-cache=\"\"", "", 0s, reuse::must_validate, reuse_reason::response_no_cache},
            {"no-cache", "max-stale", 0s, reuse::must_validate, reuse_reason::response_no_cache},
            {"", "no-cache", 0s, reuse::must_validate, reuse_reason::request_no_cache},
            {"", "max-age=0", 0s, reuse::must_validate, reuse_reason::request_max_age},
            {"", "max-age=x", 0s, reuse::must_validate, reuse_reason::request_max_age},
            {"", "max-age=10", 10s, reuse::fresh, reuse_reason::fresh},
            {"", "max-age=10", 11s, reuse::must_validate, reuse_reason::request_max_age},
            {"", "max-age=999", 100s, reuse::must_validate, reuse_reason::stale},
            {"", "max-age=999, max-stale", 100s, reuse::stale_allowed, reuse_reason::max_stale},
            {"", "min-fresh=60", 40s, reuse::fresh, reuse_reason::fresh},
            {"", "min-fresh=60", 41s, reuse::must_validate, reuse_reason::request_min_fresh},
            {"", "min-fresh=60, max-stale", 100s, reuse::must_validate, reuse_reason::stale},
            {"", "max-stale", 9999s, reuse::stale_allowed, reuse_reason::max_stale},
            {"", "max-stale=20", 120s, reuse::stale_allowed, reuse_reason::max_stale},
            {"", "max-stale=20", 121s, reuse::must_validate, reuse_reason::stale},
            {"", "max-stale, max-stale=20", 121s, reuse::must_validate, reuse_reason::stale},
            {"", "max-stale=x", 100s, reuse::must_validate, reuse_reason::stale},
            {"", "no-store", 0s, reuse::fresh, reuse_reason::fresh},
            {"", "only-if-cached", 0s, reuse::fresh, reuse_reason::fresh},
            {"must-revalidate",
             "max-stale",
             100s,
             reuse::must_validate,
             reuse_reason::must_revalidate},
            {"proxy-revalidate",
             "max-stale",
             100s,
             reuse::must_validate,
             reuse_reason::must_revalidate},
            {"s-maxage=100",
             "max-stale",
             100s,
             reuse::must_validate,
             reuse_reason::must_revalidate},
        };
        for (const auto& each : rows) {
            CAPTURE(each.stored);
            CAPTURE(each.asked);
            const auto verdict = judge(each.stored, each.asked, each.after);
            CHECK(to_string(verdict.what) == to_string(each.what));
            CHECK(to_string(verdict.why) == to_string(each.why));
        }
    }

    TEST_CASE("a verdict carries the age and the time left") {
        CHECK(judge("", "", 30s).age == 30s);
        CHECK(judge("", "", 30s).ttl == 70s);
        CHECK(judge("", "", 130s).ttl == -30s);
    }

    TEST_CASE("reusable_until says what judge_reuse says to a bare request") {
        for (const auto* directives : {"", "no-cache", "must-revalidate"}) {
            const auto allowed = stored_with(directives);
            for (auto now = sunday - 3s; now < sunday + 110s; now += 500ms) {
                CAPTURE(directives);
                CAPTURE((now - sunday).count());
                const auto verdict = judge_reuse(allowed, hundred, {}, now);
                REQUIRE((now < reusable_until(allowed, hundred)) == (verdict.what == reuse::fresh));
            }
        }
    }

    TEST_CASE("stale-while-revalidate and stale-if-error open a window of that length") {
        const auto allowed = stored_with("stale-while-revalidate=10, stale-if-error=20");
        CHECK(may_serve_while_revalidating(allowed, hundred, sunday + 109s));
        CHECK_FALSE(may_serve_while_revalidating(allowed, hundred, sunday + 110s));
        CHECK(may_serve_on_error(allowed, hundred, sunday + 119s));
        CHECK_FALSE(may_serve_on_error(allowed, hundred, sunday + 120s));
        CHECK_FALSE(may_serve_while_revalidating(stored_with(""), hundred, sunday + 100s));
        CHECK_FALSE(may_serve_on_error(stored_with(""), hundred, sunday + 100s));
    }

    TEST_CASE("what forbids staleness closes both windows") {
        for (const auto* forbidding :
             {"no-cache", "must-revalidate", "proxy-revalidate", "s-maxage=100"}) {
            CAPTURE(forbidding);
            auto allowed = stored_with(forbidding);
            allowed.stale_while_revalidate = allowed.stale_if_error = 1000s;
            CHECK(forbids_stale(allowed));
            CHECK_FALSE(may_serve_while_revalidating(allowed, hundred, sunday + 101s));
            CHECK_FALSE(may_serve_on_error(allowed, hundred, sunday + 101s));
        }
        CHECK_FALSE(forbids_stale(stored_with("max-age=5, public, immutable")));
    }
}

}  // namespace

}  // namespace reprise::proxy::http
