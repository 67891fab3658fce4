#include "tools/from_squid/regex_globs.hpp"

#include <doctest/doctest.h>

namespace reprise::from_squid {

namespace {
using texts = std::vector<std::string>;
globs exact(texts patterns) {
    return {std::move(patterns), false};
}
globs wider(texts patterns) {
    return {std::move(patterns), true};
}
}  // namespace

TEST_SUITE("from_squid/regex_globs") {
    TEST_CASE("what configurations write becomes patterns") {
        CHECK(globs_of(".") == wider({"*"}));
        CHECK(globs_of("^http://") == exact({"http://*"}));
        CHECK(globs_of("^https?://a\\.example/") ==
              exact({"https://a.example/*", "http://a.example/*"}));
        CHECK(globs_of("(/cgi-bin/|\\?)") == exact({"*/cgi-bin/*", "*?*"}));
        CHECK(globs_of("\\.(gif|jpe?g)$") == exact({"*.gif", "*.jpeg", "*.jpg"}));
        CHECK(globs_of("[Dd]eb$") == exact({"*Deb", "*deb"}));
        CHECK(globs_of("^http://.*\\.example/.*\\.iso$") == exact({"http://*.example/*.iso"}));
        CHECK(globs_of("Packages(\\.gz)*$") == wider({"*Packages*"}));
        CHECK(globs_of("^[^:]+://a\\.example(:[0-9]{2,5})?/") ==
              wider({"*://a.example:*/*", "*://a.example/*"}));
        CHECK(globs_of("a\\dx") == wider({"*a*x*"}));
        CHECK(globs_of("(?:a|b)") == exact({"*a*", "*b*"}));
        CHECK(globs_of("") == exact({"*"}));
    }

    TEST_CASE("a class ends where it does for Squid, whatever brackets it has within") {
        CHECK(globs_of("a[[:digit:]]b") == wider({"*a*b*"}));
        CHECK(globs_of("a[x[:alpha:]_]+b") == wider({"*a*b*"}));
        CHECK(globs_of("[[.].]x]y") == wider({"*y*"}));
        CHECK(globs_of("[[=e=]]x") == wider({"*x*"}));
        CHECK(globs_of("[]a]b$") == exact({"*]b", "*ab"}));
        CHECK(globs_of("[^]a]b") == wider({"*b*"}));
        for (const auto* text : {"[[:digit:]", "[[:digit]", "[[:]]", "[[.x]", "[^]a"}) {
            CAPTURE(text);
            CHECK_FALSE(globs_of(text));
        }
    }

    TEST_CASE("an anchor where no URL has one leaves nothing of its alternative") {
        CHECK(globs_of("a^b|c") == exact({"*c*"}));
        CHECK(globs_of("a$b")->patterns.empty());
    }

    TEST_CASE("what is no such expression, or needs too much, is none") {
        for (const auto* text : {"(a", "a)", "[a", "a{2", "*a", "+", "(?=a)", "\\", "(a)\\1"}) {
            CAPTURE(text);
            CHECK_FALSE(globs_of(text));
        }
        CHECK_FALSE(globs_of("[abc][abc][abc][abc]"));
        CHECK_FALSE(globs_of(std::string(40, '(') + std::string(40, ')')));
    }
}

}  // namespace reprise::from_squid
