#include "tests/unit/serve/exchanges.hpp"

namespace reprise::proxy::serve::test::of_passed_reply {

namespace {

using phase = fetch::upload::phase;

// A POST with these fields, and what stands behind its head.
std::string post(const std::string& fields, const std::string& behind = "") {
    return head_of("POST " + url, fields) + behind;
}

const wanted::passed& passed_in(const arrival& from) {
    const auto* what = std::get_if<wanted::passed>(&from.order->what);
    REQUIRE(what != nullptr);
    return *what;
}

void answer(arrival& from, const std::string& status = "200 OK") {
    from.head(status + "\r\nContent-Length: 2\r\n");
    from.body("ok");
    from.end();
}

}  // namespace

TEST_SUITE_BEGIN("serve/passed_reply");

TEST_CASE("another method is an origin's alone, and its answer the client's") {
    bench at;
    asking one{at, head_of("DELETE " + url)};
    auto from = at.origin();
    CHECK(!from.order->listed);
    CHECK(!passed_in(from).body);
    answer(from, "202 Accepted");
    at.settle();
    CHECK(one.how == ended::keep);
    CHECK(at.said().status == 202);
    CHECK(at.said().body == "ok");
    one.close();
    CHECK(at.counted(outcome::pass) == 1);
}

TEST_CASE("a body that is here goes with its order; what nobody read of it is out of the way") {
    for (const auto& request :
         {post("Content-Length: 5\r\n", "hello"),
          post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n")}) {
        CAPTURE(request);
        bench at;
        at.comes(request + get());
        asking one{at};
        auto from = at.origin();
        REQUIRE(passed_in(from).body);
        CHECK(passed_in(from).body->state() == phase::untouched);
        answer(from);
        at.settle();
        CHECK(one.how == ended::keep);
        CHECK(at.said().body == "ok");
        one.close();
        CHECK(at.stream.input().data() == get());
    }
}

TEST_CASE("behind a body that is wrongly framed there is no next request") {
    bench at;
    at.comes(post("Transfer-Encoding: chunked\r\n", "no size\r\nhello\r\n0\r\n\r\n") + get());
    asking one{at};
    auto from = at.origin();  // it is the upload that says so
    answer(from);
    at.settle();
    CHECK(one.how == ended::close);
}

TEST_CASE("a long body that nobody reads ends the connection, not the answer") {
    bench at;
    at.comes(post("Content-Length: 1000000\r\n", std::string(70'000, 'b')));
    asking one{at};
    auto from = at.origin();
    answer(from, "413 Too Much");
    at.settle();
    CHECK(one.how == ended::close);
    CHECK(at.said().status == 413);
    CHECK(at.said().body == "ok");
}

TEST_CASE("a client that leaves before its body has begun has ordered nothing") {
    bench at;  // whose socket is closed
    asking one{at, post("Content-Length: 5\r\n")};
    at.settle();
    CHECK(at.orders.size() == 0);
    CHECK(one.how == ended::gone);
    one.close();
    CHECK(at.counted(outcome::client_gone) == 1);
}

TEST_CASE(
    "a client that asks first has its order at once, the origin's word, and then its answer") {
    bench at;
    asking one{at, post("Content-Length: 5\r\nExpect: 100-continue\r\n")};
    auto from = at.origin();
    REQUIRE(passed_in(from).body);
    CHECK(passed_in(from).body->awaits_word());
    const std::string word = "HTTP/1.1 100 Continue\r\n\r\n";
    from.order->into->producer_interim(word);
    at.settle();
    CHECK(at.sink.sent == word);
    answer(from, "417 Expectation Failed");
    at.settle();
    CHECK(one.how == ended::close);  // the body may come, or not
    const auto final_one = at.sink.sent.substr(word.size());
    CHECK(final_one.starts_with("HTTP/1.1 417 "));
    CHECK(final_one.find("\r\nConnection: close\r\n") != std::string::npos);
}

TEST_CASE("whatever answers a client that awaits a 100 says that the connection ends with it") {
    for (const bool fails : {true, false}) {
        CAPTURE(fails);
        bench at;
        asking one{at, post("Content-Length: 5\r\nExpect: 100-continue\r\n")};
        auto from = at.origin();
        if (fails) {
            from.fail(failure_code::connect_refused, "nobody is there");
        } else {
            answer(from);
        }
        at.settle();
        CHECK(one.how == ended::close);
        CHECK(at.said().status == (fails ? 502 : 200));
        CHECK(at.said()["Connection"] == "close");
    }
}

TEST_CASE("what an origin's failure is said of: the request is answered, and the next one read") {
    bench at;
    at.comes(post("Content-Length: 5\r\n", "hello") + get());
    asking one{at};
    at.origin().fail(failure_code::origin_closed, "it is gone");
    at.settle();
    CHECK(one.how == ended::keep);
    CHECK(at.said().status == 502);
    one.close();
    CHECK(at.stream.input().data() == get());
}

TEST_CASE("a POST's answer may be stored, nobody else's") {
    struct one {
        std::string method, fields;
        bool may;
    };
    for (const auto& [method, fields, may] : {one{"POST", "", true},
                                              one{"POST", "Cache-Control: no-store\r\n", false},
                                              one{"PUT", "", false},
                                              one{"PATCH", "", false}}) {
        CAPTURE(method);
        CAPTURE(fields);
        bench at;
        at.comes(head_of(method + " " + url, fields + "Content-Length: 2\r\n") + "hi");
        asking asked{at};
        CHECK(at.orders.next()->may_store == may);
    }
}

TEST_CASE(
    "what succeeded for a client that has left before it was looked at has changed things too") {
    // Without an answer nothing has: else who may not purge could, by leaving what the origin refuses.
    for (const std::string status : {"200 OK", "500 No", ""}) {
        CAPTURE(status);
        const bool succeeds = status == "200 OK";
        bench at;
        at.store(of_five, "hello");
        at.sink.fails_after = 0;
        asking one{at, head_of("DELETE " + url)};
        auto from = at.origin();
        from.order->into->producer_interim("HTTP/1.1 103 Early Hints\r\n\r\n");
        if (!status.empty()) {
            from.head(status + "\r\nContent-Length: 0\r\n");
            from.end();
        }
        at.settle();
        CHECK(one.how == ended::gone);
        CHECK(from.found().has_value() == !succeeds);
        one.close();
        CHECK(at.counted(outcome::client_gone) == 1);
        CHECK(at.at.w.counts.store_invalidated.read() == (succeeds ? 1 : 0));
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_passed_reply
