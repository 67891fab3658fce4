#include "proxy/http/reference.hpp"

#include <doctest/doctest.h>

using namespace reprise::proxy::http;

TEST_SUITE("http/reference") {

    TEST_CASE("the examples of RFC 3986 5.4 that name a path") {
        struct row {
            const char* reference;
            const char* path;
        };
        for (const auto& [reference, path] :
             {row{"g", "/b/c/g"},          row{"./g", "/b/c/g"},
              row{"g/", "/b/c/g/"},        row{"/g", "/g"},
              row{"?y", "/b/c/d;p?y"},     row{"g?y", "/b/c/g?y"},
              row{"#s", "/b/c/d;p?q"},     row{"g#s", "/b/c/g"},
              row{"g?y#s", "/b/c/g?y"},    row{";x", "/b/c/;x"},
              row{"", "/b/c/d;p?q"},       row{".", "/b/c/"},
              row{"./", "/b/c/"},          row{"..", "/b/"},
              row{"../", "/b/"},           row{"../g", "/b/g"},
              row{"../..", "/"},           row{"../../", "/"},
              row{"../../g", "/g"},        row{"../../../g", "/g"},
              row{"/./g", "/g"},           row{"/../g", "/g"},
              row{"g.", "/b/c/g."},        row{".g", "/b/c/.g"},
              row{"g..", "/b/c/g.."},      row{"./../g", "/b/g"},
              row{"./g/.", "/b/c/g/"},     row{"g/./h", "/b/c/g/h"},
              row{"g/../h", "/b/c/h"},     row{"g?y/../x", "/b/c/g?y/../x"},
              row{"g;x=1/../y", "/b/c/y"}, row{"../../../../g", "/g"}}) {
            CAPTURE(reference);
            CHECK(resolve_path("/b/c/d;p?q", reference) == path);
        }
    }

    TEST_CASE("a base without a path is the root") {
        CHECK(resolve_path("", "g") == "/g");
        CHECK(resolve_path("?q", "g") == "/g");
        CHECK(resolve_path("/", "../g") == "/g");
    }

    TEST_CASE("a scheme is a letter, letters, digits, +, - and . up to a colon") {
        CHECK(has_scheme("http://a/b"));
        CHECK(has_scheme("HTTP:x"));
        CHECK(has_scheme("a+b-c.1:"));
        CHECK_FALSE(has_scheme("/a:b"));
        CHECK_FALSE(has_scheme("1a:b"));
        CHECK_FALSE(has_scheme("a/b:c"));
        CHECK_FALSE(has_scheme(":b"));
        CHECK_FALSE(has_scheme("t"));
        CHECK_FALSE(has_scheme(""));
    }

}  // TEST_SUITE
