#include "proxy/serve/partial_reply.hpp"
#include "tests/unit/serve/exchanges.hpp"

namespace reprise::proxy::serve::test::of_partial_reply {

namespace {

const std::string common = "Cache-Control: max-age=600\r\nETag: \"1\"\r\n";

std::string part_of_ten(unsigned first, unsigned last) {
    return "206 Partial Content\r\n" + common + "Content-Range: bytes " + std::to_string(first) +
           "-" + std::to_string(last) +
           "/10\r\nContent-Length: " + std::to_string(last + 1 - first) + "\r\n";
}

// A node that has bytes 0-2 and 6-9 of ten, and a client who wants more than that.
struct lacking : bench {
    explicit lacking(const std::string& fields = "") {
        store(part_of_ten(0, 2), "012", "Range: bytes=0-2\r\n");
        store(part_of_ten(6, 9), "6789", "Range: bytes=6-9\r\n");
        one.emplace(*this, get(fields));
        from.emplace(at, orders.next());
    }
    // What is held still.
    [[nodiscard]] bool holds() const { return from->found() == "(parts)"; }

    std::optional<asking> one;
    std::optional<arrival> from;
};

}  // namespace

TEST_SUITE_BEGIN("serve/partial_reply");

TEST_CASE("the gap alone is asked for, under the validator of what is held") {
    lacking at;
    const auto* gap = at.from->order->as<wanted::gap>();
    REQUIRE(gap);
    CHECK(gap->range == "bytes=3-5");
    CHECK(gap->validator == "\"1\"");
    CHECK(at.sink.sent.empty());
}

TEST_CASE("what is held and what comes are one whole answer, and are whole from then on") {
    lacking at;
    at.from->head(part_of_ten(3, 5));
    at.settle();
    CHECK(at.said().body == "012");  // while the gap comes
    at.from->body("345");
    at.from->end();
    at.settle();
    CHECK(at.one->how == ended::keep);
    CHECK(at.said().status == 200);
    CHECK(at.said()["Content-Length"] == "10");
    CHECK(at.said()["Content-Range"].empty());
    CHECK(at.said().body == "0123456789");
    CHECK(at.said()["Cache-Status"].starts_with("reprise; fwd=partial; fwd-status=206"));
    CHECK(at.at.w.counts.body_bytes_from_store.read() == 7);
    CHECK(at.at.w.counts.body_bytes_to_clients.read() == 10);
    CHECK(at.from->found() == "0123456789");
}

TEST_CASE("a range over the gap is a 206 of these bytes") {
    lacking at{"Range: bytes=2-6\r\n"};
    CHECK(at.from->order->as<wanted::gap>()->range == "bytes=3-5");
    at.from->head(part_of_ten(3, 5));
    at.from->body("345");
    at.from->end();
    at.settle();
    CHECK(at.one->how == ended::keep);
    CHECK(at.said().status == 206);
    CHECK(at.said()["Content-Range"] == "bytes 2-6/10");
    CHECK(at.said()["Content-Length"] == "5");
    CHECK(at.said().body == "23456");
}

TEST_CASE("interim answers to a request of ours are nobody's") {
    lacking at;
    at.from->order->into->producer_interim("HTTP/1.1 103 Early Hints\r\n\r\n");
    at.settle();
    CHECK(at.sink.sent.empty());
}

TEST_CASE("another representation is sent whole, and nothing of the old one before it") {
    lacking at;
    at.from->head("200 OK\r\nCache-Control: max-age=600\r\nETag: \"2\"\r\nContent-Length: 3\r\n");
    at.from->body("new");
    at.from->end();
    at.settle();
    CHECK(at.one->how == ended::keep);
    CHECK(at.said().status == 200);
    CHECK(at.said()["ETag"] == "\"2\"");
    CHECK(at.said().body == "new");
    CHECK(!at.holds());
}

TEST_CASE(
    "an error instead of the gap is the client's answer; what is held stays, if it still is") {
    for (const bool gone : {false, true}) {
        lacking at;
        at.from->head((gone ? std::string{"404 Gone"} : std::string{"500 No"}) +
                      "\r\nContent-Length: 5\r\n");
        at.from->body("sorry");
        at.from->end();
        at.settle();
        CHECK(at.one->how == ended::keep);
        CHECK(at.said().status == (gone ? 404 : 500));
        CHECK(at.said().body == "sorry");
        CHECK(at.holds() == !gone);
    }
}

TEST_CASE("an answer to our range that is none to the client's request is followed by his own") {
    lacking at;
    SUBCASE("a part of another") {
        at.from->head("206 Partial Content\r\nETag: \"2\"\r\nContent-Range: bytes 3-5/10\r\n"
                      "Content-Length: 3\r\n");
    }
    SUBCASE("another part") {
        at.from->head(part_of_ten(3, 4));
    }
    SUBCASE("the range is behind the end") {
        at.from->head("416 No\r\nContent-Range: bytes */2\r\nContent-Length: 0\r\n");
    }
    SUBCASE("not modified") {
        at.from->head("304 Not Modified\r\nETag: \"1\"\r\n");
    }
    at.settle();
    CHECK(at.sink.sent.empty());
    CHECK(at.from->order->into->clients() == 0);
    auto own = at.origin();
    CHECK(own.order->as<wanted::whole>() != nullptr);
    CHECK(own.order->replaces);
    own.head("200 OK\r\n" + common + "Content-Length: 3\r\n");
    own.body("new");
    own.end();
    at.settle();
    CHECK(at.one->how == ended::keep);
    CHECK(at.said().body == "new");
    CHECK(at.sink.wholes == 1);
}

TEST_CASE("a gap of another length, or that fails, breaks the answer off") {
    lacking at;
    at.from->head(part_of_ten(3, 5));
    SUBCASE("short") {
        at.from->body("34");
        at.settle();
        at.from->end();
    }
    SUBCASE("long") {
        at.from->body("345and more");
    }
    SUBCASE("failed") {
        at.from->body("3");
        at.settle();
        at.from->fail(failure_code::origin_body_timeout);
    }
    at.settle();
    CHECK(at.one->how == ended::gone);
    CHECK(at.sink.broken_off);
    CHECK(at.sink.wholes == 0);
    CHECK(std::string{"012345"}.starts_with(at.said().body));
    at.one->close();
    CHECK(at.counted(outcome::cut_short) == 1);
}

TEST_CASE("where the origin says nothing a page says so, and what is held stays") {
    lacking at;
    at.from->fail(failure_code::connect_timeout);
    at.settle();
    CHECK(at.one->how == ended::keep);
    CHECK(at.said().status == 504);
    CHECK(at.holds());
}

TEST_CASE("a client that leaves while a gap is awaited had nothing, and ends that fetch") {
    lacking at;
    at.sink.leaves();
    at.settle();
    CHECK(at.one->how == ended::gone);
    CHECK(!at.sink.broken_off);
    CHECK(at.from->order->into->abandoned());
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_partial_reply
