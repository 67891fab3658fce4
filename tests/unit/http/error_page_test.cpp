#include "proxy/http/error_page.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/message_head.hpp"
#include "tests/unit/http/field_lines.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

using namespace reprise::proxy;
using namespace reprise::proxy::http;

namespace {

std::string page(const failure& error, error_options options = {}) {
    options.pseudonym = "reprise-x";
    std::string out;
    append_error_page(out, error, options);
    return out;
}

}  // namespace

TEST_SUITE_BEGIN("http/error_page");

TEST_CASE("every failure becomes a response that we would accept ourselves") {
    for (int code = 0; code <= static_cast<int>(failure_code::internal); ++code) {
        for (const std::string_view accept : {"", "text/html"}) {
            CAPTURE(code);
            const auto wire = page({static_cast<failure_code>(code), "a detail"},
                                   {.accept = accept});
            response_head head;
            REQUIRE(parse_response_head(wire, head, {}).state == head_state::done);
            CHECK(head.status == facts_of(static_cast<failure_code>(code)).status);
            CHECK(head.status >= 400);
            const auto body = response_framing(head, boost::beast::http::verb::get);
            REQUIRE(body.has_value());
            CHECK(body->length == wire.size() - head.bytes);
            CHECK(has(wire, "Cache-Control: no-store\r\n"));
            CHECK(is_error_of(head.status, head.fields, "reprise-x"));
            CHECK_FALSE(is_error_of(head.status, head.fields, "reprise"));
            CHECK_FALSE(is_error_of(200, head.fields, "reprise-x"));
            CHECK(error_told_by(head.status, head.fields, "reprise-x") ==
                  static_cast<failure_code>(code));
            CHECK_FALSE(error_told_by(head.status, head.fields, "reprise"));
            CHECK_FALSE(error_told_by(200, head.fields, "reprise-x"));
            CHECK(has(wire, "a detail"));
            CHECK(has(wire, facts_of(static_cast<failure_code>(code)).setting));
        }
    }
}

TEST_CASE("a person reads what happened, what was seen and which setting decides") {
    const auto wire = page({failure_code::dns_not_found, "no-such.example"},
                           {.date = "now", .close = true});
    CHECK(wire == "HTTP/1.1 502 Bad Gateway\r\n"
                  "Date: now\r\n"
                  "Content-Type: text/plain; charset=utf-8\r\n"
                  "Content-Length: 130\r\n"
                  "Cache-Control: no-store\r\n"
                  "X-Content-Type-Options: nosniff\r\n"
                  "Proxy-Status: reprise-x; error=dns_error; "
                  "details=\"dns_not_found: no-such.example\"\r\n"
                  "Connection: close\r\n"
                  "\r\n"
                  "502 Bad Gateway\n\n"
                  "The server's name does not exist.\n"
                  "Seen: no-such.example\n"
                  "Setting: dns.servers\n"
                  "\nReprise (reprise-x), dns_not_found\n");
}

TEST_CASE("what came from outside cannot break out of the page or of a field") {
    const std::string evil = "<script>\"'&\\\r\nSet-Cookie: a=b\r\n\r\n\xc3\xa9\x01\x7f";
    const auto html = page({failure_code::bad_request, evil}, {.accept = "text/html"});
    CHECK(has(html, "&lt;script&gt;&quot;&#39;&amp;\\??Set-Cookie: a=b????"));
    CHECK_FALSE(has(html.substr(html.find("<!doctype")), "<script>"));
    CHECK_FALSE(has(html, "\nSet-Cookie"));
    CHECK(has(html, "details=\"bad_request: <script>\\\"'&\\\\??Set-Cookie: a=b????"));
    const auto text = page({failure_code::bad_request, evil});
    CHECK_FALSE(has(text, "\nSet-Cookie"));
    CHECK(page({failure_code::bad_request, std::string(100'000, 'x')}).size() < 2000);
}

TEST_CASE("HTML is for who asks for it") {
    const failure error{failure_code::internal, ""};
    CHECK(has(page(error, {.accept = "image/png, text/html;q=0.9"}), "Content-Type: text/html"));
    CHECK(has(page(error, {.accept = "*/*"}), "Content-Type: text/plain"));
    CHECK(has(page(error, {.accept = "text/html-not"}), "Content-Type: text/plain"));
}

TEST_CASE("the answer to HEAD has the length but not the content") {
    const failure error{failure_code::internal, ""};
    const auto whole = page(error);
    const auto head = page(error, {.head = true});
    CHECK(whole.starts_with(head));
    CHECK(head.ends_with("\r\n\r\n"));
}

TEST_CASE("a 407 says how one may say who one is, and nothing else does") {
    const failure unknown{failure_code::user_unknown, ""};
    const auto both = page(unknown, {.basic = true, .bearer = true});
    CHECK(both.starts_with("HTTP/1.1 407 Proxy Authentication Required\r\n"));
    CHECK(has(both, "Proxy-Authenticate: Basic realm=\"reprise\", charset=\"UTF-8\"\r\n"));
    CHECK(has(both, "Proxy-Authenticate: Bearer realm=\"reprise\"\r\n"));
    CHECK_FALSE(has(page(unknown, {.bearer = true}), "Basic"));
    CHECK_FALSE(
        has(page({failure_code::user_in_clear, ""}, {.basic = true}), "Proxy-Authenticate"));
}

TEST_CASE("who may try again is told when, and Cache-Status is passed on") {
    CHECK(has(page({failure_code::draining, ""}), "Retry-After: 5\r\n"));
    CHECK(has(page({failure_code::too_many_connections, ""}), "Retry-After: 1\r\n"));
    CHECK_FALSE(has(page({failure_code::internal, ""}), "Retry-After"));
    CHECK(has(page({failure_code::only_if_cached_miss, ""}, {.cache_status = "reprise; fwd=miss"}),
              "HTTP/1.1 504 Gateway Timeout\r\n"));
    CHECK(has(page({failure_code::only_if_cached_miss, ""}, {.cache_status = "reprise; fwd=miss"}),
              "Cache-Status: reprise; fwd=miss\r\n"));
}

TEST_CASE("value() of a failure is a mistake of ours, and says which") {
    const attempt<int> none = failure{failure_code::dns_error, "why"};
    CHECK_THROWS_WITH_AS(
        [&] { return none.value(); }(), doctest::Contains("dns_error: why"), std::logic_error);
}

TEST_SUITE_END();
