#include "tests/unit/serve/led_fetches.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

// What one client's fields may decide for those who wait for its fetch.

namespace reprise::proxy::serve::test::of_anothers_fields {

namespace {

using enum failure_code;

const std::string others = "X-Mine: 1\r\n";
const std::string stale = "200 OK\r\nCache-Control: max-age=60\r\nETag: \"1\"\r\nAge: 100\r\n"
                          "Content-Length: 5\r\n";

// One who waits for what another has asked.
struct waiting : led {
    explicit waiting(const std::string& fields = others,
                     bool has_stale = false,
                     steady_time since = steady_now()) {
        if (has_stale) {
            store(stale, "hello");
        }
        one.emplace(*this, get(fields), since);
        CHECK(orders.size() == 0);
    }
    // The origin has been silent to that for longer than anybody waits.
    void is_silent() {
        lead.asked_at = long_ago;
        lead.asks();
        sink.wakeup.notify();  // it looks at the time
        settle();
    }
    // Its own fetch, which has just begun.
    arrival own(bool shared) {
        CHECK(sink.sent.empty());
        REQUIRE(orders.size() == 1);
        auto order = orders.next();
        CHECK(order->listed == shared);
        return arrival{at, std::move(order)};
    }
    void gets(arrival& from, const std::string& body, const std::string& head = of_five) {
        from.head(head);
        from.body(body);
        from.end();
        settle();
    }
    [[nodiscard]] std::uint64_t released() const { return at.w.counts.collapsed_released.read(); }

    const steady_time long_ago = steady_now() - std::chrono::hours{1};
    std::optional<asking> one;
};

// Another one leads the next fetch too, with fields of its own.
struct second {
    second(waiting& on, const std::string& fields)
        : order{fetch::test::order_for("GET " + url, fields, on.at.settings)} {
        on.at.common.fetches.remove(on.key(), on.lead.order->into);
        place = on.join();
        order->key = on.key();
        order->into = place.reader->source();
    }
    void asks(steady_time at) { order->into->producer_asks(as_sent(*order, at)); }

    std::shared_ptr<fetch::fetch_order> order;
    cache::collapse_table::place place;
};

}  // namespace

TEST_SUITE_BEGIN("serve/anothers_fields");

TEST_CASE(
    "what a request fails by when it was sent is its own matter: who waited with other fields "
    "leads the next fetch") {
    for (const auto code : {origin_closed,
                            origin_head_timeout,
                            bad_response,
                            response_head_too_large,
                            no_parent,
                            parent_refused,
                            connect_refused}) {
        CAPTURE(facts_of(code).name);
        waiting at;
        at.lead.asks();
        at.lead.fail(code);
        at.settle();
        auto from = at.own(true);
        at.gets(from, "hello");
        CHECK(at.one->how == ended::keep);
        CHECK(at.said().body == "hello");
        CHECK(at.released() == 1);
        CHECK(at.orders.size() == 0);
    }
}

TEST_CASE("what would be sent once more, and what was not sent, fails for all") {
    struct {
        std::string fields;
        bool was_sent;
        failure_code code;
    } const rows[]{
        {"", true, origin_closed},
        {"", true, origin_head_timeout},
        {others, false, connect_refused},
        {others, false, dns_timeout},
        {others, false, tls_failed},
        {others, true, out_of_memory},  // which is ours
    };
    for (const auto& row : rows) {
        CAPTURE(facts_of(row.code).name);
        waiting at{row.fields};
        if (row.was_sent) {
            at.lead.asks();
        }
        at.lead.fail(row.code);
        at.settle();
        CHECK(at.one->how == ended::keep);
        CHECK(at.said().status == facts_of(row.code).status);
        CHECK(at.orders.size() == 0);
        CHECK(at.released() == 0);
    }
}

TEST_CASE("so does what was asked of nobody who has to do with it") {
    waiting at;
    at.lead.asks();
    at.lead.order->into->producer_asked_nobody();
    at.lead.fail(connect_refused);
    at.settle();
    CHECK(at.said().status == 502);
    CHECK(at.orders.size() == 0);
}

TEST_CASE("a second fetch that fails by another's fields decides for nobody else either, and is no "
          "reason to gather once more") {
    for (const bool is_alike : {false, true}) {
        CAPTURE(is_alike);
        waiting at;
        at.lead.asks();
        at.lead.fail(origin_closed);
        second next{at, is_alike ? others : "X-Mine: 2\r\n"};
        at.settle();
        CHECK(at.sink.sent.empty());
        CHECK(at.orders.size() == 0);
        next.asks(steady_now());
        next.order->into->producer_fail(failure{origin_closed, ""});
        at.settle();
        if (!is_alike) {
            at.own(false).fail(origin_closed);
            at.settle();
        }
        CHECK(at.one->how == ended::keep);
        CHECK(at.said().status == 502);
        CHECK(at.orders.size() == 0);
        CHECK(at.released() == (is_alike ? 1 : 2));
    }
}

TEST_CASE("what is stale stands in where a client's own request has failed, and not another's") {
    for (const bool fails : {false, true}) {
        CAPTURE(fails);
        waiting at{others, true};
        at.lead.asks();
        at.lead.fail(origin_closed);
        at.settle();
        auto from = at.own(true);
        CHECK(from.order->validating() != nullptr);
        if (fails) {
            from.fail(origin_closed);
            at.settle();
            CHECK(at.said().body == "hello");
            CHECK(at.said()["Cache-Status"].ends_with("detail=origin-failed"));
        } else {
            at.gets(from, "fresh");
            CHECK(at.said().body == "fresh");
        }
        CHECK(at.one->how == ended::keep);
    }
}

TEST_CASE(
    "an origin that is silent to another is asked by the next leader, and the first answer is "
    "taken, whosever it is") {
    waiting at;
    at.is_silent();
    auto from = at.own(true);
    CHECK(!at.lead.order->into->abandoned());  // its own client has not left
    SUBCASE("its own") {
        at.gets(from, "hello");
        CHECK(at.said().body == "hello");
    }
    SUBCASE("the other's, which was slow and no more") {
        at.gets(at.lead, "later");
        CHECK(at.said().body == "later");
        CHECK(from.order->into->abandoned());
    }
    SUBCASE("its own, if the other's is none for it") {
        at.lead.head("200 OK\r\nCache-Control: private\r\nContent-Length: 5\r\n");
        at.settle();
        CHECK(at.sink.sent.empty());
        at.gets(from, "hello");
        CHECK(at.said().body == "hello");
    }
    SUBCASE("its own, if the other's fails") {
        at.lead.fail(origin_head_timeout);
        at.settle();
        CHECK(at.sink.sent.empty());
        at.gets(from, "hello");
        CHECK(at.said().body == "hello");
    }
    CHECK(at.one->how == ended::keep);
    CHECK(at.sink.wholes == 1);
    CHECK(at.orders.size() == 0);
}

TEST_CASE(
    "a silent fetch is waited for where the same would be asked again, or nobody is asked yet") {
    for (const bool is_asked : {true, false}) {
        CAPTURE(is_asked);
        waiting at{is_asked ? "" : others};
        if (is_asked) {
            at.is_silent();
        }
        at.sink.wakeup.notify();
        at.settle();
        CHECK(at.sink.sent.empty());
        CHECK(at.orders.size() == 0);
        at.gets(at.lead, "hello");
        CHECK(at.said().body == "hello");
        CHECK(at.released() == 0);
    }
}

TEST_CASE("who finds silence twice asks alone, and has what comes first of all three") {
    waiting at;
    second next{at, "X-Mine: 2\r\n"};
    at.is_silent();
    CHECK(at.orders.size() == 0);
    next.asks(at.long_ago);
    at.sink.wakeup.notify();
    at.settle();
    auto from = at.own(false);
    CHECK(at.at.w.lone_fetches == 1);
    SUBCASE("its own") {
        at.gets(from, "hello");
    }
    SUBCASE("the first") {
        at.gets(at.lead, "hello");
        CHECK(from.order->into->abandoned());
    }
    SUBCASE("the second") {
        arrival then{at.at, next.order};
        at.gets(then, "hello");
        CHECK(from.order->into->abandoned());
    }
    CHECK(at.one->how == ended::keep);
    CHECK(at.said().body == "hello");
    CHECK(at.sink.wholes == 1);
    CHECK(at.at.w.lone_fetches == 0);
}

TEST_CASE("where those who ask alone have half of an origin's connections, the next leader's is "
          "waited for") {
    waiting at;
    at.at.w.lone_fetches = at.at.settings->options.origins.connections / 2;
    second next{at, "X-Mine: 2\r\n"};
    at.is_silent();
    next.asks(at.long_ago);
    at.sink.wakeup.notify();
    at.settle();
    auto from = at.own(true);
    at.gets(from, "hello");
    CHECK(at.said().body == "hello");
}

TEST_CASE("where its own fails, and a silent one may answer yet, that is waited for") {
    waiting at{others, true};
    at.is_silent();
    at.own(true).fail(origin_closed);
    at.settle();
    REQUIRE(at.sink.sent.empty());
    SUBCASE("it answers") {
        at.gets(at.lead, "later");
        CHECK(at.said().body == "later");
    }
    SUBCASE("it fails: so has its own, for which what is stale stands in") {
        at.lead.fail(origin_head_timeout);
        at.settle();
        CHECK(at.said().body == "hello");
        CHECK(at.said()["Cache-Status"].ends_with("detail=origin-failed"));
    }
    CHECK(at.one->how == ended::keep);
    CHECK(at.orders.size() == 0);
}

TEST_CASE("nobody who has left a silent fetch follows others longer than one begun when it came") {
    waiting at{others, false, steady_now() - std::chrono::hours{1}};
    second next{at, "X-Mine: 2\r\n"};
    next.asks(steady_now());
    at.is_silent();
    CHECK(at.orders.size() == 0);
    CHECK(at.one->how == ended::keep);
    CHECK(at.said().status == 504);
    CHECK(!at.lead.order->into->abandoned());
}

TEST_CASE("its own fetch has a time of its own") {
    waiting at{others, false, steady_now() - std::chrono::hours{1}};
    at.is_silent();
    auto from = at.own(true);
    at.gets(from, "hello");
    CHECK(at.said().body == "hello");
}

TEST_CASE("where what comes late of a silent fetch is for its client alone, each asks for itself") {
    waiting at;
    second next{at, "X-Mine: 2\r\n"};
    next.asks(steady_now());
    at.is_silent();
    REQUIRE(at.orders.size() == 0);
    at.lead.head("200 OK\r\nCache-Control: private\r\nContent-Length: 5\r\n");
    at.settle();
    auto from = at.own(false);
    at.gets(from, "hello");
    CHECK(at.said().body == "hello");
}

TEST_CASE("a silent fetch whose body is another's alone forbids nothing to one's own") {
    waiting at;
    at.is_silent();
    auto from = at.own(true);
    REQUIRE(from.order->may_store);
    at.lead.head(fetch::test::fresh + "Content-Length: 100000000\r\n");
    at.settle();
    CHECK(from.order->may_store);
    CHECK(at.sink.sent.empty());
    at.gets(from, "hello");
    CHECK(at.said().body == "hello");
}

TEST_CASE("a client that leaves while it waits for several leaves them all") {
    waiting at;
    at.is_silent();
    const auto from = at.own(true);
    at.place.reader.reset();
    CHECK(!at.lead.order->into->abandoned());
    at.sink.leaves();
    at.settle();
    CHECK(at.one->how == ended::gone);
    CHECK(at.lead.order->into->abandoned());
    CHECK(from.order->into->abandoned());
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_anothers_fields
