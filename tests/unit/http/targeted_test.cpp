#include "proxy/http/freshness.hpp"
#include "proxy/http/storability.hpp"
#include "proxy/http/targeted.hpp"
#include "tests/unit/http/field_lines.hpp"

#include <doctest/doctest.h>

namespace reprise::proxy::http {

namespace {

using namespace std::chrono_literals;
using texts = std::initializer_list<std::string_view>;

const std::vector<std::string> edge_then_cdn{"Edge-Cache-Control", "CDN-Cache-Control"};

response_directives read(texts response, const std::vector<std::string>& targets = edge_then_cdn) {
    const auto all = lines(response);
    return read_governing_directives(all, targets);
}

TEST_SUITE("http/targeted") {
    TEST_CASE("without a list, or without a field on it, Cache-Control governs") {
        const texts response{"Cache-Control: max-age=5", "CDN-Cache-Control: max-age=9"};
        CHECK(read(response, {}) == read_response_directives(lines(response)));
        CHECK(read(response, {"Other-Cache-Control"}).max_age == 5s);
        CHECK_FALSE(read(response, {}).targeted);
        CHECK(read({"Cache-Control: max-age=5"}).max_age == 5s);
    }

    TEST_CASE("a targeted field governs alone: nothing of Cache-Control is left") {
        const auto allowed = read({"Cache-Control: no-store, private, s-maxage=1, must-revalidate",
                                   "cdn-cache-control: max-age=9"});
        response_directives expected;
        expected.max_age = 9s;
        expected.targeted = true;
        CHECK(allowed == expected);
    }

    TEST_CASE("the list's order decides, not the response's") {
        CHECK(read({"CDN-Cache-Control: max-age=9", "Edge-Cache-Control: max-age=7"}).max_age ==
              7s);
    }

    TEST_CASE("a field that is empty or no dictionary is as if it were absent") {
        for (const auto* invalid : {"CDN-Cache-Control:",
                                    "CDN-Cache-Control: max-age=10000, &&&&&",
                                    "CDN-Cache-Control: Max-Age=10",
                                    "CDN-Cache-Control: max-age =10",
                                    "CDN-Cache-Control: max-age= 10",
                                    "CDN-Cache-Control: max-age=10,",
                                    "CDN-Cache-Control: private=\"x"}) {
            CAPTURE(invalid);
            CHECK(read({"Cache-Control: max-age=5", invalid}).max_age == 5s);
            CHECK_FALSE(read({invalid}).targeted);
            CHECK(read({"Edge-Cache-Control: &", "CDN-Cache-Control: max-age=3"}).max_age == 3s);
        }
    }

    TEST_CASE("several lines are one dictionary, valid or not as one") {
        CHECK(read({"CDN-Cache-Control: max-age=9", "CDN-Cache-Control: no-store"}).no_store);
        CHECK(read({"CDN-Cache-Control: max-age=9", "CDN-Cache-Control: max-age=3"}).max_age == 3s);
        CHECK_FALSE(read({"CDN-Cache-Control: max-age=9", "CDN-Cache-Control: &"}).targeted);
        CHECK_FALSE(read({"CDN-Cache-Control: max-age=9", "CDN-Cache-Control:"}).targeted);
    }

    TEST_CASE("every directive is read") {
        const auto allowed = read({"CDN-Cache-Control: max-age=1, s-maxage=2, "
                                   "stale-while-revalidate=3, stale-if-error=4, no-store, "
                                   "no-cache, private, public, must-revalidate, "
                                   "proxy-revalidate, must-understand, immutable, no-transform, "
                                   "foobar, x=(1 2)"});
        response_directives all;
        all.max_age = 1s;
        all.s_maxage = 2s;
        all.stale_while_revalidate = 3s;
        all.stale_if_error = 4s;
        all.no_store = all.no_cache = all.private_ = all.public_ = true;
        all.must_revalidate = all.proxy_revalidate = all.must_understand = true;
        all.immutable = all.no_transform = all.targeted = true;
        CHECK(allowed == all);
    }

    TEST_CASE("a time is an integer; others are stale, large ones are cut") {
        for (const auto* zero : {"CDN-Cache-Control: max-age=\"10000\"",
                                 "CDN-Cache-Control: max-age=10.0",
                                 "CDN-Cache-Control: max-age=-1",
                                 "CDN-Cache-Control: max-age=ten",
                                 "CDN-Cache-Control: max-age",
                                 "CDN-Cache-Control: max-age=?1",
                                 "CDN-Cache-Control: max-age=(9)",
                                 "CDN-Cache-Control: max-age=@9"}) {
            CAPTURE(zero);
            CHECK(read({zero, "Cache-Control: max-age=60"}).max_age == 0s);
        }
        CHECK(read({"CDN-Cache-Control: max-age=99999999999"}).max_age == longest_delta);
        CHECK(read({"CDN-Cache-Control: max-age=9;x=1"}).max_age == 9s);
    }

    TEST_CASE("a directive without a time is meant unless it is false") {
        CHECK_FALSE(read({"CDN-Cache-Control: no-store=?0"}).no_store);
        CHECK(read({"CDN-Cache-Control: no-store=?1"}).no_store);
        CHECK(read({"CDN-Cache-Control: no-store=0"}).no_store);
        CHECK_FALSE(read({"CDN-Cache-Control: no-store, no-store=?0"}).no_store);
    }

    TEST_CASE("no-cache and private may name fields, in any form that can") {
        for (const auto* named : {"CDN-Cache-Control: no-cache=\"a\", private=\"b\"",
                                  "CDN-Cache-Control: no-cache=a, private=b",
                                  "CDN-Cache-Control: no-cache=(\"a\"), private=(b c)"}) {
            CAPTURE(named);
            const auto allowed = read({named});
            CHECK(allowed.no_cache);
            CHECK(allowed.private_);
            CHECK(allowed.no_cache_fields);
            CHECK(allowed.private_fields);
        }
    }

    TEST_CASE("beside a targeted field, Expires states no lifetime") {
        const auto facts_of = [](texts response) {
            const auto all = lines(response);
            return freshness_of(200,
                                all,
                                read_governing_directives(all, edge_then_cdn),
                                sunday,
                                sunday,
                                freshness_rules{});
        };
        const auto* expires = "Expires: Sun, 06 Nov 1994 09:49:37 GMT";
        const auto* modified = "Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT";
        CHECK(facts_of({expires}).lifetime == 3600s);
        CHECK(facts_of({expires, "CDN-Cache-Control: max-age=0"}).lifetime == 0s);
        CHECK(facts_of({"Expires: 0", "CDN-Cache-Control: max-age=9"}).lifetime == 9s);
        CHECK(facts_of({expires, "CDN-Cache-Control: immutable"}).source == lifetime_source::none);
        CHECK(facts_of({expires, modified, "CDN-Cache-Control: immutable"}).source ==
              lifetime_source::heuristic);
    }
}

}  // namespace

}  // namespace reprise::proxy::http
