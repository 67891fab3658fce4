#include "proxy/http/forwarding.hpp"
#include "tests/unit/http/field_lines.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

using namespace reprise::proxy;
using namespace reprise::proxy::http;
using boost::beast::http::verb;

namespace {

struct received_request {
    std::string bytes;
    request_head head;
    target where;

    explicit received_request(
        std::string_view fields,
        std::string_view start = "GET http://Origin.example:8080/p?q HTTP/1.1") {
        bytes = std::string{start} + "\r\n" + std::string{fields} + "\r\n";
        REQUIRE(parse_request_head(bytes, head, {}).state == head_state::done);
        if (head.method != verb::trace) {
            const auto parsed = parse_target(head.method, head.target, all_forms);
            REQUIRE(parsed.has_value());
            where = *parsed;
        }
    }
    received_request(const received_request&) = delete;
    received_request& operator=(const received_request&) = delete;
};

std::string sent(const received_request& one, const request_options& options = {}) {
    std::string out;
    append_request_head(out, one.head, one.where, options);
    return out;
}

std::string passed(std::string_view fields,
                   const response_options& options = {},
                   std::string_view start = "HTTP/1.1 200 OK") {
    const std::string bytes = std::string{start} + "\r\n" + std::string{fields} + "\r\n";
    response_head head;
    REQUIRE(parse_response_head(bytes, head, {}).state == head_state::done);
    std::string out;
    append_response_fields(out, head, options);
    return out;
}

}  // namespace

TEST_SUITE_BEGIN("http/forwarding");

TEST_CASE("a request goes on in origin-form, with the target's Host first") {
    const received_request one{"Accept: a\r\nHost: other.example\r\nUser-Agent: b\r\n"};
    CHECK(sent(one, {.via = "us"}) == "GET /p?q HTTP/1.1\r\n"
                                      "Host: origin.example:8080\r\n"
                                      "Accept: a\r\n"
                                      "User-Agent: b\r\n"
                                      "Via: 1.1 us\r\n"
                                      "\r\n");
}

TEST_CASE("an empty path becomes a slash, and OPTIONS of a whole server an asterisk") {
    CHECK(sent(received_request{"", "GET http://h HTTP/1.1"})
              .starts_with("GET / HTTP/1.1\r\nHost: h\r\n"));
    CHECK(
        sent(received_request{"", "GET http://h?q HTTP/1.1"}).starts_with("GET /?q HTTP/1.1\r\n"));
    CHECK(sent(received_request{"", "OPTIONS http://h HTTP/1.1"})
              .starts_with("OPTIONS * HTTP/1.1\r\n"));
    CHECK(sent(received_request{"", "OPTIONS http://h/ HTTP/1.1"})
              .starts_with("OPTIONS / HTTP/1.1\r\n"));
    CHECK(sent(received_request{"", "OPTIONS http://h?q HTTP/1.1"})
              .starts_with("OPTIONS /?q HTTP/1.1\r\n"));
}

TEST_CASE("who knows the scheme says it, and others' words of it do not pass") {
    const auto forwarded = [](std::string_view value, bool ours) {
        const received_request one{"Forwarded: " + std::string{value} + "\r\n"};
        const auto head = sent(
            one, {.client_address = "192.0.2.1", .forwarded = ours, .scheme = "https"});
        CHECK(has(head, "X-Forwarded-Proto: https\r\n"));
        constexpr std::string_view name = "Forwarded: ";
        const auto at = head.find("\r\nForwarded: ");
        return at == std::string::npos
                   ? std::string{}
                   : head.substr(at + 2 + name.size(),
                                 head.find("\r\n", at + 2) - at - 2 - name.size());
    };
    const std::string mine = "for=192.0.2.1;proto=https";
    CHECK(forwarded("for=a;proto=http;host=evil;by=b", true) == "for=a;by=b, " + mine);
    CHECK(forwarded("PROTO=http, For=\"[::1]:1\" ; proto=http", true) ==
          "For=\"[::1]:1\", " + mine);
    CHECK(forwarded("for=\"a;proto=x\";host=y", true) == "for=\"a;proto=x\", " + mine);
    CHECK(forwarded("for=\"a;proto=http", true) == mine);
    CHECK(forwarded("for=\"a\\\";proto=http;x=\"b\"", true) == mine);
    CHECK(forwarded("proto=http;secret=1", true) == mine);
    CHECK(forwarded("for=a;proto=http, for=b", false) == "for=a, for=b");
    CHECK(forwarded("proto=http", false).empty());

    received_request claims{"X-Forwarded-Proto: a\r\nx-forwarded_HOST: b\r\nX-Forwarded-For: c\r\n"
                            "Front-End-Https: on\r\nX-Forwarded-Protoco: d\r\nXY: e\r\n"
                            "X-Forwarded-Prefix: /evil\r\nX_Original_URL: /evil\r\n"
                            "x-rewrite-url: /evil\r\nX-Original-Host: f\r\n"
                            "CloudFront-Forwarded-Proto: g\r\nHost: h\r\n"};
    strip_url_claims(claims.head.fields);
    std::string left;
    for (const auto& line : claims.head.fields) {
        left.append(line.name).append(" ");
    }
    CHECK(left == "X-Forwarded-For X-Forwarded-Protoco XY Host ");
}

TEST_CASE("hop-by-hop fields end here, and so does what Connection names") {
    const received_request one{"Connection: close, X-Mine\r\n"
                               "Connection: Accept-Language\r\n"
                               "X-Mine: 1\r\n"
                               "Accept-Language: de\r\n"
                               "Keep-Alive: timeout=5\r\n"
                               "Proxy-Connection: keep-alive\r\n"
                               "Proxy-Authorization: Basic x\r\n"
                               "TE: trailers\r\n"
                               "Trailer: X-Sum\r\n"
                               "Upgrade: h2c\r\n"
                               "HTTP2-Settings: x\r\n"
                               "Transfer-Encoding: chunked\r\n"
                               "Content-Length: 5\r\n"
                               "Stays: yes\r\n"};
    CHECK(sent(one) == "GET /p?q HTTP/1.1\r\nHost: origin.example:8080\r\nStays: yes\r\n\r\n");
}

TEST_CASE("Connection cannot take away what is meant for all recipients") {
    const received_request one{
        "Connection: Host, Content-Type, Cache-Control, Authorization, Cookie, Range, "
        "If-None-Match, X-Forwarded-For, Via\r\n"
        "Content-Type: a\r\n"
        "Cache-Control: no-store\r\n"
        "Authorization: b\r\n"
        "Cookie: c\r\n"
        "Range: bytes=0-1\r\n"
        "If-None-Match: \"d\"\r\n"
        "X-Forwarded-For: 1.2.3.4\r\n"
        "Via: 1.1 before\r\n"};
    const auto head = sent(one);
    for (const std::string_view line : {"Host: origin.example:8080\r\n",
                                        "Content-Type: a\r\n",
                                        "Cache-Control: no-store\r\n",
                                        "Authorization: b\r\n",
                                        "Cookie: c\r\n",
                                        "Range: bytes=0-1\r\n",
                                        "If-None-Match: \"d\"\r\n",
                                        "X-Forwarded-For: 1.2.3.4\r\n",
                                        "Via: 1.1 before\r\n"}) {
        CAPTURE(line);
        CHECK(has(head, line));
    }
    const auto answer = passed("Connection: Cache-Control, ETag, Vary, Set-Cookie, X-Gone\r\n"
                               "Cache-Control: private\r\nETag: \"e\"\r\nVary: Accept\r\n"
                               "Set-Cookie: a=b\r\nX-Gone: 1\r\n");
    CHECK(answer == "HTTP/1.1 200 OK\r\nCache-Control: private\r\nETag: \"e\"\r\nVary: Accept\r\n"
                    "Set-Cookie: a=b\r\n");
}

TEST_CASE("a stripped request has end-to-end fields alone, and what is asked for again") {
    received_request one{"Connection: Accept-Language, TE\r\nAccept-Language: de\r\nHost: a\r\n"
                         "Keep-Alive: 5\r\nTE: trailers\r\nTrailer: X-Sum\r\n"};
    strip_hop_by_hop(one.head.fields);
    REQUIRE(one.head.fields.size() == 3);
    CHECK(one.head.fields[0].id == field_id::host);
    CHECK(one.head.fields[1].id == field_id::te);
    CHECK(one.head.fields[2].id == field_id::trailer);
    CHECK_FALSE(has(sent(one), "TE: "));
    CHECK_FALSE(has(sent(one), "Trailer: "));
    CHECK(has(sent(one, {.trailers = true}), "Trailer: X-Sum\r\n"));
}

TEST_CASE("our Via stands behind those before us") {
    const received_request one{"Via: 1.0 fred\r\nX: y\r\nVia: 1.1 joe (x), 2 ann\r\n"};
    CHECK(has(sent(one, {.via = "us"}), "\r\nVia: 1.0 fred, 1.1 joe (x), 2 ann, 1.1 us\r\n"));
    const received_request old{"", "GET http://h/ HTTP/1.0"};
    CHECK(has(sent(old, {.via = "us"}), "\r\nVia: 1.0 us\r\n"));
    CHECK(has(passed("Via: 1.1 origin\r\n", {.via = "us"}, "HTTP/1.0 200 OK"),
              "\r\nVia: 1.1 origin, 1.0 us\r\n"));
}

TEST_CASE("the client's address is appended where it is asked for") {
    const received_request one{"Forwarded: for=10.0.0.1\r\nX-Forwarded-For: 10.0.0.1\r\n"};
    const auto head = sent(
        one, {.client_address = "2001:db8::1", .forwarded = true, .x_forwarded_for = true});
    CHECK(has(head, "\r\nForwarded: for=10.0.0.1, for=\"[2001:db8::1]\"\r\n"));
    CHECK(has(head, "\r\nX-Forwarded-For: 10.0.0.1, 2001:db8::1\r\n"));
    CHECK(has(sent(received_request{""}, {.client_address = "10.0.0.2", .forwarded = true}),
              "\r\nForwarded: for=10.0.0.2\r\n"));
    CHECK_FALSE(has(sent(received_request{""}, {.client_address = "10.0.0.2"}), "10.0.0.2"));
    // A client's open string would take ours for its inside.
    for (const std::string open : {"for=\"", "for=\"a\\\"", "for=10.0.0.9;by=\"x"}) {
        CHECK(has(sent(received_request{"Forwarded: for=10.0.0.1, " + open + "\r\n"},
                       {.client_address = "10.0.0.2", .forwarded = true}),
                  "\r\nForwarded: for=10.0.0.1, for=10.0.0.2\r\n"));
    }
}

TEST_CASE("framing is written anew from what was decided") {
    const received_request one{"Content-Length: 3\r\nX: y\r\n"};
    CHECK(has(sent(one, {.body = {.kind = body_kind::length, .length = 3}}),
              "\r\nX: y\r\nContent-Length: 3\r\n\r\n"));
    CHECK(has(sent(one, {.body = {.kind = body_kind::chunked}}),
              "\r\nTransfer-Encoding: chunked\r\n\r\n"));
    CHECK_FALSE(has(sent(one), "Content-Length"));
}

TEST_CASE("what the caller does not want is left out, and what it adds comes last") {
    const received_request one{"If-None-Match: \"a\"\r\nIf-Modified-Since: x\r\nIf-Match: b\r\n"
                               "Range: bytes=0-1\r\nIf-Range: \"a\"\r\nExpect: 100-continue\r\n"
                               "Max-Forwards: 7\r\n"};
    const auto head = sent(one,
                           {.drop_conditionals = true,
                            .drop_range = true,
                            .drop_expect = true,
                            .max_forwards = 6,
                            .extra = "If-None-Match: \"ours\"\r\n"});
    CHECK(head == "GET /p?q HTTP/1.1\r\nHost: origin.example:8080\r\nMax-Forwards: 6\r\n"
                  "If-None-Match: \"ours\"\r\n\r\n");
    CHECK(has(sent(one), "Expect: 100-continue\r\n"));
    CHECK_FALSE(has(sent(received_request{"Expect: 100-continue\r\n", "GET http://h/ HTTP/1.0"}),
                    "Expect"));
}

TEST_CASE("a difference to what the client has is asked for by its own conditions alone") {
    const received_request one{"A-IM: feed\r\nIf-None-Match: \"a\"\r\n"};
    CHECK(has(sent(one), "A-IM: feed\r\nIf-None-Match: \"a\"\r\n"));
    CHECK_FALSE(has(sent(one, {.drop_conditionals = true, .extra = "If-None-Match: \"ours\"\r\n"}),
                    "A-IM"));
}

TEST_CASE("Connection is written for an upgrade, for trailers and to close") {
    const received_request one{"Connection: Upgrade\r\nUpgrade: websocket\r\nTrailer: X-Sum\r\n"};
    CHECK(has(sent(one, {.websocket = true}), "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
    CHECK(has(sent(one, {.te_trailers = true}), "Connection: TE\r\nTE: trailers\r\n"));
    CHECK(has(sent(one, {.te_trailers = true, .close = true}), "Connection: close, TE\r\n"));
    CHECK(has(sent(one, {.close = true}), "Connection: close\r\n"));
    CHECK(has(sent(one, {.trailers = true}), "Trailer: X-Sum\r\n"));
}

TEST_CASE("a response passes without framing, Age and Connection, and gets a Date") {
    const auto head = passed("Content-Length: 3\r\nAge: 7\r\nConnection: close\r\n"
                             "Transfer-Encoding: x\r\nProxy-Authenticate: Basic\r\n"
                             "Trailer: X\r\nContent-Type: a\r\n",
                             {.via = "us", .date = "Thu, 01 Jan 1970 00:00:00 GMT"},
                             "HTTP/1.0 404 Gone Fishing");
    CHECK(head == "HTTP/1.1 404 Gone Fishing\r\nContent-Type: a\r\n"
                  "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nVia: 1.0 us\r\n");
    CHECK(passed("Date: d\r\n", {.date = "x"}) == "HTTP/1.1 200 OK\r\nDate: d\r\n");
    CHECK(passed("Age: 7\r\n", {.keep_age = true}) == "HTTP/1.1 200 OK\r\nAge: 7\r\n");
    CHECK(passed("Trailer: X\r\n", {.trailers = true}) == "HTTP/1.1 200 OK\r\nTrailer: X\r\n");
    CHECK(passed("Link: a\r\n", {.date = "x"}, "HTTP/1.1 103 Early Hints") ==
          "HTTP/1.1 103 Early Hints\r\nLink: a\r\n");
    CHECK(passed("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: k\r\n",
                 {.websocket = true},
                 "HTTP/1.1 101 Switching") ==
          "HTTP/1.1 101 Switching\r\nSec-WebSocket-Accept: k\r\nConnection: Upgrade\r\n"
          "Upgrade: websocket\r\n");
}

TEST_CASE("a reply is framed for its client") {
    const auto framing = [](const body_framing& body, unsigned version) {
        std::string out;
        append_framing(out, body, version);
        return out;
    };
    CHECK(framing({.kind = body_kind::length, .length = 12}, 11) == "Content-Length: 12\r\n");
    CHECK(framing({.kind = body_kind::chunked}, 11) == "Transfer-Encoding: chunked\r\n");
    CHECK(framing({.kind = body_kind::chunked}, 10).empty());
    CHECK(framing({.kind = body_kind::until_close}, 11).empty());
    CHECK(framing({}, 11).empty());
    CHECK(framing({.has_stated_length = true, .stated_length = 9}, 11) == "Content-Length: 9\r\n");
}

TEST_CASE("a loop is seen by our exact name, and cannot be hidden") {
    const auto seen = [](std::string_view fields) {
        const received_request one{fields};
        return via_has(one.head.fields, "us");
    };
    CHECK(seen("Via: 1.1 us\r\n"));
    CHECK(seen("Via: 1.0 a, HTTP/1.1   US (comment), 1.1 b\r\n"));
    CHECK(seen("Via: 1.1 a\r\nVia: 1.1 us(comment)\r\n"));
    CHECK(seen("Via: 1.1 a (never closed, 1.1 us\r\n"));
    CHECK(seen("Via: 1.1 \"never closed, 1.1 us\r\n"));
    CHECK_FALSE(seen(""));
    CHECK_FALSE(seen("Via: 1.1 us2, 1.1 not-us, 1.1 us:80, us, 1.1\r\n"));
    CHECK_FALSE(seen("Via: 1.1 a (us)\r\nX: 1.1 us\r\n"));
    CHECK_FALSE(seen("Via: ,, ,\r\n"));
}

TEST_CASE("Max-Forwards counts for OPTIONS and TRACE alone") {
    const auto judged = [](std::string_view fields, std::string_view start) {
        const received_request one{fields, start};
        return judge_hops(one.head);
    };
    const std::string_view options = "OPTIONS http://h/ HTTP/1.1";
    CHECK(judged("", options)->what == hops::forward);
    CHECK_FALSE(judged("", options)->left.has_value());
    CHECK(judged("Max-Forwards: 0\r\n", options)->what == hops::answer_here);
    CHECK(judged("Max-Forwards: 1\r\n", options)->left == 0u);
    CHECK(judged("Max-Forwards: 99999999999999999999\r\n", "TRACE http://h/ HTTP/1.1")->left ==
          (1u << 31) - 1);
    CHECK(judged("Max-Forwards: -1\r\n", options).has_error());
    CHECK(judged("Max-Forwards:\r\n", options).has_error());
    CHECK(judged("Max-Forwards: 1\r\nMax-Forwards: 2\r\n", options).has_error());
    CHECK(judged("Max-Forwards: 0\r\n", "GET http://h/ HTTP/1.1")->what == hops::forward);
}

TEST_CASE("TRACE is answered with the request, without what identifies its sender") {
    const received_request one{
        "Host: h\r\nAuthorization: a\r\nCookie: b\r\nProxy-Authorization: c\r\nX: y\r\n",
        "TRACE http://h/ HTTP/1.1"};
    std::string out;
    append_trace(out, one.head);
    CHECK(out == "TRACE http://h/ HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\n");
}

TEST_SUITE_END();
