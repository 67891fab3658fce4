#include "proxy/base/text.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <random>

using namespace reprise::proxy;

namespace {

std::string json_escaped(std::string_view text) {
    std::string out;
    append_json_escaped(out, text);
    return out;
}

std::string html_escaped(std::string_view text) {
    std::string out;
    append_html_escaped(out, text);
    return out;
}

std::string redacted(std::string_view url, bool query_values = false) {
    std::string out;
    append_redacted_url(out, url, query_values);
    return out;
}

}  // namespace

TEST_SUITE("base/text") {

    TEST_CASE("json: quotes, backslashes and controls are escaped, text is not") {
        CHECK(json_escaped("plain /path?x=1") == "plain /path?x=1");
        CHECK(json_escaped("a\"b\\c") == "a\\\"b\\\\c");
        CHECK(json_escaped(std::string_view{"\0\n\x1f\x7f", 4}) == "\\u0000\\u000a\\u001f\\u007f");
        CHECK(json_escaped("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80") ==
              "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
        CHECK(json_escaped("\xc2\x9b") == "\\u009b");  // CSI, for terminals that obey C1
    }

    TEST_CASE("json: what is no UTF-8 becomes U+FFFD, byte by byte") {
        CHECK(json_escaped("\xff") == "\\ufffd");
        CHECK(json_escaped("\xc0\xaf") == "\\ufffd\\ufffd");             // overlong "/"
        CHECK(json_escaped("\xe0\x80\xaf") == "\\ufffd\\ufffd\\ufffd");  // overlong
        CHECK(json_escaped("\xed\xa0\x80") == "\\ufffd\\ufffd\\ufffd");  // a surrogate
        CHECK(json_escaped("\xf4\x90\x80\x80").size() == 4 * 6);         // beyond U+10FFFF
        CHECK(json_escaped("\xe2\x82") == "\\ufffd\\ufffd");             // cut off
        CHECK(json_escaped("\xe2\x82"
                           "a") == "\\ufffd\\ufffd"
                                   "a");
    }

    TEST_CASE("json: any bytes make a string that a strict parser reads") {
        std::mt19937_64 random{7};
        for (int round = 0; round < 2000; ++round) {
            std::string bytes(random() % 40, '\0');
            for (auto& byte : bytes) {
                byte = static_cast<char>(random());
            }
            CAPTURE(round);
            REQUIRE(nlohmann::json::accept('"' + json_escaped(bytes) + '"'));
            REQUIRE(json_escaped(bytes).size() <= 6 * bytes.size());
        }
    }

    TEST_CASE("printable: nothing that a terminal obeys is left, and nothing is ambiguous") {
        CHECK(printable("a\x1b[31mb\r\nc") == "a\\x1b[31mb\\x0d\\x0ac");
        CHECK(printable("\\x0a") == "\\\\x0a");
        CHECK(printable("\xff\xc3\xbc") == "\\xff\xc3\xbc");
        CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");
    }

    TEST_CASE("html: no text leaves its element or attribute") {
        CHECK(html_escaped("<a href=\"x\" title='y'>&") ==
              "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;");
        CHECK(html_escaped(std::string_view{"a\0b\xff", 4}) == "a\xef\xbf\xbd"
                                                               "b\xef\xbf\xbd");
        CHECK(html_escaped("\xc3\xbc\n") == "\xc3\xbc\n");
    }

    TEST_CASE("urls: query values are replaced, names stay") {
        CHECK(redacted("http://h/p?a=1&b=2") == "http://h/p?a=*&b=*");
        CHECK(redacted("/p?X-Amz-Signature=abc") == "/p?X-Amz-Signature=*");
        CHECK(redacted("/p?a=1=2") == "/p?a=*");
        CHECK(redacted("/p?a=x?y=z") == "/p?a=*");
        CHECK(redacted("/p?a=1;b=secret") == "/p?a=*");
        CHECK(redacted("/p?a=&b") == "/p?a=&*");
        CHECK(redacted("/p?") == "/p?");
        CHECK(redacted("/p?&&") == "/p?&&");
        CHECK(redacted("/p?a&") == "/p?*&");
    }

    TEST_CASE("urls: of path parameters the names are kept, the values only when asked for") {
        CHECK(redacted("http://h/a;jsessionid=123/b;v=1;token=x?q=1") ==
              "http://h/a;jsessionid=*/b;v=*;token=*?q=*");
        CHECK(redacted("/a;jsessionid=1=2;/;x=") == "/a;jsessionid=*;/;x=");
        CHECK(redacted("/a;secret") == "/a;*");
        CHECK(redacted("/;;a=b") == "/;;a=*");
        CHECK(redacted("http://h;t=1/a") == "http://h;t=*/a");
        CHECK(redacted("/a;b=c?d=e#;f=g") == "/a;b=*?d=*");
        CHECK(redacted("/a;b=c?d=e", true) == "/a;b=c?d=e");
        CHECK(redacted("/a%3Bb=c") == "/a%3Bb=c");
    }

    TEST_CASE("urls: user information in a path, or cut by a slash, does not appear either") {
        CHECK(redacted("http://proxy/http://u:p@h/x", true) == "http://proxy/http://*@h/x");
        CHECK(redacted("/fetch/https://u;a=b:p@h;c=d/") == "/fetch/https://*@h;c=*/");
        CHECK(redacted("http://u:pa/ss@h/x", true) == "http://u:*");
        CHECK(redacted("http://u:pa?ss@h/x", true) == "http://u:*");
        CHECK(redacted("http://u:pa#ss@h/x") == "http://u:*");
        CHECK(redacted("http://h:80/x") == "http://h:80/x");
        CHECK(redacted("http://[::1]:80/x") == "http://[::1]:80/x");
        CHECK(redacted("http://[2001:db8::a]/x") == "http://[2001:db8::a]/x");
        CHECK(redacted("http://u;x=y:p;z@h/") == "http://h/");
    }

    TEST_CASE("urls: a lone query part is taken for a value") {
        CHECK(redacted("http://h/?dG9rZW4") == "http://h/?*");
    }

    TEST_CASE("urls: user information and fragments never appear, asked for or not") {
        CHECK(redacted("http://u:p@h/x", true) == "http://h/x");
        CHECK(redacted("http://u:p@ss@h:80?q=1", true) == "http://h:80?q=1");
        CHECK(redacted("http://u:p@h") == "http://h");
        CHECK(redacted("http:/u:p@h/x") == "http:/h/x");
        CHECK(redacted("http:///u:p@h/x") == "http:///h/x");
        CHECK(redacted("http:\\\\u:p@h/x") == "h/x");
        CHECK(redacted("u:p@h:443") == "h:443");
        CHECK(redacted("/x#access_token=1", true) == "/x");
        CHECK(redacted("/x?a=1#frag", true) == "/x?a=1");
    }

    TEST_CASE("urls: an @ after the authority is left alone") {
        CHECK(redacted("http://h/@scope/pkg") == "http://h/@scope/pkg");
        CHECK(redacted("/@scope/pkg") == "/@scope/pkg");
        CHECK(redacted("h:443") == "h:443");
        CHECK(redacted("*") == "*");
        CHECK(redacted("") == "");
    }

    TEST_CASE("urls: any bytes give no more bytes than they are") {
        std::mt19937_64 random{11};
        constexpr std::string_view alphabet = "ab/:?#&=@;%\\\n\xff";
        for (int round = 0; round < 5000; ++round) {
            std::string url(random() % 30, '\0');
            for (auto& c : url) {
                c = alphabet[random() % alphabet.size()];
            }
            CAPTURE(url);
            REQUIRE(redacted(url).size() <= url.size());
        }
    }

}  // TEST_SUITE
