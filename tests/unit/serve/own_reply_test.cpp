#include "proxy/peer/peer_book.hpp"
#include "proxy/serve/own_reply.hpp"
#include "tests/unit/serve/exchanges.hpp"

namespace reprise::proxy::serve::test::of_own_reply {

namespace {

// The page of a failure, as the client who sent `request` has it.
struct page : bench {
    explicit page(failure_code code, const std::string& request = get()) {
        stated one{*this, request};
        compose_failure(one.x, failure{code, "what was seen"});
        sent = one.x.out.send_now();
        how = one.x.book.how;
        status = one.x.book.status;
    }
    std::optional<ended> sent;
    outcome how{};
    unsigned status = 0;
};

std::string post(const std::string& fields) {
    return head_of("POST " + url, fields);
}

}  // namespace

TEST_SUITE_BEGIN("serve/own_reply");

TEST_CASE("every failure has a page that says its name, and is counted as it") {
    for (std::size_t i = 0; i < failure_count; ++i) {
        const auto code = static_cast<failure_code>(i);
        const auto& facts = facts_of(code);
        CAPTURE(facts.name);
        const page one{code};
        const auto said = one.said();
        CHECK(said.status == facts.status);
        CHECK(said["Content-Length"] == std::to_string(said.body.size()));
        CHECK(said.body.find(facts.name) != std::string::npos);
        CHECK(said.body.find("what was seen") != std::string::npos);
        CHECK(said["Proxy-Status"].find(facts.name) != std::string::npos);
        CHECK(one.how == facts.counts_as);
        CHECK(one.status == facts.status);
        CHECK(one.at.w.counts.failures[i].read() == 1);
    }
}

TEST_CASE("in front of an upstream a page says nothing that was seen of it, but what was of the "
          "request") {
    auto options = fetch::test::with_memory(1u << 20);
    options.listeners[0].mode = reprise::config::listener_mode::accelerator;
    options.listeners[0].upstream = "http://up.example:8081";
    for (std::size_t i = 0; i < failure_count; ++i) {
        const auto& facts = facts_of(static_cast<failure_code>(i));
        CAPTURE(facts.name);
        bench on{options};
        stated one{on, "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n"};
        REQUIRE(one.x.asked.accelerator);
        compose_failure(one.x, failure{facts.code, "what was seen"});
        (void)one.x.out.send_now();
        const bool says = facts.counts_as == outcome::client_error;
        CHECK((on.said().text.find("what was seen") != std::string::npos) == says);
        CHECK(on.said()["Proxy-Status"].find(facts.name) != std::string::npos);
        CHECK(one.x.book.error == "what was seen");
    }
}

TEST_CASE("behind a page the connection goes on, but not behind a request that was wrong") {
    const page fine{failure_code::connect_refused};
    CHECK(fine.sent == ended::keep);
    CHECK(fine.said()["Connection"].empty());
    const page wrong{failure_code::bad_request};
    CHECK(wrong.sent == ended::close);
    CHECK(wrong.said()["Connection"] == "close");
}

TEST_CASE("a page to an HTTP/1.0 client is the connection's last, since it says no keep-alive") {
    const page one{failure_code::connect_refused,
                   "GET " + url + " HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"};
    CHECK(one.sent == ended::close);
    CHECK(one.said()["Connection"] == "close");
}

TEST_CASE("HEAD gets a page's head alone") {
    const page one{failure_code::connect_refused, head_of("HEAD " + url)};
    CHECK(one.said().status == 502);
    CHECK(one.said().body.empty());
    CHECK(one.said()["Content-Length"] != "0");
}

TEST_CASE("a body that nobody reads closes, unless it is small enough to be drained") {
    const auto kept = [](const std::string& fields) {
        const page one{failure_code::connect_refused, post(fields)};
        const bool closes = one.said()["Connection"] == "close";
        CHECK(one.sent == (closes ? ended::close : ended::keep));
        return !closes;
    };
    CHECK(kept("Content-Length: 65536\r\n"));
    CHECK(!kept("Content-Length: 65537\r\n"));
    CHECK(!kept("Transfer-Encoding: chunked\r\n"));
    CHECK(!kept("Content-Length: 5\r\nExpect: 100-continue\r\n"));
}

TEST_CASE("a page says in Cache-Status why the origin was asked, where it was") {
    bench on;
    stated one{on};
    one.x.verdict.forward = http::forward_reason::stale;
    compose_failure(one.x, failure{failure_code::dns_timeout, ""});
    CHECK(one.x.out.send_now() == ended::keep);
    CHECK(on.said()["Cache-Status"] == "reprise; fwd=stale; detail=dns_timeout");
    CHECK(page{failure_code::dns_timeout}.said()["Cache-Status"].empty());
}

TEST_CASE("a Squid that wants what is stored or nothing is told 504, whatever went wrong") {
    auto options = fetch::test::with_memory(1u << 20);
    reprise::config::peer_options squid;
    squid.name = "s";
    squid.url = "http://127.0.0.1:3128";
    squid.protocol = reprise::config::peer_protocol::squid;
    options.peers.push_back(squid);
    bench on{options};
    auto book = std::make_shared<peer::peer_book>();
    book->addresses.push_back({on.who.ip(), true});
    on.at.w.peers->book = book;
    const auto ask = [&](const std::string& fields) {
        stated one{on, get(fields)};
        on.sink.sent.clear();
        on.sink.is_whole();
        compose_failure(one.x, failure{failure_code::loop_detected, ""});
        (void)one.x.out.send_now();
        one.x.consume_head();
        return on.said();
    };
    const auto told = ask("Cache-Control: only-if-cached\r\n");
    CHECK(told.status == 504);
    CHECK(told.body.find("loop_detected") != std::string::npos);
    CHECK(ask("").status == 508);
    on.at.w.peers->book = std::make_shared<peer::peer_book>();
    CHECK(ask("Cache-Control: only-if-cached\r\n").status == 508);
}

TEST_CASE("OPTIONS and TRACE that go no further are answered here") {
    bench on;
    SUBCASE("OPTIONS says what is allowed, and has no body") {
        asking one{on, head_of("OPTIONS *")};
        CHECK(one.begun == ended::keep);
        CHECK(on.said()["Allow"].find("GET, HEAD") != std::string::npos);
        CHECK(on.said()["Content-Length"] == "0");
    }
    SUBCASE("TRACE repeats the request") {
        asking one{on, head_of("TRACE " + url, "Max-Forwards: 0\r\nX-Mine: 1\r\n")};
        CHECK(one.begun == ended::keep);
        CHECK(on.said()["Content-Type"] == "message/http");
        CHECK(on.said().body.find("X-Mine: 1\r\n") != std::string::npos);
        CHECK(on.said()["Content-Length"] == std::to_string(on.said().body.size()));
    }
    SUBCASE("one with a body ends the connection") {
        asking one{on, head_of("OPTIONS *", "Content-Length: 5\r\n") + "hello"};
        CHECK(one.how == ended::close);
        CHECK(on.said()["Connection"] == "close");
    }
    CHECK(on.orders.size() == 0);
}

TEST_CASE("a head that can't be read has one page, one count, and no body for a HEAD") {
    bench on;
    const lent by{on.at.w, on.who, on.sink, on.memory, on.stream, on.becomes};
    SUBCASE("GET") {
        on.comes("GET nowhere\r\n\r\n");
        refuse_head(by, failure{failure_code::bad_request, "no version"}, steady_now());
        CHECK(on.said().body.find("no version") != std::string::npos);
    }
    SUBCASE("HEAD, behind an empty line") {
        on.comes("\r\nHEAD nowhere\r\n\r\n");
        refuse_head(by, failure{failure_code::bad_request, "no version"}, steady_now());
        CHECK(on.said().body.empty());
    }
    CHECK(on.said().status == 400);
    CHECK(on.said()["Connection"] == "close");
    CHECK(on.counted(outcome::client_error) == 1);
    CHECK(!on.sink.under_way());
}

TEST_CASE("who is refused before a head is read is counted as the failure has it") {
    for (const auto& [code, how] :
         {std::pair{failure_code::bad_request, outcome::client_error},
          std::pair{failure_code::too_many_connections, outcome::refused}}) {
        CAPTURE(facts_of(code).name);
        bench on;
        refuse_head({on.at.w, on.who, on.sink, on.memory, on.stream, on.becomes},
                    failure{code, ""},
                    steady_now());
        CHECK(on.said().status == facts_of(code).status);
        for (const auto one : {outcome::client_error, outcome::refused}) {
            CHECK(on.counted(one) == (one == how ? 1u : 0u));
        }
    }
}

TEST_CASE("a page that a client takes a part of is not said to be whole") {
    bench on;
    on.sink.takes(20);
    on.comes("GET nowhere\r\n\r\n");
    refuse_head({on.at.w, on.who, on.sink, on.memory, on.stream, on.becomes},
                failure{failure_code::bad_request, ""},
                steady_now());
    CHECK(on.sink.under_way());
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_own_reply
