// What the VMOD takes for storable: Varnish's arithmetic, its built-in VCL and RFC 9111, where all three agree.

#include "filter/plugins/varnish/storable.hpp"

#include <doctest/doctest.h>

#include <string>

TEST_SUITE("filter/plugins/varnish/storable") {

    using reprise::varnish::answer;
    using reprise::varnish::judge;
    using reprise::varnish::verdict;

    namespace {

    constexpr double now = 1'800'000'000;

    /// A 200 with this Cache-Control, of this moment.
    answer with(std::string_view cache_control, int status = 200) {
        answer out;
        out.status = status;
        out.cache_control = cache_control;
        out.date = now;
        out.now = now;
        return out;
    }

    }  // namespace

    TEST_CASE("a lifetime that is said counts, s-maxage before max-age") {
        CHECK(judge(with("max-age=60")) == verdict::storable);
        CHECK(judge(with("public, Max-Age = 60")) == verdict::storable);
        CHECK(judge(with("max-age=0")) == verdict::no_lifetime);
        CHECK(judge(with("max-age=60, s-maxage=0")) == verdict::no_lifetime);
        CHECK(judge(with("max-age=0, s-maxage=60")) == verdict::storable);
        CHECK(judge(with("x=\"a, max-age=0\", max-age=60")) == verdict::storable);
        CHECK(judge(with("max-age=99999999999999999999")) == verdict::storable);
        CHECK(judge(with("max-age=60.5")) == verdict::storable);
        CHECK(judge(with("max-age=60s")) == verdict::no_lifetime);
        CHECK(judge(with("max-age=-60")) == verdict::no_lifetime);
    }

    TEST_CASE("what is older than its lifetime is not storable") {
        auto old = with("max-age=60");
        old.age = 59;
        CHECK(judge(old) == verdict::storable);
        old.age = 60;
        CHECK(judge(old) == verdict::no_lifetime);
    }

    TEST_CASE("where nothing is said Varnish's default_ttl counts") {
        auto silent = with("");
        CHECK(judge(silent) == verdict::storable);
        silent.default_ttl = 0;
        CHECK(judge(silent) == verdict::no_lifetime);
    }

    TEST_CASE("Expires counts where Cache-Control says no lifetime, by our clock or by Date") {
        auto given = with("");
        given.has_expires = true;
        given.expires = now + 60;
        CHECK(judge(given) == verdict::storable);
        given.expires = now - 1;
        CHECK(judge(given) == verdict::no_lifetime);
        given.date = now - 4000;  // a clock that is wrong by more than clock_skew
        CHECK(judge(given) == verdict::storable);
        given.date = 0;
        CHECK(judge(given) == verdict::no_lifetime);
        given.cache_control = "max-age=60";
        CHECK(judge(given) == verdict::storable);
    }

    TEST_CASE("an Expires that can't be read is in the past") {
        auto given = with("");
        given.has_expires = true;
        CHECK(judge(given) == verdict::no_lifetime);
    }

    TEST_CASE("no-store, private and no-cache forbid it, in whatever case") {
        for (const auto* text : {"no-store",
                                 "max-age=60, PRIVATE",
                                 "private=\"x\", max-age=60",
                                 "no-cache",
                                 "max-age=60,No-Cache=\"set-cookie\""}) {
            CAPTURE(text);
            CHECK(judge(with(text)) == verdict::forbidden);
        }
    }

    TEST_CASE("Surrogate-Control stands in for Cache-Control, as in the built-in VCL") {
        auto given = with("private, max-age=60");
        given.surrogate_control = "max-age=60";
        CHECK(judge(given) == verdict::storable);
        given = with("max-age=60");
        given.surrogate_control = "no-store";
        CHECK(judge(given) == verdict::forbidden);
    }

    TEST_CASE("Set-Cookie and any * in Vary forbid it") {
        auto given = with("max-age=60");
        given.sets_cookie = true;
        CHECK(judge(given) == verdict::sets_cookie);
        given = with("max-age=60");
        given.vary = "Accept-Encoding";
        CHECK(judge(given) == verdict::storable);
        given.vary = "Accept, *";
        CHECK(judge(given) == verdict::varies_by_all);
    }

    TEST_CASE("what answers Authorization must be said to be for all") {
        for (const auto* text :
             {"public, max-age=60", "s-maxage=60", "must-revalidate, max-age=60"}) {
            CAPTURE(text);
            auto given = with(text);
            given.was_authorized = true;
            CHECK(judge(given) == verdict::storable);
        }
        auto given = with("max-age=60");
        given.was_authorized = true;
        CHECK(judge(given) == verdict::authorized);
    }

    TEST_CASE("parts and 304 count as the whole, errors and redirects where they say a lifetime") {
        for (const int status : {200, 203, 204, 206, 300, 301, 304}) {
            CAPTURE(status);
            CHECK(judge(with("", status)) == verdict::storable);
        }
        for (const int status : {302, 307, 404, 410, 414}) {
            CAPTURE(status);
            CHECK(judge(with("", status)) == verdict::no_lifetime);
            CHECK(judge(with("max-age=60", status)) == verdict::storable);
        }
        for (const int status : {0, 100, 201, 308, 400, 403, 416, 500, 503, 999}) {
            CAPTURE(status);
            CHECK(judge(with("max-age=60", status)) == verdict::bad_status);
        }
    }

    TEST_CASE("whatever the fields say there is a verdict") {
        for (const std::string text :
             {",", ",,=", "\"", "max-age", "max-age=", "=", "max-age=\"60\"", " , x"}) {
            CAPTURE(text);
            auto given = with(text);
            given.vary = text;
            const auto found = judge(given);
            CHECK((found == verdict::storable || found == verdict::no_lifetime));
        }
    }

}  // TEST_SUITE
