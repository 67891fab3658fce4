#include "proxy/http/structured_fields.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace reprise::proxy::http {

namespace {

std::string_view name_of(sf_kind kind) {
    switch (kind) {
    case sf_kind::integer: return "integer";
    case sf_kind::decimal: return "decimal";
    case sf_kind::string: return "string";
    case sf_kind::token: return "token";
    case sf_kind::byte_sequence: return "byte-sequence";
    case sf_kind::boolean: return "boolean";
    case sf_kind::date: return "date";
    case sf_kind::display_string: return "display-string";
    case sf_kind::inner_list: return "inner-list";
    }
    return "?";
}

std::string shown(const sf_value& value) {
    std::string text{name_of(value.kind)};
    switch (value.kind) {
    case sf_kind::integer:
    case sf_kind::decimal:
    case sf_kind::boolean:
    case sf_kind::date: text += " " + std::to_string(value.number); break;
    case sf_kind::string:
    case sf_kind::token:
    case sf_kind::byte_sequence:
    case sf_kind::display_string:
    case sf_kind::inner_list: text.append(" [").append(value.text).append("]"); break;
    }
    return text.append(value.parameters);
}

/// "key: value" of each member, joined by "|"; "failed" where the text is no dictionary.
std::string dictionary(std::string_view text) {
    dictionary_reader reader{text};
    std::string all;
    while (const auto member = reader.next()) {
        all.append(all.empty() ? "" : "|").append(member->key).append(": ");
        all.append(shown(member->value));
    }
    return reader.failed() ? "failed" : all;
}

/// The one value of "k=text".
std::string item(std::string_view text) {
    const auto all = dictionary("k=" + std::string{text});
    return all == "failed" ? all : all.substr(std::string_view{"k: "}.size());
}

TEST_SUITE("http/structured_fields") {
    TEST_CASE("a dictionary's members are read in order, with and without values") {
        CHECK(dictionary("").empty());
        CHECK(dictionary("  ").empty());
        CHECK(dictionary("a") == "a: boolean 1");
        CHECK(dictionary("a=1") == "a: integer 1");
        CHECK(dictionary(" a=1 ,\tb ") == "a: integer 1|b: boolean 1");
        CHECK(dictionary("a=?0, b, c; foo=bar") ==
              "a: boolean 0|b: boolean 1|c: boolean 1; foo=bar");
        CHECK(dictionary("*x.y-z_9=tok") == "*x.y-z_9: token [tok]");
    }

    TEST_CASE("a repeated key is given out again, for the last to count") {
        CHECK(dictionary("a=1,b=2,a=3") == "a: integer 1|b: integer 2|a: integer 3");
    }

    TEST_CASE("what is no dictionary fails, wherever the mistake stands") {
        for (const auto* text :
             {",",          "a,",    "a,,b",    ",a",      "A=1",    "a=1 b=2", "1a",   "a =1",
              "a= 1",       "a=",    "a=1,&&&", "\ta",     "a\t",    "a=\"x",   "a;",   "a;=1",
              "a;B",        "a=(",   "a=(1",    "a=(1,2)", "a=1;;b", "a=(1)2",  "-a=1", "a=b c",
              "a=\xc3\xbc", "a=1\n", "a==1",    "a=!",     "\"a\"=1"}) {
            CAPTURE(text);
            CHECK(dictionary(text) == "failed");
        }
    }

    TEST_CASE("a reader that failed gives nothing more") {
        dictionary_reader reader{"a, B, c"};
        CHECK(reader.next().has_value());
        CHECK_FALSE(reader.next().has_value());
        CHECK(reader.failed());
        CHECK_FALSE(reader.next().has_value());
    }

    TEST_CASE("integers have a sign and at most 15 digits") {
        CHECK(item("0") == "integer 0");
        CHECK(item("-42") == "integer -42");
        CHECK(item("007") == "integer 7");
        CHECK(item("5 ") == "integer 5");
        CHECK(item("999999999999999") == "integer 999999999999999");
        CHECK(item("-999999999999999") == "integer -999999999999999");
        for (const auto* text : {"1000000000000000", "-", "--1", "+1", "1e3", "0x1", "1 2"}) {
            CAPTURE(text);
            CHECK(item(text) == "failed");
        }
    }

    TEST_CASE("decimals have at most 12 digits, a point and one to three more") {
        CHECK(item("1.5") == "decimal 1500");
        CHECK(item("-0.125") == "decimal -125");
        CHECK(item("999999999999.999") == "decimal 999999999999999");
        for (const auto* text : {"1.", ".5", "1.1234", "1234567890123.1", "1.2.3", "1.-2"}) {
            CAPTURE(text);
            CHECK(item(text) == "failed");
        }
    }

    TEST_CASE("strings are printable ASCII with two escapes") {
        CHECK(item("\"\"") == "string []");
        CHECK(item(R"("a \"b\" \\")") == R"(string [a \"b\" \\])");
        for (const auto* text :
             {"\"", "\"a", R"("\a")", R"("\)", "\"\x7f\"", "\"\t\"", "\"\xfc\"", "'a'"}) {
            CAPTURE(text);
            CHECK(item(text) == "failed");
        }
    }

    TEST_CASE("tokens, bytes, booleans, dates and display strings are told apart") {
        CHECK(item("*a:b/c%d") == "token [*a:b/c%d]");
        CHECK(item("A") == "token [A]");
        CHECK(item(":aGVsbG8=:") == "byte-sequence [aGVsbG8=]");
        CHECK(item("::") == "byte-sequence []");
        CHECK(item("?1") == "boolean 1");
        CHECK(item("@-5") == "date -5");
        CHECK(item("%\"f%c3%bc\"") == "display-string [f%c3%bc]");
        for (const auto* text : {":aGVsbG8=",
                                 ":a b:",
                                 "?2",
                                 "?",
                                 "?10",
                                 "@1.5",
                                 "@",
                                 "%a",
                                 "%\"%C3\"",
                                 "%\"%c\"",
                                 "%\"a",
                                 "((1))",
                                 ""}) {
            CAPTURE(text);
            CHECK(item(text) == "failed");
        }
    }

    TEST_CASE("parameters belong to their value") {
        CHECK(item("a;b;c=1; d=\"x;y\"") == "token [a];b;c=1; d=\"x;y\"");
        CHECK(item("a ;b") == "failed");
    }

    TEST_CASE("inner lists hold items alone") {
        CHECK(dictionary("a=()") == "a: inner-list []");
        CHECK(dictionary("a=(1 \"x )\" t;p);q=2,b") ==
              "a: inner-list [1 \"x )\" t;p];q=2|b: boolean 1");
        CHECK(dictionary("a=((1))") == "failed");
        CHECK(dictionary("a=(1\"x\")") == "failed");
    }

    TEST_CASE("an inner list's items and a value's parameters are walked one by one") {
        const auto items = [](std::string_view text) {
            inner_list_reader reader{text};
            std::string all;
            while (const auto item = reader.next()) {
                all.append(all.empty() ? "" : "|").append(shown(*item));
            }
            return reader.failed() ? "failed" : all;
        };
        CHECK(items("").empty());
        CHECK(items("  ").empty());
        CHECK(items(R"( "@method"  "x;y";p=1 tok )") ==
              R"(string [@method]|string [x;y];p=1|token [tok])");
        for (const auto* text : {"\"a\"\"b\"", "(1)", "1,2", "\"a", "\ta", "a;", "a )"}) {
            CAPTURE(text);
            CHECK(items(text) == "failed");
        }
        const auto parameters = [](std::string_view text) {
            parameter_reader reader{text};
            std::string all;
            while (const auto one = reader.next()) {
                all.append(all.empty() ? "" : "|").append(one->key).append(": ");
                all.append(shown(one->value));
            }
            return reader.failed() ? "failed" : all;
        };
        CHECK(parameters("").empty());
        CHECK(parameters(";a; b=1;c=\"x;y\";a=?0") ==
              "a: boolean 1|b: integer 1|c: string [x;y]|a: boolean 0");
        for (const auto* text : {"a", " ;a", ";", ";A", ";a=", ";a=(1)", ";a ;b", ";a,"}) {
            CAPTURE(text);
            CHECK(parameters(text) == "failed");
        }
    }

    TEST_CASE("a dictionary of a thousand members is read, and a deep one is no deeper") {
        std::string many = "a0=0";
        for (int i = 1; i < 1024; ++i) {
            many += ", a" + std::to_string(i) + "=" + std::to_string(i);
        }
        CHECK(dictionary(many) != "failed");
        CHECK(dictionary("a=" + std::string(100'000, '(')) == "failed");
    }

    TEST_CASE("every prefix of a dictionary is read or refused, and never read past") {
        const std::string whole = "a=1.5;p=\"\\\"\", b=(x :aa=: ?1;q);r, c=@9, d=%\"%c3\"";
        REQUIRE(dictionary(whole) != "failed");
        for (std::size_t cut = 0; cut < whole.size(); ++cut) {
            CAPTURE(cut);
            const std::vector<char> exact{whole.begin(),
                                          whole.begin() + static_cast<std::ptrdiff_t>(cut)};
            (void)dictionary({exact.data(), exact.size()});
        }
    }
}

}  // namespace

}  // namespace reprise::proxy::http
