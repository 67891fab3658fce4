#include "config/url.hpp"

#include <doctest/doctest.h>

using namespace reprise::config;

namespace {

std::string shown(const parsed<std::string>& answer) {
    const auto* value = value_of(answer);
    return value ? *value : "refused: " + std::get<refusal>(answer).right;
}
std::string upstream(std::string_view text) {
    return shown(parse_upstream(text));
}
std::string pattern(std::string_view text) {
    return shown(parse_url_pattern(text));
}

}  // namespace

TEST_SUITE("config/url") {
    TEST_CASE("an upstream is put into one form") {
        CHECK(upstream("http://127.0.0.1:8000") == "http://127.0.0.1:8000");
        CHECK(upstream("HTTP://Origin.Example:80/") == "http://origin.example");
        CHECK(upstream("http://[0::1]:8080") == "http://[::1]:8080");
        CHECK(upstream("http://[::1]") == "http://[::1]");
        CHECK(upstream("HTTPS://Origin.Example:443/") == "https://origin.example");
        CHECK(upstream("https://origin.example:80") == "https://origin.example:80");
    }

    TEST_CASE("an upstream is a server and nothing else") {
        CHECK(upstream("htp://b") ==
              "refused: the scheme must be http or https: write http://host[:port] or "
              "https://host[:port]");
        for (const auto* text : {"",
                                 "host",
                                 "host:80",
                                 "https:host",
                                 "http://",
                                 "http:///",
                                 "http://:80",
                                 "http://host/path",
                                 "http://host?q",
                                 "http://host/#f",
                                 "http://user@host",
                                 "http://user:word@host",
                                 "http://host:",
                                 "http://host:0",
                                 "http://host:65536",
                                 "http://host:80:80",
                                 "http://::1",
                                 "http://[::1",
                                 "http://[127.0.0.1]",
                                 "http://[]",
                                 "http://ho st",
                                 "http://host\\evil",
                                 " http://host"}) {
            CAPTURE(text);
            CHECK(upstream(text).starts_with("refused"));
        }
    }

    TEST_CASE("a host alone is no pattern: nobody means its first page") {
        for (const auto* text :
             {"http://host", "https://Host:443", "http://host:8080", "*://host"}) {
            CAPTURE(text);
            CHECK(pattern(text).starts_with("refused: a pattern is for the whole URL: write "));
        }
        CHECK(pattern("https://Host:443") ==
              "refused: a pattern is for the whole URL: write https://host/* for all of the host, "
              "or https://host/ for its first page alone");
    }

    TEST_CASE("a pattern is spelt as the URLs that it is compared with") {
        CHECK(pattern("http://Deb.Example.org/Pool/*") == "http://deb.example.org/Pool/*");
        CHECK(pattern("HTTP://host:80/a") == "http://host/a");
        CHECK(pattern("https://host:443/a") == "https://host/a");
        CHECK(pattern("http://host:/a") == "http://host/a");
        CHECK(pattern("http://*:8080/a") == "http://*:8080/a");
        CHECK(pattern("http://host:*/a") == "http://host:*/a");
        CHECK(pattern("http://[::1]:8080/*") == "http://[::1]:8080/*");
        CHECK(pattern("http://host:443/a") == "http://host:443/a");
        CHECK(pattern("http://host/") == "http://host/");
        CHECK(pattern("http://host?q=*") == "http://host/?q=*");
        CHECK(pattern("http://host*") == "http://host*");
        CHECK(pattern("http*://*.Host/*") == "http*://*.host/*");
        CHECK(pattern("*.iso") == "*.iso");
        CHECK(pattern("*.tar.gz") == "*.tar.gz");
        CHECK(pattern("*.min.js") == "*.min.js");
        CHECK(pattern("*.example.org/*") == "*.example.org/*");
        CHECK(pattern("*") == "*");
    }

    TEST_CASE("a host in the place of a URL matches no URL of that host, and is refused") {
        CHECK(pattern("*.example.org") ==
              "refused: a pattern is for the whole URL, and no URL ends in a host: write "
              "*://*.example.org/* for the hosts, or */*.example.org for paths that end so");
        for (const auto* text :
             {"*example.org", "*.corp.example", "*.a-b.co.uk", "*.EXAMPLE.COM"}) {
            CAPTURE(text);
            CHECK(pattern(text).starts_with("refused: a pattern is for the whole URL"));
        }
        CHECK(pattern("*/*.example.org") == "*/*.example.org");
        CHECK(pattern("*://*.example.org/*") == "*://*.example.org/*");
    }

    TEST_CASE("a pattern that can match nothing is refused") {
        for (const auto* text : {"",
                                 "deb.example.org/*",
                                 "/path",
                                 "ftp://host/*",
                                 "ftp*://host/*",
                                 "http://host:0/",
                                 "http://host:99999/*",
                                 "http://host:080/",
                                 "http://host:http/",
                                 "http://:8080/",
                                 "http://::1/",
                                 "http://[::g]/",
                                 "http://[127.0.0.1/",
                                 "http://h\xc3\xb6st/",
                                 "http://host\\path/",
                                 "http:///x",
                                 "http://a b/",
                                 "http://host/#part",
                                 "http://user@host/"}) {
            CAPTURE(text);
            CHECK(pattern(text).starts_with("refused"));
        }
        CHECK(pattern("http://" + std::string(3000, 'a')).starts_with("refused"));
    }
}
