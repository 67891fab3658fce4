#include "tests/unit/serve/exchanges.hpp"

namespace reprise::proxy::serve::test::of_exchange {

TEST_SUITE_BEGIN("serve/exchange");

TEST_CASE("a hit is over when it begins: nothing is awaited and nobody asked") {
    bench on;
    on.store(of_five, "hello");
    asking one{on, get()};
    CHECK(one.begun == ended::keep);
    CHECK(on.sink.sends == 0);
    CHECK(on.orders.size() == 0);
    CHECK(on.said().body == "hello");
}

TEST_CASE("a hit whose client takes a part waits for it, and counts as one all the same") {
    bench on;
    on.store(of_five, "hello");
    on.sink.takes(10);
    asking one{on, get()};
    CHECK(!one.begun);
    CHECK(!one.how);
    on.sink.takes(1000);
    on.settle();
    CHECK(one.how == ended::keep);
    CHECK(on.said().body == "hello");
    one.close();
    CHECK(on.counted(outcome::hit) == 1);
}

TEST_CASE("a request that stands behind another stays in the input, and is the next") {
    bench on;
    on.store(of_five, "hello");
    on.comes(get() + get("Range: bytes=1-2\r\n") + "GE");
    {
        asking first{on};
        CHECK(on.stream.input().size() == (get() + get("Range: bytes=1-2\r\n")).size() + 2);
    }
    CHECK(on.stream.input().data().starts_with("GET " + url + " HTTP/1.1\r\nHost: a.example\r\nR"));
    const auto before = on.sink.sent.size();
    { asking second{on}; }
    CHECK(heard{std::string_view{on.sink.sent}.substr(before)}.body == "el");
    CHECK(on.stream.input().data() == "GE");
}

TEST_CASE("the head of a request that is fetched leaves the input once, though it is copied") {
    bench on;
    on.comes(get() + "next");
    {
        asking one{on};
        CHECK(on.stream.input().data() == "next");
        auto from = on.origin();
        from.head(of_five);
        from.body("hello");
        from.end();
        on.settle();
        CHECK(one.how == ended::keep);
    }
    CHECK(on.stream.input().data() == "next");
    CHECK(on.at.w.counts.bytes_from_clients.read() == get().size());
}

TEST_CASE("a small body that nobody wanted is drained, and the next request stands behind it") {
    bench on;
    on.comes(head_of("POST http://b.example:1/x", "Content-Length: 5\r\n") + "helloGET");
    asking one{on};
    CHECK(!one.begun);
    CHECK(one.how == ended::keep);
    CHECK(on.said().status == 403);
    CHECK(on.stream.input().data() == "GET");
}

TEST_CASE("a client that may not ask learns nothing of what is stored") {
    bench on;
    on.store(of_five, "hello");
    on.who.refused = true;
    asking one{on, get()};
    CHECK(one.begun == ended::close);
    CHECK(on.said().status == 403);
    CHECK(on.said().body.find("hello") == std::string::npos);
    one.close();
    CHECK(on.counted(outcome::refused) == 1);
}

TEST_CASE("while the program drains an answer is its connection's last") {
    bench on;
    on.store(of_five, "hello");
    on.at.common.draining = true;
    asking one{on, get()};
    CHECK(one.begun == ended::close);
    CHECK(on.said()["Connection"] == "close");
}

TEST_CASE(
    "what an exchange leaves half sent counts as cut short, unless it was the client who left") {
    bench on;
    on.store(of_five, "hello");
    SUBCASE("dropped in the middle") {
        const auto by = on.lend(get());
        on.sink.takes(10);
        {
            exchange one{by, steady_now()};
            CHECK(!one.begin());
        }
        CHECK(on.counted(outcome::cut_short) == 1);
        CHECK(on.counted(outcome::hit) == 0);
    }
    SUBCASE("left") {
        on.sink.takes(10);
        asking one{on, get()};
        on.sink.leaves();
        on.settle();
        CHECK(one.how == ended::gone);
        one.close();
        CHECK(on.counted(outcome::client_gone) == 1);
        CHECK(on.counted(outcome::cut_short) == 0);
    }
}

TEST_CASE(
    "a client that leaves while its answer is awaited is counted as gone, and was sent nothing") {
    bench on;
    asking one{on, get()};
    CHECK(!one.how);
    const auto order = on.orders.next();
    on.sink.leaves();
    on.settle();
    CHECK(one.how == ended::gone);
    CHECK(on.sink.sent.empty());
    CHECK(!on.sink.broken_off);
    CHECK(order->into->abandoned());
    one.close();
    CHECK(on.counted(outcome::client_gone) == 1);
}

TEST_CASE("an idle connection holds no body of the answer before") {
    bench on;
    asking one{on, get()};
    auto from = on.origin();
    from.head(of_five);
    from.body("hello");
    from.end();
    on.settle();
    one.close();
    CHECK(on.memory.report.slices.empty());
    CHECK(on.memory.report.head == nullptr);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_exchange
