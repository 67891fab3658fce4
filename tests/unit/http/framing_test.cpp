#include "proxy/http/framing.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

using namespace reprise::proxy;
using namespace reprise::proxy::http;
using boost::beast::http::verb;

namespace {

// Keeps the bytes the views point into.
struct framed_request {
    std::string bytes;
    request_head head;

    explicit framed_request(std::string_view fields, std::string_view start = "POST /x HTTP/1.1") {
        bytes = std::string{start} + "\r\n" + std::string{fields} + "\r\n";
        REQUIRE(parse_request_head(bytes, head, {}).state == head_state::done);
    }
    framed_request(const framed_request&) = delete;
    framed_request& operator=(const framed_request&) = delete;
};
struct response {
    std::string bytes;
    response_head head;

    explicit response(std::string_view fields, std::string_view start = "HTTP/1.1 200 OK") {
        bytes = std::string{start} + "\r\n" + std::string{fields} + "\r\n";
        REQUIRE(parse_response_head(bytes, head, {}).state == head_state::done);
    }
    response(const response&) = delete;
    response& operator=(const response&) = delete;
};

attempt<body_framing> framed(std::string_view fields, std::string_view start = "POST /x HTTP/1.1") {
    const framed_request one{"Host: a\r\n" + std::string{fields}, start};
    return request_framing(one.head);
}
attempt<body_framing> answered(std::string_view fields,
                               verb method = verb::get,
                               std::string_view start = "HTTP/1.1 200 OK") {
    const response one{fields, start};
    return response_framing(one.head, method);
}

}  // namespace

TEST_SUITE_BEGIN("http/framing");

TEST_CASE("a request without framing fields has no body") {
    const auto body = framed("");
    REQUIRE(body.has_value());
    CHECK(body->kind == body_kind::none);
}

TEST_CASE("a request's length and chunked coding are read") {
    CHECK(framed("Content-Length: 5\r\n")->length == 5);
    CHECK(framed("Content-Length: 0\r\n")->kind == body_kind::length);
    CHECK(framed("Content-Length: 9223372036854775807\r\n")->length == 9223372036854775807u);
    CHECK(framed("Transfer-Encoding: Chunked\r\n")->kind == body_kind::chunked);
}

TEST_CASE("a request framed in a way that can be read twice is refused") {
    for (const std::string_view fields : {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                                          "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
                                          "Content-Length: 5\r\nContent-Length: 6\r\n",
                                          "Content-Length: 5\r\nContent-Length: 5\r\n",
                                          "Content-Length: 5,5\r\n",
                                          "Content-Length: 5, 5\r\n",
                                          "Content-Length: +5\r\n",
                                          "Content-Length: -5\r\n",
                                          "Content-Length: 5 5\r\n",
                                          "Content-Length: 0x5\r\n",
                                          "Content-Length: 5a\r\n",
                                          "Content-Length: \"5\"\r\n",
                                          "Content-Length:\r\n",
                                          "Content-Length: 9223372036854775808\r\n",
                                          "Content-Length: 18446744073709551621\r\n",
                                          "Content-Length: 99999999999999999999999999\r\n",
                                          "Transfer-Encoding: chunked\r\nTransfer-Encoding: "
                                          "chunked\r\n",
                                          "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
                                          "Transfer-Encoding: chunked, chunked\r\n",
                                          "Transfer-Encoding: chunked, gzip\r\n",
                                          "Transfer-Encoding: chunked, identity\r\n",
                                          "Transfer-Encoding: chunked;a=b\r\n",
                                          "Transfer-Encoding: ,chunked\r\n",
                                          "Transfer-Encoding: chunked,\r\n",
                                          "Transfer-Encoding:\r\n"}) {
        CAPTURE(fields);
        const auto body = framed(fields);
        REQUIRE(body.has_error());
        CHECK(body.error().code == failure_code::bad_request);
        CHECK_FALSE(body.error().detail.empty());
    }
}

TEST_CASE("a transfer coding other than chunked is not implemented") {
    for (const std::string_view fields : {"Transfer-Encoding: gzip, chunked\r\n",
                                          "Transfer-Encoding: gzip\r\n",
                                          "Transfer-Encoding: xchunked\r\n",
                                          "Transfer-Encoding: \"chunked\"\r\n",
                                          "Transfer-Encoding: identity\r\n"}) {
        CAPTURE(fields);
        const auto body = framed(fields);
        REQUIRE(body.has_error());
        CHECK(body.error().code == failure_code::unsupported_coding);
    }
}

TEST_CASE("Transfer-Encoding in an HTTP/1.0 request is refused") {
    const auto body = framed("Transfer-Encoding: chunked\r\n", "POST /x HTTP/1.0");
    REQUIRE(body.has_error());
    CHECK(body.error().code == failure_code::bad_request);
}

TEST_CASE("HTTP/1.1 wants exactly one well-formed Host") {
    const auto good = [](std::string_view fields, std::string_view start = "GET /x HTTP/1.1") {
        const framed_request one{fields, start};
        return request_framing(one.head).has_value();
    };
    CHECK(good("Host: a.example\r\n"));
    CHECK(good("Host: a.example:8080\r\n"));
    CHECK(good("Host: [::1]:80\r\n"));
    CHECK_FALSE(good(""));
    CHECK_FALSE(good("Host:\r\n"));
    CHECK_FALSE(good("Host: a\r\nHost: a\r\n"));
    CHECK_FALSE(good("Host: a, b\r\n"));
    CHECK_FALSE(good("Host: a b\r\n"));
    CHECK_FALSE(good("Host: u@a\r\n"));
    CHECK_FALSE(good("Host: a/b\r\n"));
    CHECK_FALSE(good("Host: a:0\r\n"));
    CHECK_FALSE(good("Host: a:99999\r\n"));
    CHECK(good("", "GET /x HTTP/1.0"));
    CHECK_FALSE(good("Host: a\r\nHost: b\r\n", "GET /x HTTP/1.0"));
}

TEST_CASE("CONNECT and TRACE have no body") {
    CHECK(framed("Content-Length: 0\r\n", "CONNECT a:443 HTTP/1.1")->kind == body_kind::none);
    CHECK(framed("Content-Length: 5\r\n", "CONNECT a:443 HTTP/1.1").has_error());
    CHECK(framed("Transfer-Encoding: chunked\r\n", "CONNECT a:443 HTTP/1.1").has_error());
    CHECK(framed("Content-Length: 5\r\n", "TRACE /x HTTP/1.1").has_error());
}

TEST_CASE("more connection options than anybody means are refused") {
    std::string many = "Connection: a0";
    for (int i = 1; i < 32; ++i) {
        many += ", a" + std::to_string(i);
    }
    CHECK(framed(many + "\r\n").has_value());
    CHECK(framed(many + ", a32\r\n").has_error());
    CHECK(answered(many + ", a32\r\n").error().code == failure_code::bad_response);
}

TEST_CASE("a response's body is framed as RFC 9112 6.3 says") {
    CHECK(answered("Content-Length: 5\r\n")->length == 5);
    CHECK(answered("Transfer-Encoding: chunked\r\n")->kind == body_kind::chunked);
    CHECK(answered("")->kind == body_kind::until_close);
}

TEST_CASE("a response framed badly is the origin's fault") {
    for (const std::string_view fields : {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                                          "Content-Length: 5\r\nContent-Length: 6\r\n",
                                          "Content-Length: 5, 6\r\n",
                                          "Content-Length: ,\r\n",
                                          "Content-Length:\r\n",
                                          "Content-Length: five\r\n",
                                          "Content-Length: +5\r\n",
                                          "Content-Length: 5\r\nContent-Length:\r\n",
                                          "Content-Length: 99999999999999999999999999\r\n",
                                          "Transfer-Encoding: gzip\r\n",
                                          "Transfer-Encoding: gzip, chunked\r\n",
                                          "Transfer-Encoding: chunked\r\nTransfer-Encoding: "
                                          "chunked\r\n"}) {
        for (const auto method : {verb::get, verb::head}) {
            CAPTURE(fields);
            const auto body = answered(fields, method);
            REQUIRE(body.has_error());
            CHECK(body.error().code == failure_code::bad_response);
        }
    }
    const auto old = answered("Transfer-Encoding: chunked\r\n", verb::get, "HTTP/1.0 200 OK");
    REQUIRE(old.has_error());
    CHECK(old.error().code == failure_code::bad_response);
}

TEST_CASE("equal Content-Length values in a response count as one") {
    CHECK(answered("Content-Length: 5\r\nContent-Length: 5\r\n")->length == 5);
    CHECK(answered("Content-Length: 5, 5\r\n")->length == 5);
    for (const char* lines : {"Content-Length: 5,\r\n",
                              "Content-Length: ,5\r\n",
                              "Content-Length: 5,,5\r\n",
                              "Content-Length: 5, 5 ,\r\n",
                              "Content-Length: 5\r\nContent-Length: \r\n",
                              "Content-Length:\r\n",
                              "Content-Length: ,\r\n",
                              "Content-Length: \"5\"\r\n",
                              "Content-Length: \"5,5\"\r\n",
                              "Content-Length: 5, 6\r\n",
                              "Content-Length: 5\r\nContent-Length: 5,\r\n",
                              "Transfer-Encoding: chunked,\r\n",
                              "Transfer-Encoding: ,chunked\r\n",
                              "Transfer-Encoding: \r\n",
                              "Transfer-Encoding: ,\r\n"}) {
        CAPTURE(lines);
        const auto got = answered(lines);
        REQUIRE(got.has_error());
        CHECK(got.error().code == failure_code::bad_response);
    }
}

TEST_CASE("to HEAD and in a 304 there is a stated length but no body") {
    const auto to_head = answered("Content-Length: 5\r\n", verb::head);
    CHECK(to_head->kind == body_kind::none);
    CHECK(to_head->has_stated_length);
    CHECK(to_head->stated_length == 5);
    CHECK(to_head->reusable);
    const auto not_modified = answered("", verb::get, "HTTP/1.1 304 Not Modified");
    CHECK(not_modified->kind == body_kind::none);
    CHECK_FALSE(not_modified->has_stated_length);
    CHECK(answered("Transfer-Encoding: chunked\r\n", verb::head)->kind == body_kind::none);
}

TEST_CASE("a 204 that frames a body has none, and its connection is not trusted again") {
    // A 1xx that does is no head (message_head_test).
    for (const std::string_view start : {"HTTP/1.1 204 No Content", "HTTP/1.1 103 Early Hints"}) {
        CAPTURE(start);
        const auto plain = answered("", verb::get, start);
        CHECK(plain->kind == body_kind::none);
        CHECK(plain->reusable);
        CHECK(answered("Content-Length: 0\r\n", verb::get, start)->reusable);
    }
    for (const std::string_view fields :
         {"Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"}) {
        const auto framed_body = answered(fields, verb::get, "HTTP/1.1 204 No Content");
        CHECK(framed_body->kind == body_kind::none);
        CHECK_FALSE(framed_body->reusable);
    }
}

TEST_CASE("a connection lives on as the version and Connection say") {
    const auto lives = [](std::string_view fields, std::string_view start) {
        const framed_request one{fields, start};
        return keep_alive(one.head.version, one.head.fields);
    };
    CHECK(lives("", "GET / HTTP/1.1"));
    CHECK_FALSE(lives("Connection: close\r\n", "GET / HTTP/1.1"));
    CHECK_FALSE(lives("Connection: keep-alive, Close\r\n", "GET / HTTP/1.1"));
    CHECK_FALSE(lives("Connection: x\r\nConnection: close\r\n", "GET / HTTP/1.1"));
    CHECK_FALSE(lives("", "GET / HTTP/1.0"));
    CHECK(lives("Connection: Keep-Alive\r\n", "GET / HTTP/1.0"));
    CHECK_FALSE(lives("Proxy-Connection: keep-alive\r\n", "GET / HTTP/1.0"));
}

TEST_CASE("only 100-continue is expected, with a body and in HTTP/1.1") {
    const auto expects = [](std::string_view fields, std::string_view start) {
        const framed_request one{"Host: a\r\n" + std::string{fields}, start};
        return expects_continue(one.head, *request_framing(one.head));
    };
    CHECK(*expects("Content-Length: 5\r\nExpect: 100-Continue\r\n", "PUT / HTTP/1.1"));
    CHECK_FALSE(*expects("Expect: 100-continue\r\n", "PUT / HTTP/1.1"));
    CHECK_FALSE(*expects("Content-Length: 5\r\n", "PUT / HTTP/1.1"));
    CHECK_FALSE(*expects("Content-Length: 5\r\nExpect: 100-continue\r\n", "PUT / HTTP/1.0"));
    CHECK(expects("Content-Length: 5\r\nExpect: coffee\r\n", "PUT / HTTP/1.1").error().code ==
          failure_code::unsupported_expectation);
}

TEST_CASE("a WebSocket handshake is the only upgrade") {
    const auto asks = [](std::string_view fields, std::string_view start = "GET / HTTP/1.1") {
        const framed_request one{fields, start};
        return asks_websocket(one.head);
    };
    CHECK(asks("Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"));
    CHECK_FALSE(asks("Upgrade: websocket\r\n"));
    CHECK_FALSE(asks("Connection: upgrade\r\nUpgrade: h2c\r\n"));
    CHECK_FALSE(asks("Connection: upgrade\r\nUpgrade: websocket, h2c\r\n"));
    CHECK_FALSE(asks("Connection: upgrade\r\nUpgrade: websocket\r\n", "POST / HTTP/1.1"));
    CHECK_FALSE(asks("Connection: upgrade\r\nUpgrade: websocket\r\n", "GET / HTTP/1.0"));
}

TEST_SUITE_END();
