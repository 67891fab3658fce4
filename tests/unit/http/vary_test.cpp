#include "proxy/http/forwarding.hpp"
#include "proxy/http/vary.hpp"
#include "tests/unit/http/field_lines.hpp"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

namespace reprise::proxy::http {

namespace {

using texts = std::initializer_list<std::string_view>;

vary_spec spec_of(texts response) {
    return read_vary(lines(response));
}

/// Two requests select the same variant; asked of both functions, both ways round.
bool same_variant(const vary_spec& spec, texts one, texts other) {
    const auto first = lines(one);
    const auto second = lines(other);
    const auto first_values = selecting_values(spec, first);
    const auto second_values = selecting_values(spec, second);
    CHECK(matches(spec, first_values, first));
    CHECK(matches(spec, second_values, second));
    const bool same = first_values == second_values;
    CHECK(matches(spec, first_values, second) == same);
    CHECK(matches(spec, second_values, first) == same);
    return same;
}

TEST_SUITE("http/vary") {
    TEST_CASE("all Vary lines count, in lower case, sorted, each name once") {
        CHECK(spec_of({}).empty());
        CHECK(spec_of({"Vary:", "Vary: ,,"}).empty());
        CHECK(spec_of({"Vary: Foo"}).names == "foo");
        CHECK(spec_of({"Vary: foo, BAR", "X: y", "Vary: Baz,FOO,"}).names == "bar,baz,foo");
        CHECK(spec_of({"Vary: a, b"}) == spec_of({"Vary: B", "Vary: A"}));
    }

    TEST_CASE("a star anywhere matches nothing") {
        for (const auto* star :
             {"Vary: *", "Vary: *, *", "Vary: , *", "Vary: *, Foo", "Vary: Foo, *"}) {
            CAPTURE(star);
            CHECK(spec_of({star}).any);
            CHECK(spec_of({"Vary: Bar", star}).any);
            CHECK_FALSE(spec_of({star}).empty());
            CHECK_FALSE(matches(spec_of({star}), "", {}));
            const auto response = lines({star});
            CHECK(varies_by_anything(response));
        }
    }

    TEST_CASE("a name that can be no field's matches nothing") {
        CHECK(spec_of({"Vary: foo bar"}).any);
        CHECK(spec_of({"Vary: \"foo\""}).any);
        CHECK(spec_of({"Vary: foo, b\xc3\xa4r"}).any);
    }

    TEST_CASE("more names than the bound match nothing") {
        std::string few = "n0";
        for (std::size_t i = 1; i < vary_spec::most_names; ++i) {
            few += ",n" + std::to_string(i);
        }
        const field allowed{field_id::vary, "Vary", few};
        CHECK_FALSE(read_vary({&allowed, 1}).any);
        const auto many = few + ",one-more";
        const field refused{field_id::vary, "Vary", many};
        CHECK(read_vary({&refused, 1}).any);
        const auto repeated = few + ",N0,n1";
        const field again{field_id::vary, "Vary", repeated};
        CHECK_FALSE(read_vary({&again, 1}).any);
        const std::string long_name(vary_spec::most_bytes, 'x');
        const field too_long{field_id::vary, "Vary", long_name};
        CHECK(read_vary({&too_long, 1}).any);
    }

    TEST_CASE("requests with equal values share a variant, whatever else they hold") {
        const auto spec = spec_of({"Vary: Foo, Bar"});
        CHECK(same_variant(spec, {"Foo: 1", "Bar: 2"}, {"X: y", "bar: 2", "FOO: 1"}));
        CHECK(same_variant(spec, {"Foo: 1"}, {"Foo: 1", "Baz: 3"}));
        CHECK(same_variant(spec, {}, {"Baz: 3"}));
        CHECK(same_variant(vary_spec{}, {"Foo: 1"}, {"Foo: 2"}));
    }

    TEST_CASE("requests that differ in a selecting value do not") {
        const auto spec = spec_of({"Vary: Foo, Bar"});
        CHECK_FALSE(same_variant(spec, {"Foo: 1"}, {"Foo: 2"}));
        CHECK_FALSE(same_variant(spec, {"Foo: 1"}, {"Foo: 12"}));
        CHECK_FALSE(same_variant(spec, {"Foo: a"}, {"Foo: A"}));
        CHECK_FALSE(same_variant(spec, {"Foo: 1"}, {"Bar: 1"}));
        CHECK_FALSE(same_variant(spec, {"Foo: 1", "Bar: 2"}, {"Foo: 2", "Bar: 1"}));
        CHECK_FALSE(same_variant(spec, {"Foo: 1, 2"}, {"Foo: 2, 1"}));
    }

    TEST_CASE("absent and empty are two values") {
        const auto spec = spec_of({"Vary: Foo"});
        CHECK_FALSE(same_variant(spec, {}, {"Foo:"}));
        CHECK_FALSE(same_variant(spec, {}, {"Foo: -"}));
        CHECK_FALSE(same_variant(spec, {"Foo:"}, {"Foo: ="}));
        CHECK_FALSE(same_variant(spec, {"Foo:"}, {"Foo: ,"}));
    }

    TEST_CASE("lines are joined and white space around commas is ignored") {
        const auto spec = spec_of({"Vary: Foo"});
        CHECK(same_variant(spec, {"Foo: 1", "X: y", "Foo: 2"}, {"Foo: 1, 2"}));
        CHECK(same_variant(spec, {"Foo: 1,2"}, {"Foo: 1 \t,  2"}));
        CHECK_FALSE(same_variant(spec, {"Foo: 1 2"}, {"Foo: 1  2"}));
        CHECK_FALSE(same_variant(spec, {"Foo: 12"}, {"Foo: 1", "Foo: 2"}));
    }

    TEST_CASE("white space inside quotes stays") {
        const auto spec = spec_of({"Vary: Foo"});
        CHECK_FALSE(same_variant(spec, {"Foo: \"1, 2\""}, {"Foo: \"1,2\""}));
        CHECK_FALSE(same_variant(spec, {"Foo: \"\\\", 2\""}, {"Foo: \"\\\",2\""}));
        CHECK(same_variant(spec, {"Foo: \"1\" , 2"}, {"Foo: \"1\",2"}));
    }

    TEST_CASE("of what is no list each byte counts, and each line") {
        const auto spec = spec_of({"Vary: User-Agent"});
        CHECK_FALSE(same_variant(
            spec, {"User-Agent: a (KHTML, like b)"}, {"User-Agent: a (KHTML,like b)"}));
        CHECK(same_variant(
            spec, {"User-Agent: a (KHTML, like b)"}, {"user-agent: a (KHTML, like b)"}));
        CHECK_FALSE(same_variant(spec, {"User-Agent: 1", "User-Agent: 2"}, {"User-Agent: 1,2"}));
        CHECK_FALSE(same_variant(
            spec, {"User-Agent: 1", "User-Agent: 2"}, {"User-Agent: 2", "User-Agent: 1"}));
        CHECK(same_variant(
            spec, {"User-Agent: 1", "X: y", "User-Agent: 2"}, {"User-Agent: 1", "User-Agent: 2"}));
        CHECK_FALSE(same_variant(spec, {"User-Agent: 1", "User-Agent:"}, {"User-Agent: 1"}));
        const auto page = spec_of({"Vary: Referer"});
        CHECK_FALSE(same_variant(page, {"Referer: /a?b, c"}, {"Referer: /a?b,c"}));
    }

    TEST_CASE("a name is found among those of a spec whole") {
        const auto spec = spec_of({"Vary: Foo, Accept-X"});
        CHECK((spec.has("foo") && spec.has("accept-x")));
        CHECK_FALSE((spec.has("accept") || spec.has("x") || spec.has("")));
        CHECK_FALSE(vary_spec{}.has("foo"));
    }

    TEST_CASE("Accept-Language, -Encoding and -Charset have no case") {
        const auto spec = spec_of({"Vary: Accept-Language, Accept-Encoding, Accept"});
        CHECK(same_variant(spec, {"Accept-Language: en, DE"}, {"accept-language: EN,de"}));
        CHECK(same_variant(spec, {"Accept-Encoding: GZIP"}, {"Accept-Encoding: gzip"}));
        CHECK_FALSE(same_variant(spec, {"Accept: a/b;c=D"}, {"Accept: a/b;c=d"}));
    }

    TEST_CASE("a field that Connection keeps from the origin selects as if it were absent") {
        const auto spec = spec_of({"Vary: Foo"});
        auto poisoning = lines({"Connection: foo", "Foo: 1"});
        strip_hop_by_hop(poisoning);
        const auto values = selecting_values(spec, poisoning);
        CHECK(matches(spec, values, {}));
        CHECK_FALSE(matches(spec, values, lines({"Foo: 1"})));
    }

    TEST_CASE("stored values with more or less behind them do not match") {
        const auto spec = spec_of({"Vary: Foo"});
        const auto request = lines({"Foo: 1"});
        const auto values = selecting_values(spec, request);
        CHECK_FALSE(matches(spec, values + "x", request));
        CHECK_FALSE(matches(spec, values.substr(0, values.size() - 1), request));
        CHECK_FALSE(matches(spec, "", request));
        CHECK_FALSE(matches(vary_spec{}, "x", request));
    }

    TEST_CASE("matches agrees with comparing the canonical texts") {
        const std::vector<std::string_view> values{
            "", "-", "=", ",", "a", "A", "a,b", "a , b", "\"a, b\"", "\"a,b\"", "\"", "\\", "a b"};
        const auto spec = spec_of({"Vary: X, Accept-Language, Y"});
        std::minstd_rand random{7};
        const auto any_request = [&] {
            std::vector<field> request;
            const std::string_view names[] = {"x", "Accept-Language", "Y", "Z"};
            for (auto count = random() % 5; count > 0; --count) {
                request.push_back(
                    {field_id::unknown, names[random() % 4], values[random() % values.size()]});
            }
            return request;
        };
        for (int round = 0; round < 20'000; ++round) {
            const auto one = any_request();
            const auto other = any_request();
            CAPTURE(joined(one));
            CAPTURE(joined(other));
            const auto text = selecting_values(spec, one);
            REQUIRE(matches(spec, text, other) == (text == selecting_values(spec, other)));
        }
    }

    TEST_CASE("preferences that rank alike are one variant, in any order and spelling") {
        const auto spec = spec_of({"Vary: Accept-Language, Accept-Encoding, Accept-Charset"});
        CHECK(same_variant(spec, {"Accept-Language: en, de"}, {"Accept-Language: de, en"}));
        CHECK(same_variant(spec,
                           {"Accept-Language: en-GB, de;q=0.5"},
                           {"Accept-Language: DE ; q=0.500", "accept-language: en-gb;q=1.0,,"}));
        CHECK(same_variant(
            spec, {"Accept-Encoding: gzip, br"}, {"Accept-Encoding: br", "Accept-Encoding: GZIP"}));
        CHECK(same_variant(spec, {"Accept-Charset: a, b, a"}, {"Accept-Charset: b, a"}));
        CHECK(same_variant(spec, {"Accept-Encoding:"}, {"Accept-Encoding: ,"}));
    }

    TEST_CASE("preferences that rank otherwise are not") {
        const auto spec = spec_of({"Vary: Accept-Language, Accept-Encoding"});
        CHECK_FALSE(same_variant(spec, {}, {"Accept-Encoding:"}));
        CHECK_FALSE(same_variant(spec, {"Accept-Language: en"}, {"Accept-Language: en, de"}));
        CHECK_FALSE(same_variant(spec, {"Accept-Language: en"}, {"Accept-Language: en;q=0.9"}));
        CHECK_FALSE(same_variant(spec, {"Accept-Language: en;q=0"}, {"Accept-Language:"}));
        CHECK_FALSE(same_variant(
            spec, {"Accept-Language: en;q=0.5, de"}, {"Accept-Language: de;q=0.5, en"}));
        CHECK_FALSE(same_variant(spec, {"Accept-Encoding: gzip"}, {"Accept-Encoding: x-gzip"}));
        CHECK_FALSE(same_variant(spec, {"Accept-Encoding: a"}, {"Accept-Language: a"}));
    }

    TEST_CASE("preferences against the grammar are compared as they stand") {
        const auto spec = spec_of({"Vary: Accept-Language"});
        CHECK(same_variant(spec, {"Accept-Language: en x, DE"}, {"Accept-Language: en X,de"}));
        CHECK_FALSE(
            same_variant(spec, {"Accept-Language: en x, de"}, {"Accept-Language: de, en x"}));
        CHECK_FALSE(same_variant(spec, {"Accept-Language: en;q=2"}, {"Accept-Language: en;q=1"}));
    }

    TEST_CASE("order matters in every field that is no list of weights") {
        const auto spec = spec_of({"Vary: Accept, Accept-Language-Foo"});
        CHECK_FALSE(same_variant(spec, {"Accept: a/a, b/b"}, {"Accept: b/b, a/a"}));
        CHECK_FALSE(
            same_variant(spec, {"Accept-Language-Foo: a, b"}, {"Accept-Language-Foo: b, a"}));
    }
}

}  // namespace

}  // namespace reprise::proxy::http
