#include "config/json.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace reprise::config;

namespace {

json_value value_of_text(std::string_view text) {
    auto answer = parse_json(text);
    REQUIRE(std::holds_alternative<json_value>(answer));
    return std::get<json_value>(std::move(answer));
}

json_error error_of(std::string_view text) {
    auto answer = parse_json(text);
    REQUIRE(std::holds_alternative<json_error>(answer));
    return std::get<json_error>(std::move(answer));
}

}  // namespace

TEST_SUITE("config/json") {
    TEST_CASE("both of two members with one name are kept, in order") {
        const auto object = value_of_text(R"({"b": 1, "a": 2, "b": 3})");
        CHECK(object.names == std::vector<std::string>{"b", "a", "b"});
        CHECK(brief(object) == R"({"b": 1, "a": 2, "b": 3})");
    }

    TEST_CASE("numbers keep how they were written") {
        const auto list = value_of_text("[0, -7, 18446744073709551615, 18446744073709551616, 1e3]");
        CHECK(list.items[0].whole == 0);
        CHECK(list.items[1].negative);
        CHECK(list.items[2].whole == ~0ull);
        CHECK(list.items[3].kind == json_kind::real);
        CHECK(brief(list) == "[0, -7, 18446744073709551615, 18446744073709551616, 1e3]");
    }

    TEST_CASE("an error names the line and column of what it is about") {
        CHECK(error_of("{\n\"a\" 1}").line == 2);
        CHECK(error_of("{\n\"a\" 1}").column == 5);
        CHECK(error_of("[1, 2").line == 1);
        CHECK(error_of("[1, 2").column == 6);
        CHECK(error_of("nul").line == 1);
    }

    TEST_CASE("what stands behind a zero byte is not passed over") {
        using namespace std::string_view_literals;
        for (const auto text : {"{}\0"sv, "{}\n\0{\"a\": 1}"sv, "{}\n\n \0\0 x"sv}) {
            const auto parsed = parse_json(text);
            REQUIRE(std::holds_alternative<json_error>(parsed));
            const auto& error = std::get<json_error>(parsed);
            CHECK(error.reason.find("zero byte") != error.reason.npos);
            const auto lines = std::count(text.begin(), text.end(), '\n');
            CHECK(error.line == static_cast<std::size_t>(lines) + 1);
            CHECK(error.column == text.find('\0') - (text.rfind('\n') + 1) + 1);
        }
    }

    TEST_CASE("a reason is printable and short, whatever the text") {
        for (std::string text : {std::string(4000, '\x7f'),
                                 "\"" + std::string(4000, 'x'),
                                 std::string("\"\x1b\""),
                                 std::string("\xc2\x9b"),
                                 std::string("{\"\xff\xfe\"}")}) {
            const auto reason = error_of(text).reason;
            CHECK_FALSE(reason.empty());
            CHECK(reason.size() <= 300);
            for (const char c : reason) {
                CHECK(c >= 0x20);
                CHECK(c < 0x7f);
            }
        }
    }

    TEST_CASE("every proper prefix of an object is refused") {
        const std::string_view text = R"({"a": [1, 2.5, "\u00e9"], "b": {"c": null}})";
        for (std::size_t cut = 0; cut < text.size(); ++cut) {
            CAPTURE(cut);
            CHECK(std::holds_alternative<json_error>(parse_json(text.substr(0, cut))));
        }
        CHECK(std::holds_alternative<json_value>(parse_json(text)));
    }

    TEST_CASE("limits stop the parser before the memory is spent") {
        const json_limits small{.bytes = 20, .depth = 2, .values = 4};
        CHECK(std::holds_alternative<json_value>(parse_json("[[0, 1]]", small)));
        CHECK(std::holds_alternative<json_error>(parse_json("[[[]]]", small)));
        CHECK(std::holds_alternative<json_error>(parse_json("[0, 1, 2, 3]", small)));
        const std::string fits = "[0]" + std::string(17, ' ');
        CHECK(std::holds_alternative<json_value>(parse_json(fits, small)));
        CHECK(std::holds_alternative<json_error>(parse_json(fits + ' ', small)));
    }

    TEST_CASE("what is brief is cut between characters, and control characters are escaped") {
        CHECK(brief(value_of_text("[1, [2, {\"a\": \"b\"}]]")) == "[1, [2, {\"a\": \"b\"}]]");
        CHECK(brief(value_of_text("[1, 2, 3, 4, 5, 6]"), 10) == "[1, 2, ...");
        CHECK(in_quotes("a\"b\\c\n\x1b\x7f") == "\"a\\\"b\\\\c\\u000a\\u001b\\u007f\"");
        CHECK(in_quotes("\xc2\x9b"
                        "caf\xc3\xa9") == "\"\\u009bcaf\xc3\xa9\"");
        for (std::size_t most = 4; most < 20; ++most) {
            CAPTURE(most);
            const auto cut = in_quotes("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9\xe2\x82\xac",
                                       most);
            CHECK(cut.size() <= std::max<std::size_t>(most, 3));
            // Valid UTF-8: the JSON reader takes nothing else.
            CHECK(std::holds_alternative<json_value>(
                parse_json('"' + cut.substr(1, cut.find_last_not_of(".\"")) + '"')));
        }
    }
}
