#include "filter/squid_key.hpp"
#include "tests/unit/filter/keys.hpp"
#include "tests/unit/filter/squid_fixtures.hpp"

#include <doctest/doctest.h>

#include <sstream>

namespace reprise::filter {

using test::hex;
using test::squid_lines;

namespace {

std::string listed(const std::array<std::uint64_t, 4>& places) {
    std::string out;
    for (const auto place : places) {
        out += (out.empty() ? "" : ",") + std::to_string(place);
    }
    return out;
}

}  // namespace

TEST_SUITE("filter/squid_key") {
    TEST_CASE("the keys and places are those that Squid printed") {
        const auto vectors = squid_lines("key-vectors.txt");
        REQUIRE(vectors.size() == 8);
        for (const auto& line : vectors) {
            CAPTURE(line);
            std::istringstream fields{line};
            std::string method, mark, url, key, in_560, in_5000;
            fields >> method >> mark >> url >> key >> in_560 >> in_5000;
            const auto made = squid_raw_key(url,
                                            method == "HEAD" ? squid_method::head
                                                             : squid_method::get,
                                            mark == "-" ? "" : mark);
            CHECK(hex(made) == key);
            CHECK(listed(squid_places(made, 560)) == in_560);
            CHECK(listed(squid_places(made, 5000)) == in_5000);
        }
    }

    TEST_CASE("a URL's key is that of its form in Squid, asked with GET") {
        CHECK(hex(squid_key_of("http://LOCALHOST:44891/obj/case%7e%7E/../x")) ==
              "80e117e8f6810d3875fa68bede245ed5");
        CHECK(squid_key_of("HTTP://Host:80") == squid_raw_key("http://host/"));
        CHECK(squid_key_of("http://host/a") != squid_raw_key("http://host/a", squid_method::head));
    }

    TEST_CASE("the URLs that Squid lists are in their form already") {
        for (const auto& fixture : test::squid_fixtures()) {
            for (const auto& url : squid_lines(fixture.name + ".urls")) {
                CHECK(squid_url(url) == url);
            }
        }
    }

    TEST_CASE("scheme and host are put in lower case, the rest is not") {
        CHECK(squid_url("HTTP://EXAMPLE.Org/A%2f?Q=B") == "http://example.org/A%2f?Q=B");
    }

    TEST_CASE("a dot at the host's end is dropped") {
        CHECK(squid_url("http://example.org./a") == "http://example.org/a");
        CHECK(squid_url("http://example.org.:8080/a.") == "http://example.org:8080/a.");
    }

    TEST_CASE("the scheme's default port is dropped, another one kept") {
        CHECK(squid_url("http://a:80/") == "http://a/");
        CHECK(squid_url("http://a:080/") == "http://a/");
        CHECK(squid_url("https://a:443/") == "https://a/");
        CHECK(squid_url("HTTPS://a:443/") == "https://a/");
        CHECK(squid_url("ftp://a:21/") == "ftp://a/");
        CHECK(squid_url("http://a:443/") == "http://a:443/");
        CHECK(squid_url("https://a:80/") == "https://a:80/");
        CHECK(squid_url("http://a:8080/") == "http://a:8080/");
        CHECK(squid_url("http://a:/") == "http://a/");
    }

    TEST_CASE("an absent path is a slash, and an empty query stays") {
        CHECK(squid_url("http://a") == "http://a/");
        CHECK(squid_url("http://a?q") == "http://a/?q");
        CHECK(squid_url("http://a/w?") == "http://a/w?");
        CHECK(squid_url("http://a/w") == "http://a/w");
    }

    TEST_CASE("escapes, dot segments, doubled slashes and fragments stay as asked") {
        for (const auto* url : {"http://a/%7e%7E/../x",
                                "http://a//b/./c",
                                "http://a/z#f",
                                "http://a/?u=http://B:80/",
                                "http://a/@b:80"}) {
            CHECK(squid_url(url) == url);
        }
    }

    TEST_CASE("an IPv6 literal keeps its colons and brackets") {
        CHECK(squid_url("http://[2001:DB8::1]/") == "http://[2001:db8::1]/");
        CHECK(squid_url("http://[::1]:80/") == "http://[::1]/");
        CHECK(squid_url("http://[::1]:8080") == "http://[::1]:8080/");
    }

    TEST_CASE("a user is kept, its case and colons too") {
        CHECK(squid_url("http://Me:Pass@Host:80/") == "http://Me:Pass@host/");
    }

    TEST_CASE("what is no absolute URL comes back as it is") {
        for (const auto* text : {"", "/path", "Host:443", "://", "/a://B", "?://B"}) {
            CAPTURE(text);
            CHECK(squid_url(text).size() <= std::string{text}.size() + 1);
        }
        CHECK(squid_url("/A") == "/A");
        CHECK(squid_url("Host:443") == "Host:443");
        CHECK(squid_url("/A://B") == "/A://B");
    }

    TEST_CASE("putting a URL in its form twice is putting it there once") {
        for (const auto* url :
             {"HTTP://A.:080?x", "http://a..:1", "://", "x://@:0/", "ftp://[A]:21"}) {
            CAPTURE(url);
            CHECK(squid_url(squid_url(url)) == squid_url(url));
        }
    }

    TEST_CASE("places are below the number of bits, however few") {
        for (const std::uint64_t bits : {1, 8, 560, 1'000'000'007}) {
            for (const auto place : squid_places(squid_key_of("http://a/"), bits)) {
                CHECK(place < bits);
            }
        }
    }
}

}  // namespace reprise::filter
