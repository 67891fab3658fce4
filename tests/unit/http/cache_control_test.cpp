#include "proxy/http/cache_control.hpp"
#include "tests/unit/http/field_lines.hpp"

#include <doctest/doctest.h>

#include <string>

namespace reprise::proxy::http {

namespace {

using namespace std::chrono_literals;

response_directives response(std::string_view value) {
    const field line{field_id::cache_control, "Cache-Control", value};
    return read_response_directives({&line, 1});
}

request_directives request(std::string_view value) {
    const field line{field_id::cache_control, "Cache-Control", value};
    return read_request_directives({&line, 1});
}

TEST_SUITE("http/cache_control") {
    TEST_CASE("a response without Cache-Control states nothing") {
        CHECK(read_response_directives({}) == response_directives{});
        CHECK(response("") == response_directives{});
        CHECK(response(" ,\t,, ") == response_directives{});
    }

    TEST_CASE("every response directive is read") {
        const auto read = response("max-age=1, s-maxage=2, stale-while-revalidate=3, "
                                   "stale-if-error=4, no-store, no-cache, private, public, "
                                   "must-revalidate, proxy-revalidate, must-understand, "
                                   "immutable, no-transform");
        response_directives all;
        all.max_age = 1s;
        all.s_maxage = 2s;
        all.stale_while_revalidate = 3s;
        all.stale_if_error = 4s;
        all.no_store = all.no_cache = all.private_ = all.public_ = true;
        all.must_revalidate = all.proxy_revalidate = all.must_understand = true;
        all.immutable = all.no_transform = true;
        CHECK(read == all);
    }

    TEST_CASE("every request directive is read") {
        const auto read = request(
            "max-age=1,min-fresh=2,max-stale=3,no-cache,no-store,only-if-cached,no-transform");
        request_directives all;
        all.max_age = 1s;
        all.min_fresh = 2s;
        all.max_stale = 3s;
        all.no_cache = all.no_store = all.only_if_cached = all.no_transform = true;
        CHECK(read == all);
    }

    TEST_CASE("names have no case") {
        CHECK(response("MaX-aGe=5").max_age == 5s);
        CHECK(response("No-StOrE").no_store);
        CHECK(response("PRIVATE").private_);
        CHECK(request("Only-If-Cached").only_if_cached);
    }

    TEST_CASE("all lines count") {
        const auto read = read_response_directives(
            lines({"Cache-Control: max-age=5", "X: no-store", "Cache-Control: no-cache"}));
        CHECK(read.max_age == 5s);
        CHECK(read.no_cache);
        CHECK_FALSE(read.no_store);
    }

    TEST_CASE("a time is digits, bare or quoted") {
        struct row {
            const char* text;
            seconds expected;
        };
        const row rows[] = {
            {"max-age=3600", 3600s},
            {"max-age=003600", 3600s},
            {"max-age=\"3600\"", 3600s},
            {"max-age=3600 ", 3600s},
            {"max-age=2147483647", 2147483647s},
            {"max-age=2147483648", longest_delta},
            {"max-age=2147483649", longest_delta},
            {"max-age=99999999999999999999999999999999999999", longest_delta},
            {"max-age", 0s},
            {"max-age=", 0s},
            {"max-age=\"\"", 0s},
            {"max-age=\"", 0s},
            {"max-age=-3600", 0s},
            {"max-age=+3600", 0s},
            {"max-age=3600.0", 0s},
            {"max-age='3600'", 0s},
            {"max-age=a3600", 0s},
            {"max-age=3600a", 0s},
            {"max-age=36 00", 0s},
            {"max-age =3600", 0s},
            {"max-age= 3600", 0s},
            {"max-age=\"3600\"x", 0s},
            {"max-age==3600", 0s},
            {"max-age=3600; foo", 0s},
        };
        for (const auto& each : rows) {
            CAPTURE(each.text);
            CHECK(response(each.text).max_age == each.expected);
            CHECK(request(each.text).max_age == each.expected);
        }
    }

    TEST_CASE("the first of several equal times counts") {
        CHECK(response("max-age=1800, max-age=1").max_age == 1800s);
        CHECK(response("max-age=1, max-age=1800").max_age == 1s);
        CHECK(response("max-age=x, max-age=1800").max_age == 0s);
        CHECK(read_response_directives(
                  lines({"Cache-Control: s-maxage=7", "Cache-Control: s-maxage=9"}))
                  .s_maxage == 7s);
    }

    TEST_CASE("what a quoted argument holds is no directive") {
        const auto read = response("extension=\"max-age=3600, no-store\", max-age=1");
        CHECK(read.max_age == 1s);
        CHECK_FALSE(read.no_store);
        CHECK(response("x=\"a\\\", max-age=5\", max-age=1").max_age == 1s);
        CHECK(response("x= \"max-age=5, private\", max-age=1").max_age == 1s);
    }

    TEST_CASE("a quote that is not closed hides nothing behind it") {
        CHECK(response("x=\"foo, no-store").no_store);
        CHECK(response("x=\"a\\\", y=\"b, no-store").no_store);
        CHECK(response("x\"y, no-store").no_store);
        CHECK(response("\"no-cache, private\"").private_ == false);
        CHECK(response("\"a, private, b\"").private_);
    }

    TEST_CASE("a directive without a time keeps its effect whatever its argument") {
        CHECK(response("no-store=1").no_store);
        CHECK(response("must-revalidate=\"x\"").must_revalidate);
        CHECK(request("no-cache=x").no_cache);
    }

    TEST_CASE("private and no-cache with field names speak of those fields alone") {
        const auto read = response("private=\"Set-Cookie, X\", no-cache=\"Foo\"");
        CHECK_FALSE(read.private_);
        CHECK(read.private_fields);
        CHECK_FALSE(read.no_cache);
        CHECK(read.no_cache_fields);
        const auto both = response("private=\"Set-Cookie\", no-cache=\"Foo\", no-cache, private");
        CHECK(both.private_);
        CHECK(both.no_cache);
    }

    TEST_CASE("private and no-cache are obeyed whole where what they name can't be left out") {
        for (const std::string argument : {"\"\"",
                                           "",
                                           "\" , \"",
                                           "\"Foo, Vary\"",
                                           "\"content-length\"",
                                           "\"Cache-Control\"",
                                           "\"Foo Bar\"",
                                           "\"Foo",
                                           "\"F\\oo\"",
                                           "Foo;x"}) {
            CAPTURE(argument);
            const auto read = response("private=" + argument);
            CHECK(read.private_);
            CHECK(response("no-cache=" + argument).no_cache);
        }
        CHECK(response("no-cache=\"Foo\", no-cache=\"ETag\"").no_cache);
        CHECK(response("private =\"Foo\"").private_);
    }

    TEST_CASE("what a qualified directive names is withheld, in any case and of any line") {
        const std::vector<field> lines{
            {field_id::cache_control, "Cache-Control", "private=\"set-cookie, X-Who\", max-age=9"},
            {field_id::cache_control, "Cache-Control", "no-cache=foo"}};
        const auto withheld = [&](std::string_view name) {
            return withheld_names{lines}.has({field_id::unknown, name, "value"});
        };
        CHECK(withheld("x-who"));
        CHECK(withheld("Set-Cookie"));
        CHECK(withheld("FOO"));
        CHECK_FALSE(withheld("X-Wh"));
        CHECK_FALSE(withheld("max-age"));
    }

    TEST_CASE("a directive that names very many fields is obeyed whole") {
        const auto naming = [](std::size_t count) {
            std::string names = "a0";
            for (std::size_t i = 1; i < count; ++i) {
                names += ",a" + std::to_string(i);
            }
            return names;
        };
        const auto most = withheld_names::most;
        CHECK(response("private=\"" + naming(most) + '"').private_fields);
        CHECK_FALSE(response("private=\"" + naming(most) + '"').private_);
        CHECK(response("private=\"" + naming(most + 1) + '"').private_);
        const auto both = response("private=\"" + naming(most) + "\", no-cache=\"b\"");
        CHECK((both.private_fields && both.no_cache));
    }

    TEST_CASE("names that only resemble a directive are extensions") {
        CHECK(response("xmax-age=5, max-ages=5, no_store, no-stores, privat, no-store;x") ==
              response_directives{});
    }

    TEST_CASE("max-stale without an argument allows any staleness") {
        CHECK(request("max-stale").max_stale_any);
        CHECK_FALSE(request("max-stale").max_stale);
        CHECK_FALSE(request("max-stale=5").max_stale_any);
        CHECK(request("max-stale=5").max_stale == 5s);
    }

    TEST_CASE("a max-stale or min-fresh that is no time is not there") {
        for (const auto* text : {"max-stale=x", "max-stale=", "max-stale=-1", "min-fresh=x"}) {
            CAPTURE(text);
            CHECK(request(text) == request_directives{});
        }
    }

    TEST_CASE("Pragma: no-cache counts where there is no Cache-Control") {
        CHECK(read_request_directives(lines({"Pragma: No-Cache"})).no_cache);
        CHECK(read_request_directives(lines({"Pragma: x, no-cache"})).no_cache);
        CHECK_FALSE(read_request_directives(lines({"Pragma: x"})).no_cache);
        CHECK_FALSE(read_request_directives(lines({"Pragma: no-cache", "Cache-Control: max-age=9"}))
                        .no_cache);
        CHECK_FALSE(
            read_request_directives(lines({"Pragma: no-cache", "Cache-Control:"})).no_cache);
    }

    TEST_CASE("Pragma in a response means nothing") {
        CHECK(read_response_directives(lines({"Pragma: no-cache"})) == response_directives{});
    }

    TEST_CASE("a line full of quotes is read in linear time") {
        std::string value;
        for (int i = 0; i < 20'000; ++i) {
            value += "x=\"\\\",";
        }
        CHECK(response(value + "no-store").no_store);
    }
}

}  // namespace

}  // namespace reprise::proxy::http
