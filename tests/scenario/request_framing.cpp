// Requests that two servers could read in two ways are answered with 400 and a closed connection
// (RFC 9112 11.2): whatever follows them is nobody's request.

#include "tests/scenario/world.hpp"

TEST_SUITE("scenario/request_framing") {

    using namespace reprise::tests;

    namespace {

    constexpr int any_refusal = 0;  // a coding we do not have: 400, or 501 (RFC 9112 6.1)

    struct trap {
        std::string what;
        std::string
            head;  ///< after "POST URL HTTP/1.1\r\nHost: …\r\n", with its empty line, and a body
        int status = 400;
    };

    /// Sends a trap and a second request behind it: one error comes, and nothing of the second.
    void check_refused(world& w, const std::string& what, const std::string& raw, int status) {
        CAPTURE(what);
        auto one = w.proxy.connect(raw);
        one.send(w.request("/smuggled"));
        const auto answer = one.read("POST");
        if (status == any_refusal) {
            CHECK((answer.status == 400 || answer.status == 501));
        } else {
            CHECK(answer.status == status);
        }
        CHECK(answer.complete());
        CHECK(lower(answer.get("Connection")).find("close") != std::string::npos);
        const auto rest = one.read_to_end();
        CHECK(rest.bytes.empty());
        CHECK(rest.end != read_end::timed_out);
        CHECK(w.origin.count("/smuggled") == 0);
    }

    std::string post(world& w, const std::string& head) {
        return "POST " + w.origin.url("/a") + " HTTP/1.1\r\nHost: " + w.origin.authority() +
               "\r\n" + head;
    }

    /// What lies within a body that ends earlier than one reader thinks.
    const std::string hidden = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";

    /// No request came to the origin whole.
    void check_nothing_arrived(world& w) {
        for (const auto& request : w.origin.requests()) {
            CAPTURE(request.head.raw);
            CHECK_FALSE(request.body_complete);
        }
    }

    }  // namespace

    TEST_CASE("a body framed in two ways or none that can be trusted is refused") {
        const trap traps[] = {
            {"both lengths",
             "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden},
            {"both, the other order",
             "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + hidden},
            {"two lengths that differ", "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"},
            {"a list of lengths that differ", "Content-Length: 3, 4\r\n\r\nabcd"},
            {"a length with a sign", "Content-Length: +3\r\n\r\nabc"},
            {"a negative length", "Content-Length: -1\r\n\r\n"},
            {"a length in hexadecimal", "Content-Length: 0x3\r\n\r\nabc"},
            {"a length with a letter", "Content-Length: 3a\r\n\r\nabc"},
            {"a length with a space inside", "Content-Length: 3 3\r\n\r\nabc"},
            {"a length with a fraction", "Content-Length: 3.0\r\n\r\nabc"},
            {"an empty length", "Content-Length: \r\n\r\n"},
            {"a length over 64 bits", "Content-Length: 18446744073709551619\r\n\r\nabc"},
            {"a length with a tab inside", "Content-Length: 3\t4\r\n\r\nabc"},
            {"identity", "Transfer-Encoding: identity\r\n\r\n" + hidden, any_refusal},
            {"chunked not last",
             "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
             any_refusal},
            {"chunked twice", "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"},
            {"chunked on two lines",
             "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
            {"chunked and identity on two lines",
             "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
             any_refusal},
            {"nearly chunked", "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", any_refusal},
            {"chunked with a parameter",
             "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
             any_refusal},
            {"chunked in quotes", "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", any_refusal},
            {"chunked and a control character", "Transfer-Encoding: chunked\x0b\r\n\r\n0\r\n\r\n"},
            {"an empty coding", "Transfer-Encoding: \r\n\r\n" + hidden},
        };
        world w;
        for (const auto& one : traps) {
            check_refused(w, one.what, post(w, one.head), one.status);
        }
        check_nothing_arrived(w);
    }

    TEST_CASE("a transfer coding other than chunked is refused") {
        world w;
        CAPTURE("gzip, chunked");
        auto one = w.proxy.connect();
        const auto answer = one.ask(post(w, "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"));
        CHECK((answer.status == 400 || answer.status == 501));
        CHECK(one.is_closed_by_proxy());
        CHECK(w.origin.requests().empty());
    }

    TEST_CASE("Transfer-Encoding in HTTP/1.0 is refused") {
        world w;
        check_refused(
            w,
            "HTTP/1.0",
            "POST " + w.origin.url("/a") + " HTTP/1.0\r\nHost: " + w.origin.authority() +
                "\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400);
        CHECK(w.origin.requests().empty());
    }

    TEST_CASE("a malformed head is refused") {
        const trap traps[] = {
            {"bare LF after a field", "X-A: b\nX-C: d\r\n\r\n"},
            {"bare LF as the empty line", "X-A: b\r\n\n"},
            {"only bare LFs", "X-A: b\n\n"},
            {"bare CR in a value", "X-A: b\rX-C: d\r\n\r\n"},
            {"NUL in a value", std::string{"X-A: b\0c\r\n\r\n", 12}},
            {"a control character in a value", "X-A: b\x01\r\n\r\n"},
            {"a space before the colon", "X-A : b\r\n\r\n"},
            {"a tab before the colon", "Content-Length\t: 5\r\n\r\nhello"},
            {"a space before the name", "X-A: b\r\n X-C: d\r\n\r\n"},
            {"a folded field", "X-A: b\r\n\tc\r\n\r\n"},
            {"a folded Transfer-Encoding", "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"},
            {"a space in a name", "X A: b\r\n\r\n"},
            {"no name", ": b\r\n\r\n"},
            {"no colon", "X-A\r\n\r\n"},
            {"a separator in a name", "X(A): b\r\n\r\n"},
            {"a non-ASCII name", "X\xc3\xa4: b\r\n\r\n"},
            {"a second Host", "Host: other\r\n\r\n"},
            {"the same Host again", "host: x\r\n\r\n"},
        };
        world w;
        for (const auto& one : traps) {
            check_refused(w, one.what, post(w, one.head), one.status);
        }
        CHECK(w.origin.requests().empty());
    }

    TEST_CASE("a folded first field line is refused") {
        world w;
        check_refused(w,
                      "fold",
                      "GET " + w.origin.url("/a") + " HTTP/1.1\r\n Host: " + w.origin.authority() +
                          "\r\n\r\n",
                      400);
        CHECK(w.origin.requests().empty());
    }

    TEST_CASE("HTTP/1.1 without Host is refused") {
        world w;
        check_refused(w, "no Host", "GET " + w.origin.url("/a") + " HTTP/1.1\r\n\r\n", 400);
        CHECK(w.origin.requests().empty());
    }

    TEST_CASE("a Host that is no host is refused") {
        world w;
        for (const std::string host :
             {"a b", "a,b", "a/b", "user@a", "a\tb", "[::1", "a:b", "a:99999"}) {
            check_refused(w,
                          host,
                          "GET " + w.origin.url("/a") + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n",
                          400);
        }
        CHECK(w.origin.requests().empty());
    }

    TEST_CASE("a malformed request line is refused") {
        world w;
        const auto url = w.origin.url("/a");
        const auto host = "\r\nHost: " + w.origin.authority() + "\r\n\r\n";
        const std::string lines[] = {
            "GET  " + url + " HTTP/1.1",
            "GET " + url + "  HTTP/1.1",
            "GET " + url + " HTTP/1.1 ",
            " GET " + url + " HTTP/1.1",
            "GET\t" + url + "\tHTTP/1.1",
            "GET " + url + " http/1.1",
            "GET " + url + " HTTP/1.1x",
            "GET " + url + " HTTP/11",
            "GET " + url + " HTTP/1.",
            "GET " + url + " HTTP/+1.1",
            "GET " + url + " XTTP/1.1",
            "GET " + url,
            "G(T " + url + " HTTP/1.1",
            "G\xc3\xa4T " + url + " HTTP/1.1",
            "GET " + url + "\x01 HTTP/1.1",
            "GET " + url + std::string{"\0", 1} + " HTTP/1.1",
            "GET " + url + "\x7f HTTP/1.1",
            "GET " + url + " /smuggled HTTP/1.1",
            "GET " + url + "#fragment HTTP/1.1",
            "GET http:///a HTTP/1.1",
            "GET http://" + w.origin.authority() + ":1/a HTTP/1.1",
            "GET http://127.0.0.1:port/a HTTP/1.1",
            "GET http://127.0.0.1:99999/a HTTP/1.1",
            "GET http://user:secret@127.0.0.1:1 /a HTTP/1.1",
            "GET a HTTP/1.1",
            "GET * HTTP/1.1",
        };
        for (const auto& line : lines) {
            check_refused(w, line, line + host, 400);
        }
        CHECK(w.origin.requests().empty());
    }

    TEST_CASE("origin-form is not for a forward listener") {
        world w;
        check_refused(
            w, "origin-form", "GET /a HTTP/1.1\r\nHost: " + w.origin.authority() + "\r\n\r\n", 400);
        CHECK(w.origin.requests().empty());
    }

    TEST_CASE("another version of HTTP is refused") {
        world w;
        for (const std::string version : {"HTTP/2.0", "HTTP/3.0", "HTTP/0.9", "HTTP/9.9"}) {
            CAPTURE(version);
            auto one = w.proxy.connect();
            const auto answer = one.ask("GET " + w.origin.url("/a") + " " + version +
                                        "\r\nHost: " + w.origin.authority() + "\r\n\r\n");
            CHECK((answer.status == 505 || answer.status == 400));
            CHECK(one.is_closed_by_proxy());
        }
        auto one = w.proxy.connect();
        CHECK(one.ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").status >= 400);
        CHECK(one.is_closed_by_proxy());
        CHECK(w.origin.requests().empty());
    }

    TEST_CASE("a TLS hello on a plain listener is refused at once") {
        world w;
        auto one = w.proxy.connect(std::string{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11} +
                                   std::string(500, 'x'));
        const auto rest = one.read_to_end();
        CHECK(rest.end != read_end::timed_out);
    }

    TEST_CASE("a bad chunk ends the request, unseen by the origin as a whole one") {
        const trap traps[] = {
            {"no number", "zz\r\nhello\r\n0\r\n\r\n"},
            {"an empty line", "\r\nhello\r\n0\r\n\r\n"},
            {"a sign", "+5\r\nhello\r\n0\r\n\r\n"},
            {"a negative size", "-5\r\nhello\r\n0\r\n\r\n"},
            {"a prefix", "0x5\r\nhello\r\n0\r\n\r\n"},
            {"a leading space", " 5\r\nhello\r\n0\r\n\r\n"},
            {"over 64 bits", "10000000000000005\r\nhello\r\n0\r\n\r\n"},
            {"very long zeros", std::string(100'000, '0') + "5\r\nhello\r\n0\r\n\r\n"},
            {"a line that never ends", "5;" + std::string(200'000, 'x') + "\r\nhello\r\n0\r\n\r\n"},
            {"bare LF after the size", "5\nhello\r\n0\r\n\r\n"},
            {"bare CR in an extension", "5;a\rb\r\nhello\r\n0\r\n\r\n"},
            {"bare LF in an extension", "5;a\nb\r\nhello\r\n0\r\n\r\n"},
            {"bare LF after the data", "5\r\nhello\n0\r\n\r\n"},
            {"data longer than its size", "5\r\nhelloXX\r\n0\r\n\r\n"},
            {"data shorter than its size", "7\r\nhello\r\n0\r\n\r\n"},
            {"nonsense after the size", "5 5\r\nhello\r\n0\r\n\r\n"},
            {"a trailer with a space before its colon", "5\r\nhello\r\n0\r\nX-A : b\r\n\r\n"},
            {"a folded trailer", "5\r\nhello\r\n0\r\nX-A: b\r\n c\r\n\r\n"},
            {"bare LF in trailers", "5\r\nhello\r\n0\r\nX-A: b\n\r\n"},
        };
        world w;
        for (const auto& one : traps) {
            CAPTURE(one.what);
            auto connection = w.proxy.connect(post(w, "Transfer-Encoding: chunked\r\n\r\n") +
                                              one.head);
            connection.send(w.request("/smuggled"));
            const auto answer = connection.read("POST");
            REQUIRE(answer.end != ending::timed_out);
            CHECK(answer.status == 400);
            CHECK(connection.is_closed_by_proxy());
        }
        CHECK(w.origin.count("/smuggled") == 0);
        check_nothing_arrived(w);
    }

    TEST_CASE("an empty line or two before a request is forgiven") {
        world w;
        w.origin.on("/a", ok("", "hello"));
        auto one = w.proxy.connect();
        CHECK(one.ask("\r\n" + w.request("/a")).body == "hello");
        one.send("\r\n\r\n" + w.request("/a"));
        CHECK(one.read().body == "hello");
    }

    TEST_CASE("a head that comes byte by byte is read as one that comes at once") {
        world w;
        w.origin.on("/a", ok("", "hello"));
        auto one = w.proxy.connect();
        for (const char c : w.request("/a", "X-A: b\r\n")) {
            one.send({&c, 1});
        }
        CHECK(one.read().body == "hello");
        CHECK(w.origin.requests("/a").at(0).get("X-A") == "b");
    }

    TEST_CASE("equal lengths are one length, or are refused") {
        world w;
        w.origin.on("/a", ok("", "hello"));
        for (const std::string lines :
             {"Content-Length: 3\r\nContent-Length: 3\r\n", "Content-Length: 3, 3\r\n"}) {
            CAPTURE(lines);
            auto one = w.proxy.connect();
            const auto answer = one.ask(post(w, lines + "\r\nabc"));
            CHECK((answer.status == 200 || answer.status == 400));
        }
        for (const auto& request : w.origin.requests()) {
            CHECK(request.fields.count("Content-Length") == 1);
            CHECK(request.get("Content-Length") == "3");
            CHECK(request.body == "abc");
        }
    }

}  // TEST_SUITE
