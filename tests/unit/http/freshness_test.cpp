#include "proxy/http/freshness.hpp"
#include "tests/unit/http/field_lines.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string_view>

namespace reprise::proxy::http {

namespace {

using namespace std::chrono_literals;

freshness_facts facts_of(std::initializer_list<std::string_view> texts,
                         unsigned status = 200,
                         std::chrono::milliseconds round_trip = 0ms) {
    const auto response = lines(texts);
    return freshness_of(status,
                        response,
                        read_response_directives(response),
                        sunday - round_trip,
                        sunday,
                        freshness_rules{});
}

freshness_facts facts_under(const freshness_rules& rules,
                            std::initializer_list<std::string_view> texts,
                            unsigned status) {
    const auto response = lines(texts);
    return freshness_of(
        status, response, read_response_directives(response), sunday, sunday, rules);
}

TEST_SUITE("http/freshness") {
    TEST_CASE("a lifetime is s-maxage, else max-age, else Expires, else the heuristic") {
        struct row {
            std::initializer_list<std::string_view> texts;
            seconds lifetime;
            lifetime_source source;
        };
        const auto* date = "Date: Sun, 06 Nov 1994 08:49:37 GMT";
        const auto* expires = "Expires: Sun, 06 Nov 1994 09:49:37 GMT";
        const auto* modified = "Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT";
        const row rows[] = {
            {{"Cache-Control: max-age=5, s-maxage=7", date, expires, modified},
             7s,
             lifetime_source::s_maxage},
            {{"Cache-Control: max-age=5", date, expires, modified}, 5s, lifetime_source::max_age},
            {{"Cache-Control: max-age=0", date, expires}, 0s, lifetime_source::max_age},
            {{"Cache-Control: max-age=x", date, expires}, 0s, lifetime_source::max_age},
            {{date, expires, modified}, 3600s, lifetime_source::expires},
            {{date, modified}, 100s, lifetime_source::heuristic},
            {{date}, 0s, lifetime_source::none},
            {{}, 0s, lifetime_source::none},
        };
        for (const auto& each : rows) {
            const auto found = facts_of(each.texts);
            CAPTURE(to_string(each.source));
            CHECK(found.lifetime == each.lifetime);
            CHECK(found.source == each.source);
        }
    }

    TEST_CASE("Expires is measured from the response's own Date") {
        CHECK(facts_of(
                  {"Date: Sun, 06 Nov 1994 09:49:37 GMT", "Expires: Sun, 06 Nov 1994 09:49:47 GMT"})
                  .lifetime == 10s);
        CHECK(facts_of(
                  {"Date: Sun, 06 Nov 1994 07:49:37 GMT", "Expires: Sun, 06 Nov 1994 08:49:47 GMT"})
                  .lifetime == 3610s);
        CHECK(facts_of(
                  {"Date: Sun, 06 Nov 1994 09:49:37 GMT", "Expires: Sun, 06 Nov 1994 09:29:37 GMT"})
                  .lifetime == 0s);
    }

    TEST_CASE("Expires without a valid Date is measured from the arrival") {
        CHECK(facts_of({"Expires: Sun, 06 Nov 1994 08:49:47 GMT"}).lifetime == 10s);
        CHECK(facts_of({"Date: foo", "Expires: Sun, 06 Nov 1994 08:49:47 GMT"}).lifetime == 10s);
    }

    TEST_CASE("an invalid Expires is in the past and rules out the heuristic") {
        for (const auto* expires : {"Expires: 0",
                                    "Expires: -1",
                                    "Expires:",
                                    "Expires: Sun, 06 Nov 2050 08:49:47 UTC",
                                    "Expires: never"}) {
            CAPTURE(expires);
            const auto found = facts_of({expires, "Last-Modified: Sun, 06 Nov 1993 08:32:57 GMT"});
            CHECK(found.lifetime == 0s);
            CHECK(found.source == lifetime_source::expires);
        }
    }

    TEST_CASE("the first of several Expires counts") {
        CHECK(facts_of({"Expires: Sun, 06 Nov 1994 08:49:47 GMT",
                        "Expires: Sun, 06 Nov 1994 08:59:47 GMT"})
                  .lifetime == 10s);
    }

    TEST_CASE("the heuristic serves the statuses that allow it, and public") {
        const auto* modified = "Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT";
        for (unsigned status :
             {200u, 203u, 204u, 206u, 300u, 301u, 308u, 404u, 405u, 410u, 414u, 501u}) {
            CAPTURE(status);
            CHECK(facts_of({modified}, status).source == lifetime_source::heuristic);
        }
        for (unsigned status :
             {201u, 202u, 299u, 302u, 303u, 307u, 400u, 403u, 500u, 502u, 503u, 504u, 599u}) {
            CAPTURE(status);
            CHECK(facts_of({modified}, status).source == lifetime_source::none);
            CHECK(facts_of({modified, "Cache-Control: public"}, status).source ==
                  lifetime_source::heuristic);
        }
    }

    TEST_CASE("the heuristic is bounded and needs a Last-Modified before Date") {
        CHECK(facts_of({"Last-Modified: Sun, 06 Nov 1984 08:32:57 GMT"}).lifetime == 24h);
        CHECK(facts_of({"Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"}).source ==
              lifetime_source::none);
        CHECK(facts_of({"Last-Modified: Sun, 06 Nov 2004 08:49:37 GMT"}).source ==
              lifetime_source::none);
        CHECK(facts_of({"Last-Modified: yesterday"}).source == lifetime_source::none);
    }

    TEST_CASE("Age is the first member that is an integer, or nothing") {
        struct row {
            std::initializer_list<std::string_view> texts;
            seconds expected;
        };
        const row rows[] = {
            {{"Age: 7200"}, 7200s},
            {{"Age: 7200, 0"}, 7200s},
            {{"Age: 0, 7200"}, 0s},
            {{"Age: 7200", "Age: 0"}, 7200s},
            {{"Age: 0", "Age: 7200"}, 0s},
            {{"Age: 2147483647"}, 2147483647s},
            {{"Age: 99999999999999999999"}, longest_delta},
            {{"Age: 7200.0"}, 0s},
            {{"Age: -7200"}, 0s},
            {{"Age: abc"}, 0s},
            {{"Age: 7200;foo=bar"}, 0s},
            {{"Age: \"7200\""}, 0s},
            {{"Age:"}, 0s},
            {{"Age: ,7200"}, 0s},
        };
        for (const auto& each : rows) {
            CAPTURE(each.texts.begin()[0]);
            CHECK(facts_of(each.texts).initial_age == each.expected);
        }
    }

    TEST_CASE("the initial age is the larger of Age and the distance from Date") {
        CHECK(facts_of({"Date: Sun, 06 Nov 1994 08:49:07 GMT", "Age: 10"}).initial_age == 30s);
        CHECK(facts_of({"Date: Sun, 06 Nov 1994 08:49:07 GMT", "Age: 40"}).initial_age == 40s);
    }

    TEST_CASE("a Date ahead of our clock makes no negative age") {
        CHECK(facts_of({"Date: Sun, 06 Nov 1994 10:49:07 GMT"}).initial_age == 0s);
    }

    TEST_CASE("the round trip counts as age, fractions of it only in sum") {
        CHECK(facts_of({"Age: 10"}, 200, 5s).initial_age == 15s);
        CHECK(facts_of({}, 200, 999ms).initial_age == 0s);
        CHECK(facts_of({"Age: 10"}, 200, 1500ms).initial_age == 11s);
        CHECK(facts_of({"Age: 10"}, 200, -5s).initial_age == 10s);
    }

    TEST_CASE("age grows with the time in store") {
        const auto facts = facts_of({"Cache-Control: max-age=100", "Age: 30"});
        CHECK(current_age(facts, sunday) == 30s);
        CHECK(current_age(facts, sunday + 999ms) == 30s);
        CHECK(current_age(facts, sunday + 12s) == 42s);
        CHECK(remaining(facts, sunday + 12s) == 58s);
        CHECK(remaining(facts, sunday + 100s) == -30s);
    }

    TEST_CASE("a clock that steps back makes nobody younger than at arrival") {
        const auto facts = facts_of({"Cache-Control: max-age=20", "Age: 30"});
        CHECK(current_age(facts, sunday - 10h) == 30s);
        CHECK(fresh_until(facts) == wall_time::min());
    }

    TEST_CASE("fresh_until is the moment from which age has reached the lifetime") {
        for (const auto* age : {"Age: 0", "Age: 40", "Age: 99", "Age: 100", "Age: 2000"}) {
            const auto facts = facts_of({"Cache-Control: max-age=100", age}, 200, 700ms);
            for (auto now = sunday - 5s; now < sunday + 120s; now += 250ms) {
                CAPTURE(age);
                CAPTURE((now - sunday).count());
                REQUIRE((now < fresh_until(facts)) == (current_age(facts, now) < facts.lifetime));
            }
        }
    }

    TEST_CASE("without heuristic_errors the heuristic serves no error but 410") {
        const auto* modified = "Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT";
        const freshness_rules rules{.heuristic_errors = false};
        for (unsigned status : {200u, 203u, 204u, 300u, 301u, 308u, 410u}) {
            CAPTURE(status);
            CHECK(facts_under(rules, {modified}, status).source == lifetime_source::heuristic);
        }
        for (unsigned status : {404u, 405u, 414u, 501u}) {
            CAPTURE(status);
            CHECK(facts_under(rules, {modified}, status).source == lifetime_source::none);
            CHECK(facts_under(rules, {modified, "Cache-Control: public"}, status).source ==
                  lifetime_source::heuristic);
            CHECK(facts_under(rules, {"Cache-Control: max-age=5"}, status).lifetime == 5s);
        }
    }

    TEST_CASE("a negative lifetime is for errors that state none, and comes before the heuristic") {
        const auto* modified = "Last-Modified: Sun, 06 Nov 1984 08:32:57 GMT";
        const freshness_rules rules{.negative = 10s};
        for (unsigned status : {404u, 410u, 500u, 501u, 502u, 503u, 504u, 599u}) {
            CAPTURE(status);
            const auto found = facts_under(rules, {modified}, status);
            CHECK(found.source == lifetime_source::negative);
            CHECK(found.lifetime == 10s);
            CHECK_FALSE(is_explicit(found.source));
            CHECK(facts_under(rules, {"Cache-Control: max-age=5"}, status).lifetime == 5s);
            CHECK(facts_under(rules, {"Expires: 0"}, status).lifetime == 0s);
            CHECK(facts_under({}, {}, status).source == lifetime_source::none);
        }
        for (unsigned status : {200u, 301u, 400u, 401u, 403u, 405u, 414u, 429u}) {
            CAPTURE(status);
            CHECK(facts_under(rules, {}, status).source == lifetime_source::none);
        }
    }

    TEST_CASE("at_least is the lifetime of what states none, and at_most of what states more") {
        const auto* modified = "Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT";  // 100 s at a tenth
        const freshness_rules rules{.at_least = 200s, .at_most = 600s};
        CHECK(facts_under(rules, {}, 200).lifetime == 200s);
        CHECK(facts_under(rules, {}, 200).source == lifetime_source::heuristic);
        CHECK(facts_under(rules, {modified}, 200).lifetime == 200s);
        CHECK(facts_under(rules, {"Cache-Control: max-age=5"}, 200).lifetime == 5s);
        CHECK(facts_under(rules, {"Cache-Control: max-age=300"}, 200).lifetime == 300s);
        const auto cut = facts_under(rules, {"Cache-Control: s-maxage=9999"}, 200);
        CHECK(cut.lifetime == 600s);
        CHECK(cut.source == lifetime_source::s_maxage);
        CHECK(facts_under({.at_most = 0s}, {"Cache-Control: max-age=5"}, 200).lifetime == 0s);
    }

    TEST_CASE("at_least raises a stated lifetime only where what states it is set aside") {
        const auto* date = "Date: Sun, 06 Nov 1994 08:49:37 GMT";
        const auto raised = [&](std::string_view line, const overrides& set_aside) {
            const auto found = facts_under(
                {.at_least = 200s, .set_aside = set_aside}, {line, date}, 200);
            CHECK((found.lifetime == 200s) == !is_explicit(found.source));
            return found.lifetime == 200s;
        };
        const auto* age = "Cache-Control: max-age=5";
        const auto* shared = "Cache-Control: s-maxage=5, max-age=9000";
        const auto* expires = "Expires: 0";
        CHECK(raised(age, {.max_age = true}));
        CHECK_FALSE(raised(age, {.expires = true, .s_maxage = true}));
        CHECK(raised(shared, {.s_maxage = true}));
        CHECK_FALSE(raised(shared, {.expires = true, .max_age = true}));
        CHECK(raised(expires, {.expires = true}));
        CHECK_FALSE(raised(expires, {.max_age = true, .s_maxage = true}));
        // What is longer stays as it is stated.
        const auto longer = facts_under({.at_least = 200s, .set_aside = {.max_age = true}},
                                        {"Cache-Control: max-age=300"},
                                        200);
        CHECK(longer.lifetime == 300s);
        CHECK(longer.source == lifetime_source::max_age);
    }

    TEST_CASE("at_least is for no error, and for no status without a heuristic") {
        const freshness_rules rules{
            .negative = 10s, .at_least = 200s, .set_aside = {.max_age = true}};
        for (unsigned status : {400u, 404u, 405u, 414u, 500u, 501u, 503u, 302u, 307u}) {
            CAPTURE(status);
            CHECK(facts_under(rules, {}, status).lifetime <= 10s);
            CHECK(facts_under(rules, {"Cache-Control: max-age=5"}, status).lifetime == 5s);
        }
        CHECK(facts_under({.at_least = 200s}, {}, 410).lifetime == 200s);
        CHECK(facts_under({.at_least = 200s}, {}, 301).lifetime == 200s);
    }

    TEST_CASE("every source of a lifetime has a name of its own") {
        std::set<std::string_view> names;
        for (auto source = lifetime_source::s_maxage; source <= lifetime_source::none;
             source = static_cast<lifetime_source>(static_cast<int>(source) + 1)) {
            CHECK(names.insert(to_string(source)).second);
        }
    }
}

}  // namespace

}  // namespace reprise::proxy::http
