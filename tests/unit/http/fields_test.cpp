#include "proxy/http/fields.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string_view>

namespace reprise::proxy::http {

namespace {

TEST_SUITE("http/fields") {
    TEST_CASE("iequals folds ASCII letters and nothing else") {
        struct row {
            const char *a, *b;
            bool equal;
        };
        const row rows[] = {
            {"", "", true},
            {"Age", "aGE", true},
            {"azAZ-09", "AZaz-09", true},
            {"age", "ages", false},
            {"age", "agf", false},
            {"a-b", "a\rb", false},
            {"a@b", "a`b", false},
            {"a[b", "a{b", false},
            {"\xc3\xa4", "\xc3\x84", false},
        };
        for (const auto& each : rows) {
            CAPTURE(each.a);
            CHECK(iequals(each.a, each.b) == each.equal);
            CHECK(iequals(each.b, each.a) == each.equal);
        }
    }

    // Under the address sanitizer this fails if one byte too many is read: what is compared may end
    // where its buffer does. Boost 1.81's own iequals reads on whenever letter case differs.
    TEST_CASE("a line is found by its whole name, without case, and where it begins") {
        constexpr std::string_view lines = "Foo-Bar: x\r\nX: Foo: y\r\nlast:\r\n";
        for (const std::string_view name : {"foo-bar", "X", "LAST"}) {
            CHECK(has_line(lines, name));
        }
        for (const std::string_view name : {"foo", "bar", "foo-bar: x", "", "y"}) {
            CHECK_FALSE(has_line(lines, name));
        }
        CHECK_FALSE(has_line("", "x"));
    }

    TEST_CASE("iequals reads nothing past its arguments") {
        const auto tight = std::make_unique<char[]>(3);
        tight[0] = 'A';
        tight[1] = 'G';
        tight[2] = 'E';
        CHECK(iequals({tight.get(), 3}, "age"));
        CHECK(iequals("age", {tight.get(), 3}));
        CHECK_FALSE(iequals({tight.get(), 3}, "agx"));
    }
}

}  // namespace

}  // namespace reprise::proxy::http
