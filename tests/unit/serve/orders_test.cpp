#include "proxy/serve/orders.hpp"
#include "tests/unit/serve/exchanges.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace reprise::proxy::serve::test::of_orders {

namespace {

// What is ordered for a request that is about to be fetched.
std::shared_ptr<fetch::fetch_order> ordered(bench& on, const std::string& request = get()) {
    const asking one{on, request};
    return on.orders.next();
}

const std::string stale = "200 OK\r\nCache-Control: max-age=60\r\nETag: \"1\"\r\nAge: 100\r\n"
                          "Content-Length: 5\r\n";

}  // namespace

TEST_SUITE_BEGIN("serve/orders");

TEST_CASE("a plain request is ordered of the host that it names, to be stored and shared") {
    bench on;
    const auto order = ordered(on, head_of("GET http://a.example:8080/x", "X-Mine: 1\r\n"));
    CHECK(order->connect_host == "a.example");
    CHECK(order->connect_port == 8080);
    CHECK(order->url == "http://a.example:8080/x");
    CHECK(order->key == reprise::filter::hash_of(order->url, on.at.common.admission.secret()));
    CHECK(order->as<wanted::whole>() != nullptr);
    CHECK(order->is_get);
    CHECK(order->may_store);
    CHECK(order->listed);
    CHECK(order->retryable);
    CHECK(!order->exempt);
    CHECK(!order->replaces);
    CHECK(order->client_address == "127.0.0.1");
    CHECK(http::find(order->request->head.fields, http::field_id::host) != nullptr);
}

TEST_CASE("an order outlives its exchange and the bytes that it was read from") {
    bench on;
    const auto order = ordered(on, get("X-Mine: 1\r\n"));
    on.comes(std::string(4096, 'z'));
    CHECK(order->request->head.target == url);
    CHECK(order->destination.host == "a.example");
    CHECK(order->destination.raw == url);
}

TEST_CASE("an accelerator's requests go to its upstream, whatever host they name") {
    auto options = fetch::test::with_memory(1u << 20);
    auto& listener = options.listeners.front();
    listener.mode = reprise::config::listener_mode::accelerator;
    listener.upstream = "http://up.example:8081";
    bench on{options};
    const auto order = ordered(on, head_of("GET /x"));
    CHECK(order->connect_host == "up.example");
    CHECK(order->connect_port == 8081);
    CHECK(order->exempt);
    CHECK(order->told_scheme == "http");
    CHECK(order->destination.host == "a.example");
}

TEST_CASE("what a request says not to store is not stored, nor is its fetch shared") {
    bench on;
    const auto order = ordered(on, get("Cache-Control: no-store\r\n"));
    CHECK(!order->may_store);
    CHECK(!order->listed);
    CHECK(!ordered(on, get("Authorization: Basic x\r\n"))->listed);
    CHECK(!ordered(on, get("Cache-Control: no-cache\r\n"))->listed);
}

TEST_CASE("what is stale is validated, and what comes replaces it without asking admission") {
    bench on;
    on.store(stale, "hello");
    const auto order = ordered(on);
    const auto* validates = order->as<wanted::validating>();
    REQUIRE(validates);
    CHECK(validates->stored != nullptr);
    CHECK(!validates->behind);
    CHECK(order->replaces);
    CHECK(order->found == validates->stored);
}

TEST_CASE("of what is validated all is asked for, not the client's range or conditions") {
    bench on;
    on.store(stale, "hello");
    const auto order = ordered(on, get("Range: bytes=1-2\r\nIf-None-Match: \"0\"\r\n"));
    CHECK(order->validating() != nullptr);
    CHECK(!order->own_range);
    CHECK(!order->own_conditions);
}

TEST_CASE("where nothing is stored a range and conditions are the client's own, and his alone") {
    bench on;
    const auto range = ordered(on, get("Range: bytes=1-2\r\n"));
    CHECK(range->own_range);
    CHECK(!range->own_conditions);
    CHECK(!range->listed);
    const auto condition = ordered(on, get("If-None-Match: \"0\"\r\n"));
    CHECK(condition->own_conditions);
    CHECK(!condition->own_range);
    CHECK(!condition->listed);
}

TEST_CASE("HEAD is ordered as one, and describes what a GET would have had") {
    bench on;
    CHECK(ordered(on, head_of("HEAD " + url))->described() == nullptr);
    on.store(stale, "hello");
    const auto order = ordered(on, head_of("HEAD " + url));
    CHECK(order->described() != nullptr);
    CHECK(!order->is_get);
    CHECK(!order->may_store);
    CHECK(!order->listed);
    CHECK(ordered(on, head_of("HEAD " + url, "Authorization: Basic x\r\n"))->described() ==
          nullptr);
}

TEST_CASE("what changes something is asked once, and stored only of a POST that allows it") {
    bench on;
    const auto post = ordered(on, head_of("POST " + url, "Content-Length: 0\r\n"));
    CHECK(post->as<wanted::passed>() != nullptr);
    CHECK(!post->retryable);
    CHECK(post->may_store);
    CHECK(!ordered(on, head_of("DELETE " + url))->may_store);
    CHECK(!ordered(on, head_of("POST " + url, "Cache-Control: no-store\r\n"))->may_store);
    CHECK(ordered(on, head_of("PROPFIND " + url))->retryable);
}

TEST_CASE("a body goes with its order, and is told by its framing") {
    bench on;
    on.comes(head_of("PUT " + url, "Content-Length: 5\r\n") + "hello");
    const asking one{on};
    const auto order = on.orders.next();
    CHECK(order->body() != nullptr);
    CHECK(order->body_framing.kind == http::body_kind::length);
    CHECK(order->body_framing.length == 5);
    CHECK(!order->retryable);
    CHECK(on.stream.input().data() == "hello");
}

TEST_CASE("an order is charged to its client, but not where that one speaks for many") {
    for (const bool front : {false, true}) {
        auto options = fetch::test::with_memory(1u << 20);
        if (front) {
            options.access.fronts = reprise::config::private_networks();
        }
        bench on{options};
        CHECK(static_cast<bool>(ordered(on)->charged_to) == !front);
    }
}

TEST_CASE("a lead that nobody takes up fails for those who follow") {
    bench on;
    stated one{on};
    auto& fetches = on.at.common.fetches;
    const auto place = fetches.join_or_lead(one.x.asked.key, url, {}, {});
    { const leadership lead{one.x, place.reader->source()}; }
    cache::fetch_reader::report came;
    place.reader->next(came, 1);
    CHECK(came.what == cache::fetch_reader::event::failed);
    CHECK(!fetches.has(one.x.asked.key, url));
}

TEST_CASE("nobody is asked behind a client's back what the client may not ask") {
    bench on;
    const std::string blocked = "http://127.0.0.1:8080/x";
    on.store("200 OK\r\nCache-Control: max-age=60, stale-while-revalidate=600\r\nAge: 100\r\n"
             "Content-Length: 5\r\n",
             "hello",
             "",
             blocked);
    const asking one{on, head_of("GET " + blocked)};
    CHECK(on.said().body == "hello");
    CHECK(on.orders.size() == 0);
}

TEST_CASE(
    "behind a client's back it is asked once, and once more where that has been silent for long") {
    for (const bool is_silent : {false, true}) {
        CAPTURE(is_silent);
        bench on;
        on.store("200 OK\r\nCache-Control: max-age=60, stale-while-revalidate=600\r\nAge: 100\r\n"
                 "Content-Length: 5\r\n",
                 "hello");
        const auto ask = [&](const std::string& fields) {
            const asking one{on, get(fields)};
            CHECK(one.how == ended::keep);
        };
        ask("");
        const auto first = on.orders.next();
        ask("X-Mine: 1\r\n");
        CHECK(on.orders.size() == 0);
        const auto at = steady_now() - (is_silent ? std::chrono::hours{1} : std::chrono::hours{0});
        first->into->producer_asks(as_sent(*first, at));
        ask("X-Mine: 1\r\n");
        REQUIRE(on.orders.size() == (is_silent ? 1 : 0));
        if (is_silent) {
            const auto next = on.orders.next();
            CHECK(next->behind());
            CHECK(next->listed);
            CHECK(on.at.common.fetches.find(on.key(), url) == next->into);
            CHECK(!first->into->abandoned());
        }
    }
}

TEST_CASE("behind a client's back no more is asked than one client's share, and all's") {
    // Who speaks for many has no share: what it may is what all may together.
    for (const bool front : {false, true}) {
        auto options = fetch::test::with_memory(1u << 20);
        options.origins.connections_per_client = front ? 1 : 2;
        options.limits.client_connections = front ? 9 : 9'000;
        if (front) {
            options.access.fronts = reprise::config::private_networks();
        }
        bench on{options};
        std::vector<std::shared_ptr<fetch::fetch_order>> begun;
        const auto ask = [&](unsigned number) {
            const auto at = "http://" + std::to_string(number) + ".example/x";
            const asking one{on, head_of("GET " + at)};
            CHECK(on.sink.sent.ends_with("hello"));
            while (on.orders.size() > 0) {
                begun.push_back(on.orders.next());
            }
        };
        for (unsigned i = 0; i < 5; ++i) {
            on.store("200 OK\r\nCache-Control: max-age=60, stale-while-revalidate=600\r\n"
                     "Age: 100\r\nContent-Length: 5\r\n",
                     "hello",
                     "",
                     "http://" + std::to_string(i) + ".example/x");
        }
        for (unsigned i = 0; i < 4; ++i) {
            ask(i);
        }
        REQUIRE(begun.size() == 2);
        CHECK(begun[0]->behind());
        CHECK(on.at.common.unattended.size() == 2);
        // The third is asked for when one of them has ended.
        begun[0]->into->producer_left();
        ask(4);
        CHECK(begun.size() == 3);
        CHECK(on.at.common.unattended.size() == 2);
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_orders
