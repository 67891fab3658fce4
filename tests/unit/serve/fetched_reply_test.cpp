#include "proxy/serve/fetch_relay.hpp"
#include "proxy/serve/fetched_reply.hpp"
#include "tests/unit/serve/exchanges.hpp"

namespace reprise::proxy::serve::test::of_fetched_reply {

namespace {

// A client who waits for an origin.
struct fetching : bench {
    explicit fetching(const std::string& request = get()) : one{*this, request}, from{origin()} {}
    asking one;
    arrival from;
};

// The same, where something stale is stored.
struct validating : bench {
    explicit validating(const std::string& directives = "max-age=60",
                        const std::string& fields = "") {
        store("200 OK\r\nCache-Control: " + directives +
                  "\r\nETag: \"1\"\r\nAge: 100\r\nContent-Length: 5\r\n",
              "hello");
        one.emplace(*this, get(fields));
    }
    std::optional<asking> one;
};

// A first request for it, which stores nothing.
void see_once(bench& on) {
    arrival first{on.at};
    first.head(of_five);
    first.body("hello");
    first.end();
}

}  // namespace

TEST_SUITE_BEGIN("serve/fetched_reply");

TEST_CASE("what an origin sends goes out as it comes, and says that it was fetched") {
    fetching at;
    CHECK(at.sink.sent.empty());
    at.from.head(of_five);
    at.from.body("he");
    at.settle();
    CHECK(at.said().body == "he");
    CHECK(at.said()["Content-Length"] == "5");
    CHECK(at.said()["Cache-Status"] ==
          "reprise; fwd=uri-miss; fwd-status=200; detail=first-request");
    CHECK(!at.one.how);
    at.from.body("llo");
    at.from.end();
    at.settle();
    CHECK(at.one.how == ended::keep);
    CHECK(at.said().body == "hello");
    CHECK(at.sink.wholes == 1);
    at.one.close();
    CHECK(at.counted(outcome::miss) == 1);
    CHECK(at.at.w.counts.body_bytes_to_clients.read() == 5);
}

TEST_CASE("of a body longer than was said no byte more goes out, and it is broken off") {
    fetching at;
    at.from.head(of_five);
    at.settle();
    at.from.body("hello, and more");
    at.from.end();
    at.settle();
    CHECK(at.one.how == ended::gone);
    CHECK(at.sink.broken_off);
    CHECK(at.sink.wholes == 0);
    CHECK(at.said().body.size() <= 5);
    at.one.close();
    CHECK(at.counted(outcome::cut_short) == 1);
}

TEST_CASE("a body shorter than was said is broken off, never ended as if whole") {
    fetching at;
    at.from.head(of_five);
    at.from.body("hell");
    at.settle();
    at.from.end();
    at.settle();
    CHECK(at.one.how == ended::gone);
    CHECK(at.sink.broken_off);
    CHECK(at.sink.wholes == 0);
}

TEST_CASE("where nothing has gone out a body of another length is an error page instead") {
    fetching at;
    at.from.head(of_five);
    at.from.end();
    at.settle();
    CHECK(at.one.how == ended::keep);
    CHECK(at.said().status == 502);
    CHECK(at.said().body.find("response_cut_short") != std::string::npos);
    CHECK(at.sink.wholes == 1);
}

TEST_CASE("a body of unknown length is chunked for HTTP/1.1, with the origin's trailers") {
    fetching at;
    at.from.head(fresh + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n");
    at.from.body("hello");
    at.settle();
    at.from.body("you");
    at.from.end(true, "X-Sum: 8\r\n");
    at.settle();
    CHECK(at.one.how == ended::keep);
    CHECK(at.said()["Transfer-Encoding"] == "chunked");
    CHECK(at.said()["Trailer"] == "X-Sum");
    CHECK(at.said().body == "5\r\nhello\r\n3\r\nyou\r\n0\r\nX-Sum: 8\r\n\r\n");
}

TEST_CASE("a chunked body that fails has no last chunk") {
    fetching at;
    at.from.head(fresh + "Transfer-Encoding: chunked\r\n");
    at.from.body("hello");
    at.settle();
    at.from.fail(failure_code::response_cut_short);
    at.settle();
    CHECK(at.one.how == ended::gone);
    CHECK(at.sink.broken_off);
    CHECK(at.said().body == "5\r\nhello\r\n");
}

TEST_CASE("a body of unknown length ends with an HTTP/1.0 client's connection") {
    fetching at{"GET " + url + " HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"};
    at.from.head(fresh + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n");
    at.from.body("hello");
    at.from.end(true, "X-Sum: 8\r\n");
    at.settle();
    CHECK(at.one.how == ended::close);
    CHECK(at.sink.ends_with_connection);
    CHECK(at.said()["Transfer-Encoding"].empty());
    CHECK(at.said()["Trailer"].empty());
    CHECK(at.said()["Connection"] == "close");
    CHECK(at.said().body == "hello");
}

TEST_CASE("HEAD is asked as HEAD, and answered without a byte of a body") {
    SUBCASE("by an origin") {
        fetching at{head_of("HEAD " + url)};
        CHECK(at.from.order->as<wanted::head>() != nullptr);
        at.from.head(of_five);
        at.from.end();
        at.settle();
        CHECK(at.one.how == ended::keep);
        CHECK(at.said()["Content-Length"] == "5");
        CHECK(at.said().body.empty());
    }
    SUBCASE("by a fetch that has one") {
        bench on;
        stated one{on, head_of("HEAD " + url)};
        arrival from{on.at};
        from.head(fresh + "Transfer-Encoding: chunked\r\n");
        from.body("hello");
        from.end();
        cache::fetch_reader::report came;
        from.reader->next(came, 0);
        std::optional<ended_or_next> how;
        on.start(send_fetched(one.x, *from.reader, from.published, {}), how);
        REQUIRE(how);
        CHECK(std::get<ended>(*how) == ended::keep);
        CHECK(on.said().body.empty());
    }
}

TEST_CASE("a fetch that fails before its head is a page of that failure, and nothing else") {
    fetching at;
    at.from.fail(failure_code::connect_refused, "10.0.0.1:80");
    at.settle();
    CHECK(at.one.how == ended::keep);
    CHECK(at.said().status == 502);
    CHECK(at.said().body.find("10.0.0.1:80") != std::string::npos);
    at.one.close();
    CHECK(at.counted(outcome::error) == 1);
}

TEST_CASE("what is stale stands in for an origin that says nothing") {
    validating at;
    at.origin().fail(failure_code::connect_refused);
    at.settle();
    CHECK(at.one->how == ended::keep);
    CHECK(at.said().body == "hello");
    CHECK(at.said()["Cache-Status"].ends_with("detail=origin-failed"));
    at.one->close();
    CHECK(at.counted(outcome::stale) == 1);
    CHECK(at.counted(outcome::error) == 0);
}

TEST_CASE("what must be validated stands in for nobody") {
    validating at{"max-age=60, must-revalidate"};
    at.origin().fail(failure_code::connect_refused);
    at.settle();
    CHECK(at.said().status == 502);
}

TEST_CASE("an origin's error gives way to what is stale where that was allowed") {
    for (const bool allowed : {true, false}) {
        validating at{allowed ? "max-age=60, stale-if-error=600" : "max-age=60"};
        auto from = at.origin();
        from.head("503 No\r\nContent-Length: 5\r\n");
        from.body("sorry");
        from.end();
        at.settle();
        CHECK(at.one->how == ended::keep);
        CHECK(at.said().status == (allowed ? 200 : 503));
        CHECK(at.said().body == (allowed ? "hello" : "sorry"));
    }
}

TEST_CASE("what a 304 has confirmed is sent from the store, a range of it too") {
    for (const bool ranged : {false, true}) {
        validating at{"max-age=60", ranged ? "Range: bytes=1-2\r\n" : ""};
        const auto order = at.orders.next();
        const auto kept = order->validating();
        REQUIRE(kept);
        order->into->producer_validated(kept, std::make_shared<cache::confirmation>());
        at.settle();
        CHECK(at.one->how == ended::keep);
        CHECK(at.said().status == (ranged ? 206 : 200));
        CHECK(at.said().body == (ranged ? "el" : "hello"));
        CHECK(at.said()["Cache-Status"].starts_with("reprise; fwd=stale; fwd-status=304; "));
        at.one->close();
        CHECK(at.counted(outcome::revalidated) == 1);
    }
}

TEST_CASE("a client's own condition is the origin's to judge, until the answer would be stored") {
    const std::string condition = "If-None-Match: \"1\"\r\n";
    SUBCASE("at first sight it goes along, and its 304 comes back") {
        fetching at{get(condition)};
        CHECK(at.from.order->own_conditions);
        at.from.head("304 Not Modified\r\nETag: \"1\"\r\n");
        at.from.end();
        at.settle();
        CHECK(at.said().status == 304);
        CHECK(at.one.how == ended::keep);
    }
    SUBCASE("later all of it is asked for; the client's 304 is made here, and all is stored") {
        bench on;
        see_once(on);
        asking one{on, get(condition)};
        auto from = on.origin();
        CHECK(!from.order->own_conditions);
        from.head(of_five + "ETag: \"1\"\r\n");
        on.settle();
        CHECK(one.how == ended::keep);
        CHECK(on.said().status == 304);
        CHECK(on.said()["ETag"] == "\"1\"");
        CHECK(on.said()["Content-Length"].empty());
        CHECK(on.said()["Cache-Status"].find("; stored") != std::string::npos);
        CHECK(!from.order->into->abandoned());
        from.body("hello");
        from.end();
        CHECK(from.found() == "hello");
    }
    SUBCASE(
        "but where no more may go on unattended the rest is given up, and not said to be stored") {
        bench on;
        see_once(on);
        asking one{on, get(condition)};
        auto from = on.origin();
        from.order->into->producer_is(
            {}, [] {}, [] { return cache::unattended_permit{}; });
        from.head(of_five + "ETag: \"1\"\r\n");
        on.settle();
        CHECK(one.how == ended::keep);
        CHECK(on.said().status == 304);
        CHECK(on.said()["Cache-Status"].find("; stored") == std::string::npos);
        CHECK(from.order->into->abandoned());
    }
}

TEST_CASE("interim answers are passed on to HTTP/1.1 alone, and are no answer") {
    const std::string hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    for (const bool old : {false, true}) {
        fetching at{old ? "GET " + url + " HTTP/1.0\r\n\r\n" : get()};
        at.from.order->into->producer_interim(hints);
        at.settle();
        CHECK(at.sink.sent == (old ? "" : hints));
        CHECK(!at.sink.under_way());
        at.from.head(of_five);
        at.from.body("hello");
        at.from.end();
        at.settle();
        CHECK(at.one.how == (old ? ended::close : ended::keep));
        CHECK(heard{std::string_view{at.sink.sent}.substr(old ? 0 : hints.size())}.body == "hello");
    }
}

TEST_CASE("behind an interim answer a failure has its page still") {
    fetching at;
    at.from.order->into->producer_interim("HTTP/1.1 103 Early Hints\r\n\r\n");
    at.settle();
    at.from.fail(failure_code::origin_closed);
    at.settle();
    CHECK(at.one.how == ended::keep);
    CHECK(at.sink.sent.find("HTTP/1.1 502 ") != std::string::npos);
    CHECK(!at.sink.broken_off);
}

TEST_CASE("an unsafe method that succeeds makes what is stored invalid; one that fails does not") {
    for (const bool succeeds : {false, true}) {
        bench on;
        on.store(of_five, "hello");
        asking one{on, head_of("POST " + url, "Content-Length: 0\r\n")};
        auto from = on.origin();
        CHECK(from.order->as<wanted::passed>() != nullptr);
        from.head((succeeds ? std::string{"200 OK"} : std::string{"500 No"}) +
                  "\r\nContent-Length: 0\r\n");
        from.end();
        on.settle();
        CHECK(one.how == ended::keep);
        CHECK(from.found().has_value() == !succeeds);
        one.close();
        CHECK(on.counted(outcome::pass) == 1);
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_fetched_reply
