#include "proxy/http/freshness.hpp"
#include "proxy/http/overriding.hpp"
#include "proxy/http/storability.hpp"
#include "proxy/http/targeted.hpp"
#include "tests/unit/http/field_lines.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace reprise::proxy::http {

namespace {

response_directives stated(std::string_view directives) {
    const auto line = "Cache-Control: " + std::string{directives};
    const auto response = lines({line});
    return read_response_directives(response);
}

}  // namespace

TEST_SUITE("http/overriding") {
    TEST_CASE("each override takes out its directive and no other") {
        const auto all = stated("no-store, no-cache, private, must-revalidate, proxy-revalidate, "
                                "public, max-age=1, s-maxage=2, stale-if-error=3, no-transform");
        CHECK(without(all, {}) == all);
        CHECK(without(all, {.expires = true, .max_age = true, .s_maxage = true}) == all);
        auto left = all;
        left.no_store = false;
        CHECK(without(all, {.no_store = true}) == left);
        left = all;
        left.no_cache = false;
        CHECK(without(all, {.no_cache = true}) == left);
        left = all;
        left.private_ = false;
        CHECK(without(all, {.private_ = true}) == left);
        left = all;
        left.must_revalidate = left.proxy_revalidate = false;
        CHECK(without(all, {.must_revalidate = true}) == left);
    }

    TEST_CASE("fields that no-cache or private name stay withheld") {
        const auto named = stated("private=\"x-a\", no-cache=\"x-b\"");
        CHECK(named.private_fields);
        CHECK(without(named, {.no_cache = true, .private_ = true}) == named);
    }

    TEST_CASE("nor is set aside what names fields that can't be left out alone") {
        const overrides both{.no_cache = true, .private_ = true};
        std::string many = "\"x-account";
        for (std::size_t i = 0; i < withheld_names::most; ++i) {
            many += ", x-" + std::to_string(i);
        }
        for (const auto& argument :
             {std::string{"\"X-Account, ETag\""}, many + '"', std::string{"\"\""}, std::string{}}) {
            CAPTURE(argument);
            for (const std::string name : {"private", "no-cache"}) {
                const auto whole = stated(name + '=' + argument);
                CHECK((whole.private_ || whole.no_cache));
                CHECK(without(whole, both) == whole);
            }
        }
        const auto beside = stated("private, private=\"X-Account\", no-cache, no-cache=\"x-b\"");
        auto left = beside;
        left.private_ = left.no_cache = false;
        CHECK(without(beside, both) == left);
    }

    TEST_CASE("nor what names fields in a targeted field, of which none is withheld") {
        const overrides both{.no_cache = true, .private_ = true};
        const std::vector<std::string> targets{"CDN-Cache-Control"};
        const auto targeted = [&](std::string_view line) {
            return read_governing_directives(lines({line}), targets);
        };
        for (const auto* line : {"CDN-Cache-Control: private=\"x-account\", no-cache=\"x-b\"",
                                 "CDN-Cache-Control: private=x-account, no-cache=x-b",
                                 "CDN-Cache-Control: private=(\"x-account\"), no-cache=(x-b)"}) {
            CAPTURE(line);
            const auto whole = targeted(line);
            CHECK((whole.private_ && whole.no_cache));
            CHECK(without(whole, both) == whole);
        }
        const auto plain = without(targeted("CDN-Cache-Control: private, no-cache"), both);
        CHECK_FALSE((plain.private_ || plain.no_cache));
    }

    TEST_CASE("what a client's credentials or cookies brought, or what sets one, is personal") {
        CHECK_FALSE(is_personal(lines({"Accept: *"}), lines({"ETag: \"a\""})));
        CHECK(is_personal(lines({"Authorization: Basic x"}), {}));
        CHECK(is_personal(lines({"Cookie: a=b"}), {}));
        CHECK(is_personal({}, lines({"Set-Cookie: a=b"})));
    }

    TEST_CASE("for one client nothing is raised or set aside, and at_most holds") {
        const freshness_rules rules{.heuristic_fraction = 0.5,
                                    .at_least = seconds{9},
                                    .at_most = seconds{20},
                                    .set_aside = {.private_ = true}};
        const auto own = rules.for_one_client();
        CHECK(own.at_least == seconds{0});
        CHECK(own.set_aside == overrides{});
        CHECK(own.at_most == seconds{20});
        CHECK(own.heuristic_fraction == 0.5);
    }

    TEST_CASE("what is set aside no longer stands against storing") {
        const auto judged = [](std::string_view directives, const overrides& set_aside) {
            const auto line = "Cache-Control: " + std::string{directives};
            const auto response = lines({line});
            const auto allowed = without(read_response_directives(response), set_aside);
            const freshness_rules rules{.at_least = seconds{60}, .set_aside = set_aside};
            const auto facts = freshness_of(200, response, allowed, sunday, sunday, rules);
            return judge_storable("GET", 200, {}, {}, response, allowed, facts);
        };
        CHECK(judged("no-store", {}) == storability::no_store);
        CHECK(judged("no-store", {.no_store = true}) == storability::storable);
        CHECK(judged("private", {}) == storability::private_response);
        CHECK(judged("private", {.private_ = true}) == storability::storable);
        CHECK(judged("private, no-store", {.private_ = true}) == storability::no_store);
        CHECK(judged("no-cache", {}) == storability::useless);
        CHECK(judged("no-cache", {.no_cache = true}) == storability::storable);
    }
}

}  // namespace reprise::proxy::http
