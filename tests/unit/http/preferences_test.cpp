#include "proxy/http/preferences.hpp"
#include "tests/unit/http/field_lines.hpp"

#include <doctest/doctest.h>

#include <string>

namespace reprise::proxy::http {

namespace {

/// "name/weight" of each member; "as it stands" where the list is not plain.
std::string listed(std::initializer_list<std::string_view> texts) {
    const auto request = lines(texts);
    const preference_list list{request, "accept-language"};
    std::string all;
    for (const auto& [name, weight] : list.members()) {
        all.append(all.empty() ? "" : " ").append(name).append("/").append(weight);
    }
    return list.is_plain() ? all : "as it stands";
}

TEST_SUITE("http/preferences") {
    TEST_CASE("members are sorted by name, over all lines of the field") {
        CHECK(listed({}).empty());
        CHECK(listed({"Accept-Language:"}).empty());
        CHECK(listed({"Accept-Language: en, De ,, *"}) == "*/ De/ en/");
        CHECK(listed({"Accept-Language: en", "X: y", "accept-language: de"}) == "de/ en/");
    }

    TEST_CASE("a weight is written in its shortest form, and 1 not at all") {
        struct row {
            const char *text, *weight;
        };
        for (const auto& [text, weight] : {row{"1", ""},
                                           row{"1.", ""},
                                           row{"1.000", ""},
                                           row{"0", "0"},
                                           row{"0.", "0"},
                                           row{"0.000", "0"},
                                           row{"0.5", "0.5"},
                                           row{"0.500", "0.5"},
                                           row{"0.505", "0.505"},
                                           row{"0.050", "0.05"}}) {
            CAPTURE(text);
            const auto value = std::string{"en;q="} + text;
            const field line{field_id::accept_language, "Accept-Language", value};
            const preference_list list{{&line, 1}, "accept-language"};
            REQUIRE(list.is_plain());
            REQUIRE(list.members().size() == 1);
            CHECK(list.members()[0].weight == weight);
        }
        CHECK(listed({"Accept-Language: en ;\tQ=0.5"}) == "en/0.5");
    }

    TEST_CASE("a pair that is repeated counts once, and a name with two weights twice") {
        CHECK(listed({"Accept-Language: en, EN;q=1.0, en"}).size() == 3);
        CHECK(listed({"Accept-Language: en, en;q=0.5"}) == "en/ en/0.5");
    }

    TEST_CASE("any other member leaves the field as it stands") {
        for (const auto* other : {"Accept-Language: en;q=2",
                                  "Accept-Language: en;q=1.001",
                                  "Accept-Language: en;q=0.1234",
                                  "Accept-Language: en;q=.5",
                                  "Accept-Language: en;q=",
                                  "Accept-Language: en;q",
                                  "Accept-Language: en;",
                                  "Accept-Language: en;x=1",
                                  "Accept-Language: en;q=0.5;x=1",
                                  "Accept-Language: en q=1",
                                  "Accept-Language: en de",
                                  "Accept-Language: \"en\"",
                                  "Accept-Language: ;q=1",
                                  "Accept-Language: \xc3\xbc"}) {
            CAPTURE(other);
            CHECK(listed({other}) == "as it stands");
            CHECK(listed({"Accept-Language: fr", other}) == "as it stands");
        }
    }

    TEST_CASE("more members than the bound leave the field as it stands") {
        std::string text = "a0";
        for (std::size_t i = 1; i < preference_list::most_members; ++i) {
            text += ", a" + std::to_string(i);
        }
        const field few{field_id::accept_language, "Accept-Language", text};
        CHECK(preference_list{{&few, 1}, "accept-language"}.is_plain());
        const auto repeated = text + ", A0";
        const field again{field_id::accept_language, "Accept-Language", repeated};
        CHECK(preference_list{{&again, 1}, "accept-language"}.is_plain());
        const auto more = text + ", b";
        const field many{field_id::accept_language, "Accept-Language", more};
        CHECK_FALSE(preference_list{{&many, 1}, "accept-language"}.is_plain());
    }
}

}  // namespace

}  // namespace reprise::proxy::http
