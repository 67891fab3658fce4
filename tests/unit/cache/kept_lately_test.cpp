#include "proxy/cache/kept_lately.hpp"

#include <doctest/doctest.h>

#include <string>

namespace reprise::proxy::cache::test {

TEST_SUITE("cache/kept_lately") {
    TEST_CASE("a directory is relied on when its last few responses were stored") {
        kept_lately of;
        const std::string there = "http://origin.example/a/";
        CHECK_FALSE(of.expects(there + "1"));
        for (unsigned i = 0; i < kept_lately::enough; ++i) {
            CHECK_FALSE(of.expects(there + "1"));
            of.note(there + std::to_string(i), true);
        }
        CHECK(of.expects(there + "new"));
        CHECK(of.expects(there + "new?of=b/c"));
        CHECK(of.expects(there));
        CHECK_FALSE(of.expects("http://origin.example/"));
        CHECK_FALSE(of.expects(there + "b/1"));
        CHECK_FALSE(of.expects("http://other.example/a/1"));
        of.note(there + "2", false);
        CHECK_FALSE(of.expects(there + "new"));
        of.note(there + "2", true);
        CHECK_FALSE(of.expects(there + "new"));
    }

    TEST_CASE("any text has a place") {
        kept_lately of;
        for (const char* url : {"", "/", "?", "x", "//"}) {
            CAPTURE(url);
            for (unsigned i = 0; i < 10; ++i) {
                of.note(url, true);
            }
            CHECK(of.expects(url));
        }
    }
}

}  // namespace reprise::proxy::cache::test
