#include "proxy/http/target.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <string_view>

using namespace reprise::proxy;
using namespace reprise::proxy::http;
using boost::beast::http::verb;

namespace {

std::string key_of(std::string_view raw) {
    const auto parsed = parse_target(verb::get, raw);
    REQUIRE(parsed.has_value());
    std::string key;
    append_key(key, *parsed);
    return key;
}

failure_code refusal_of(verb method, std::string_view raw, target_forms allowed = all_forms) {
    const auto parsed = parse_target(method, raw, allowed);
    if (parsed.has_value()) {
        return failure_code::internal;
    }
    CHECK_FALSE(parsed.error().detail.empty());
    return parsed.error().code;
}

}  // namespace

TEST_SUITE_BEGIN("http/target");

TEST_CASE("an absolute URL is taken apart into views of it") {
    const std::string_view raw = "HTTP://Deb.Example.ORG:8080/a|b?c={d}";
    const auto parsed = parse_target(verb::get, raw);
    REQUIRE(parsed.has_value());
    CHECK(parsed->form == target_form::absolute);
    CHECK(parsed->raw == raw);
    CHECK(parsed->host == "Deb.Example.ORG");
    CHECK(parsed->host.data() == raw.data() + 7);
    CHECK(parsed->port == 8080);
    CHECK(parsed->path_and_query == "/a|b?c={d}");
    CHECK_FALSE(parsed->lower_host);
    CHECK_FALSE(parsed->normal);
    CHECK(connect_host(*parsed) == "deb.example.org");
    std::string host;
    append_authority(host, *parsed);
    CHECK(host == "deb.example.org:8080");
}

TEST_CASE("a secure target has a scheme, a port and a key of its own") {
    const auto key_at = [](std::string_view host, bool secure) {
        auto path = parse_target(verb::get, "/a?b", all_forms);
        REQUIRE(path.has_value());
        path->secure = secure;
        const auto whole = with_authority(*path, host);
        REQUIRE(whole.has_value());
        std::string key;
        append_key(key, *whole);
        return key;
    };
    CHECK(key_at("Shop", true) == "https://shop/a?b");
    CHECK(key_at("shop:443", true) == "https://shop/a?b");
    CHECK(key_at("shop:80", true) == "https://shop:80/a?b");
    CHECK(key_at("shop", false) == "//shop/a?b");
    CHECK(key_at("shop:443", false) == "//shop:443/a?b");
    const auto absolute = parse_target(verb::get, "HTTPS://Shop:443?q", secure_accelerator_forms);
    REQUIRE(absolute.has_value());
    CHECK(absolute->secure);
    CHECK(absolute->port == 443);
    CHECK(absolute->path_and_query == "?q");
    CHECK_FALSE(absolute->normal);
    CHECK(refusal_of(verb::get, "https://shop/", accelerator_forms) ==
          failure_code::https_absolute_form);
    CHECK(refusal_of(verb::get, "https://a@shop/", secure_accelerator_forms) ==
          failure_code::bad_request);
    CHECK(refusal_of(verb::get, "ftp://shop/", secure_accelerator_forms) ==
          failure_code::unsupported_scheme);
}

TEST_CASE("the key normalises scheme, host case, default port and empty path") {
    CHECK(key_of("http://h/") == "http://h/");
    CHECK(key_of("hTTp://H") == "http://h/");
    CHECK(key_of("http://h:80/x") == "http://h/x");
    CHECK(key_of("http://h:/x") == "http://h/x");
    CHECK(key_of("http://h?q") == "http://h/?q");
    CHECK(key_of("http://h:81?q") == "http://h:81/?q");
    CHECK(key_of("http://[::FFFF:1]/x") == "http://[::ffff:1]/x");
}

TEST_CASE("the key normalises nothing else") {
    const std::string_view different[] = {"http://h/",
                                          "http://h/?",
                                          "http://h//",
                                          "http://h/.",
                                          "http://h/a/../",
                                          "http://h/%41",
                                          "http://h/A",
                                          "http://h/a",
                                          "http://h/%4a",
                                          "http://h/%4A",
                                          "http://h./",
                                          "http://h:81/",
                                          "http://h:443/",
                                          "http://h/http://h/",
                                          "http://[::1]/",
                                          "http://[0::1]/",
                                          "http://h/?a=1&b=2",
                                          "http://h/?b=2&a=1"};
    std::set<std::string> keys;
    for (const auto raw : different) {
        keys.insert(key_of(raw));
        CHECK(key_of(raw) == raw);
    }
    CHECK(keys.size() == std::size(different));
}

TEST_CASE("a target says it is normal exactly when it is its own key") {
    for (const std::string_view raw : {"http://h/",
                                       "http://h/A?B",
                                       "http://h:81/",
                                       "http://h:443/",
                                       "http://[::1]:8080/x",
                                       "http://1.2.3.4/x",
                                       "http://h",
                                       "http://h?q",
                                       "http://h?/",
                                       "http://H/",
                                       "HTTP://h/",
                                       "http://h:80/",
                                       "http://h:/",
                                       "http://[::A]/"}) {
        CAPTURE(raw);
        const auto parsed = parse_target(verb::get, raw);
        REQUIRE(parsed.has_value());
        CHECK(parsed->normal == (key_of(raw) == raw));
    }
}

TEST_CASE("an https target is its own key under the same rules, with 443 for 80") {
    const auto key = [](std::string_view raw) {
        const auto parsed = parse_target(verb::get, raw, secure_forward_forms);
        REQUIRE(parsed.has_value());
        CHECK(parsed->secure);
        std::string out;
        append_key(out, *parsed);
        CHECK(parsed->normal == (out == raw));
        return out;
    };
    CHECK(key("https://h/A?B") == "https://h/A?B");
    CHECK(key("https://h:443/x") == "https://h/x");
    CHECK(key("https://h:80/x") == "https://h:80/x");
    CHECK(key("https://h:8443/x") == "https://h:8443/x");
    CHECK(key("hTTps://H") == "https://h/");
    CHECK(key("https://[::1]:443/") == "https://[::1]/");
    CHECK(parse_target(verb::get, "https://h/x").error().code == failure_code::https_absolute_form);
}

TEST_CASE("http://HTTPS///host/path means https, behind one to three slashes and in any case") {
    const auto meant = [](std::string_view raw) {
        const auto asked = parse_target(verb::get, raw);
        REQUIRE(asked.has_value());
        REQUIRE(has_https_prefix(*asked));
        return behind_https_prefix(*asked);
    };
    for (const std::string_view raw : {"http://HTTPS///b.Example:444/p?q",
                                       "http://https//b.Example:444/p?q",
                                       "HTTP://hTTps:80/b.Example:444/p?q"}) {
        CAPTURE(raw);
        const auto target = meant(raw);
        REQUIRE(target.has_value());
        CHECK(target->secure);
        CHECK_FALSE(target->normal);
        std::string key;
        append_key(key, *target);
        CHECK(key == "https://b.example:444/p?q");
    }
    std::string key;
    append_key(key, meant("http://HTTPS///b").value());
    CHECK(key == "https://b/");
    for (const std::string_view raw : {"http://HTTPS",
                                       "http://HTTPS/",
                                       "http://HTTPS///",
                                       "http://HTTPS////b/",
                                       "http://HTTPS?b",
                                       "http://HTTPS///u@b/",
                                       "http://HTTPS///b:0/"}) {
        CAPTURE(raw);
        CHECK(meant(raw).error().code == failure_code::bad_request);
    }
    for (const std::string_view raw :
         {"http://https.example/x", "http://https:81//b/", "http://httpss//b/"}) {
        CAPTURE(raw);
        CHECK_FALSE(has_https_prefix(parse_target(verb::get, raw).value()));
    }
}

TEST_CASE("what browsers send in path and query passes unchanged") {
    for (const std::string_view rest :
         {"/a|b", "/[x]{y}", "/?q=\"'<>`^\\", "/%zz%", "/\xc3\xa9\xff", "/@:80", "?a@b:c"}) {
        CAPTURE(rest);
        const auto raw = "http://h" + std::string{rest};
        const auto parsed = parse_target(verb::get, raw);
        REQUIRE(parsed.has_value());
        CHECK(parsed->path_and_query == rest);
        CHECK(parsed->host == "h");
    }
}

TEST_CASE("a host is a name or an address, nothing else") {
    for (const std::string_view good : {"a",
                                        "a.example.",
                                        "_dmarc.a-b.example",
                                        "xn--bcher-kva.example",
                                        "127.0.0.1",
                                        "0x7f.1",
                                        "2130706433",
                                        "[::1]",
                                        "[::ffff:1.2.3.4]"}) {
        CAPTURE(good);
        CHECK(check_authority(good) == nullptr);
        CHECK(check_authority(std::string{good} + ":65535") == nullptr);
    }
    for (const std::string_view bad : {"",
                                       ":80",
                                       "a b",
                                       "a%41",
                                       "b\xc3\xbc"
                                       "cher",
                                       "a,b",
                                       "a;b",
                                       "a\\b",
                                       "a/b",
                                       "u@a",
                                       "u:p@a",
                                       "a:b@c",
                                       "[::1",
                                       "[]",
                                       "[::1]x",
                                       "[::1]]",
                                       "[::g]",
                                       "[fe80::1%25eth0]",
                                       "[v1.a]",
                                       "[1.2.3.4]",
                                       "::1",
                                       "a:0",
                                       "a:080",
                                       "a:65536",
                                       "a:99999999999",
                                       "a:+80",
                                       "a:-80",
                                       "a: 80",
                                       "a:80x",
                                       "a:80:80"}) {
        CAPTURE(bad);
        CHECK(check_authority(bad) != nullptr);
    }
    for (const std::string_view empty_label :
         {".", "..", ".a", "a..", "a..b", "a.example..", "a...b.", "127.0.0.1..", "localhost.."}) {
        CAPTURE(empty_label);
        CHECK(check_authority(empty_label) != nullptr);
        CHECK(check_authority(std::string{empty_label} + ":443") != nullptr);
        const auto url = "http://" + std::string{empty_label};
        CHECK(refusal_of(verb::get, url + "/") == failure_code::bad_request);
        CHECK(refusal_of(verb::get, url + ":8080") == failure_code::bad_request);
        CHECK(refusal_of(verb::connect, url.substr(7) + ":443") == failure_code::bad_request);
        CHECK(
            behind_https_prefix(parse_target(verb::get, "http://HTTPS///" + url.substr(7)).value())
                .has_error());
    }
    CHECK(check_authority(std::string(255, 'a')) == nullptr);
    CHECK(check_authority(std::string(256, 'a')) != nullptr);
}

TEST_CASE("user information, fragments and empty hosts are refused") {
    for (const std::string_view raw : {"http://u@h/",
                                       "http://u:p@h/",
                                       "http://u:80@h/",
                                       "http://h/#f",
                                       "http://h#f",
                                       "http:///x",
                                       "http://",
                                       "http://:80/",
                                       "http:h/x",
                                       "http:/h",
                                       "h",
                                       "h:80",
                                       "://h/",
                                       "1ttp://h/",
                                       "http://h\\@evil/",
                                       "http://h/\x01",
                                       "http://h/ x",
                                       "http://h/\x7f"}) {
        CAPTURE(raw);
        CHECK(refusal_of(verb::get, raw) == failure_code::bad_request);
    }
    CHECK(refusal_of(verb::get, "") == failure_code::bad_request);
    CHECK(refusal_of(verb::get, {"http://h/\0x", 11}) == failure_code::bad_request);
}

TEST_CASE("other schemes are refused by their name") {
    CHECK(refusal_of(verb::get, "https://h/") == failure_code::https_absolute_form);
    CHECK(refusal_of(verb::get, "HTTPS://h/") == failure_code::https_absolute_form);
    CHECK(refusal_of(verb::get, "ftp://h/") == failure_code::unsupported_scheme);
    CHECK(refusal_of(verb::get, "ws://h/") == failure_code::unsupported_scheme);
}

TEST_CASE("CONNECT wants a host and a port") {
    const auto parsed = parse_target(verb::connect, "Example.org:443");
    REQUIRE(parsed.has_value());
    CHECK(parsed->form == target_form::authority);
    CHECK(parsed->port == 443);
    CHECK(connect_host(*parsed) == "example.org");
    const auto literal = parse_target(verb::connect, "[::1]:443");
    REQUIRE(literal.has_value());
    CHECK(connect_host(*literal) == "::1");
    for (const std::string_view raw : {"h",
                                       "h:",
                                       "h:0",
                                       "h:65536",
                                       ":443",
                                       "::1:443",
                                       "[::1]",
                                       "u@h:443",
                                       "http://h:443/",
                                       "h:443/",
                                       "/",
                                       "*"}) {
        CAPTURE(raw);
        CHECK(refusal_of(verb::connect, raw) == failure_code::bad_request);
    }
}

TEST_CASE("each form is taken only where a listener takes it, and only by its methods") {
    CHECK(parse_target(verb::options, "*").has_value());
    CHECK(refusal_of(verb::get, "*") == failure_code::bad_request);
    CHECK(refusal_of(verb::get, "/x", forward_forms) == failure_code::bad_request);
    CHECK(parse_target(verb::get, "/x", accelerator_forms)->path_and_query == "/x");
    CHECK(refusal_of(verb::connect, "h:443", accelerator_forms) == failure_code::bad_request);
    CHECK(refusal_of(verb::get, "http://h/", target_forms{4}) == failure_code::bad_request);
}

TEST_CASE("a path with a Host field has a key of its own kind") {
    const auto path = parse_target(verb::get, "/x?y", accelerator_forms);
    REQUIRE(path.has_value());
    const auto whole = with_authority(*path, "Shop.example:80");
    REQUIRE(whole.has_value());
    std::string key;
    append_key(key, *whole);
    CHECK(key == "//shop.example/x?y");
    CHECK(connect_host(*whole) == "shop.example");
    CHECK(with_authority(*path, "a@b").has_error());
    CHECK(with_authority(*path, "").has_error());
}

TEST_SUITE_END();
