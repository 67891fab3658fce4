#include "proxy/serve/decide.hpp"
#include "tests/unit/cache/responses.hpp"
#include "tests/unit/serve/requests.hpp"

#include <string>
#include <variant>
#include <vector>

namespace reprise::proxy::serve::test::of_decide {

using namespace std::chrono_literals;

namespace {

const wall_time arrival{1'000'000s};
const auto usual = settings_with({});

/// What is stored for a URL, fresh for a minute from `arrival`.
cache::lookup_result kept_for(cache::stored_ptr response) {
    cache::lookup_result out;
    out.what = cache::lookup::present;
    out.response = std::move(response);
    return out;
}

cache::lookup_result whole(std::chrono::seconds stale_while_revalidate = 0s) {
    auto made = cache::test::response({});
    made->freshness.response_time = arrival;
    made->freshness.lifetime = 60s;
    if (stale_while_revalidate > 0s) {
        made->directives.stale_while_revalidate = stale_while_revalidate;
    }
    made->reusable_until = http::fresh_until(made->freshness);
    return kept_for(made);
}

std::optional<decision> decided(const std::string& line,
                                const std::string& fields = "Host: a.example\r\n",
                                const thread::settings& now = usual) {
    const auto got = take(line, fields);
    REQUIRE(!got->read.refused);
    return decide(got->read, now, "me");
}

std::optional<failure_code> refusal_in(const std::optional<decision>& what) {
    if (!what) {
        return std::nullopt;
    }
    const auto* refused = std::get_if<answers::refused>(&what->what);
    return refused != nullptr ? std::optional{refused->why.code} : std::nullopt;
}

/// By what is stored, so long after it arrived.
decision by_store(const std::string& fields,
                  const cache::lookup_result& kept,
                  std::chrono::seconds age = 1s,
                  bool hits_alone = false,
                  const std::string& url = "http://a.example/") {
    const auto got = take("GET " + url, "Host: a.example\r\n" + fields);
    REQUIRE(!got->read.refused);
    REQUIRE(!decide(got->read, usual, "me"));
    decision out;
    out.what = decide(
        got->read, kept, usual, "me", {.hits_alone = hits_alone}, arrival + age, out.why);
    return out;
}

template <class Kind>
bool is(const decision& what) {
    return std::holds_alternative<Kind>(what.what);
}

const std::string only_if_cached = "Cache-Control: only-if-cached\r\n";

}  // namespace

TEST_SUITE_BEGIN("serve/decide");

TEST_CASE("a GET or HEAD is the store's to decide") {
    CHECK(!decided("GET http://a.example/"));
    CHECK(!decided("HEAD http://a.example/"));
}

TEST_CASE("other methods, bodies and upgrades pass, and say why they are forwarded") {
    for (const auto& [line, more] : std::vector<std::pair<std::string, std::string>>{
             {"POST http://a.example/", "Content-Length: 3\r\n"},
             {"DELETE http://a.example/", ""},
             {"GET http://a.example/", "Content-Length: 3\r\n"},
             {"GET http://a.example/", "Connection: upgrade\r\nUpgrade: websocket\r\n"}}) {
        CAPTURE(line);
        CAPTURE(more);
        const auto got = decided(line, "Host: a.example\r\n" + more);
        REQUIRE(got);
        CHECK(is<answers::passed>(*got));
        CHECK(got->why.why == cache::rule::method);
        CHECK(got->why.forward == http::forward_reason::method);
    }
}

TEST_CASE("what passes is judged like what is fetched, and keeps its reason") {
    const auto looped = decided("DELETE http://a.example/", "Host: a.example\r\nVia: 1.1 me\r\n");
    CHECK(refusal_in(looped) == failure_code::loop_detected);
    CHECK(looped->why.forward == http::forward_reason::method);
    CHECK(refusal_in(decided("DELETE http://127.0.0.1/")) == failure_code::destination_refused);
    CHECK(refusal_in(decided("DELETE http://a.example/", "Host: a.example\r\n" + only_if_cached)) ==
          failure_code::only_if_cached_miss);
}

TEST_CASE("CONNECT is a tunnel where its port allows, whatever else the request says") {
    const auto got = decided("CONNECT a.example:443");
    REQUIRE(got);
    CHECK(is<answers::tunnel>(*got));
    CHECK(refusal_in(decided("CONNECT a.example:25")) == failure_code::port_refused);
    CHECK(refusal_in(decided("CONNECT a.example:443", "Host: a.example\r\nVia: 1.1 me\r\n")) ==
          failure_code::loop_detected);
}

TEST_CASE(
    "OPTIONS and TRACE are answered here at their last hop, and OPTIONS of the proxy itself") {
    const std::string last = "Host: a.example\r\nMax-Forwards: 0\r\n";
    for (const auto* method : {"OPTIONS", "TRACE"}) {
        CAPTURE(method);
        const auto line = std::string{method} + " http://a.example/";
        const auto got = decided(line, last);
        REQUIRE(got);
        REQUIRE(is<answers::local>(*got));
        const auto& here = std::get<answers::local>(got->what);
        CHECK(here.status == 200);
        const bool echoes = here.text.find("TRACE http://a.example/") != std::string::npos;
        CHECK(echoes == (line.front() == 'T'));
        CHECK(here.type == (line.front() == 'T' ? "message/http" : ""));
        CHECK(is<answers::passed>(*decided(line, "Host: a.example\r\nMax-Forwards: 1\r\n")));
        CHECK(refusal_in(decided(line, "Host: a.example\r\nMax-Forwards: x\r\n")) ==
              failure_code::bad_request);
    }
    CHECK(is<answers::local>(*decided("OPTIONS *")));
}

TEST_CASE("PURGE is a purge before it is anything else") {
    CHECK(is<answers::purge>(*decided("PURGE http://a.example/")));
}

TEST_CASE("a denied host is refused before anything is looked up, by whatever method") {
    reprise::config::access_options access;
    access.deny_destinations = {{"a.example", {}, {}}};
    const auto now = settings_with(access);
    for (const auto* line : {"GET http://a.example/",
                             "POST http://a.example/",
                             "PURGE http://a.example/",
                             "CONNECT a.example:443"}) {
        CAPTURE(line);
        CHECK(refusal_in(decided(line, "Host: a.example\r\n", now)) ==
              failure_code::destination_refused);
    }
}

TEST_CASE("a listed host is refused before anything is looked up, and what is below it") {
    std::vector<net::host_key> names;
    REQUIRE(net::read_block_line("a.example", names).empty());
    net::block_list::maker maker;
    REQUIRE(maker.add(names.front()));
    auto now = settings_with({});
    now.blocked = std::move(maker).make();
    for (const auto* line : {"GET http://A.example./",
                             "POST http://a.example/",
                             "PURGE http://www.a.example/",
                             "CONNECT www.a.example:443"}) {
        CAPTURE(line);
        CHECK(refusal_in(decided(line, "Host: a.example\r\n", now)) == failure_code::host_blocked);
    }
    CHECK(!decided("GET http://example/", "Host: example\r\n", now));
    const auto as_origin = take("GET /", "Host: a.example\r\n", accelerator);
    CHECK(!decide(as_origin->read, now, "me"));
}

TEST_CASE("what is stored and fresh answers, though its origin could not be asked") {
    CHECK(is<answers::stored>(by_store("", whole())));
    CHECK(is<answers::stored>(by_store(only_if_cached, whole())));
    CHECK(is<answers::stored>(by_store("Via: 1.1 me\r\n", whole())));
    CHECK(is<answers::stored>(by_store("", whole(), 1s, true)));
}

TEST_CASE("what is stale answers where it may, but not to who is to have hits alone") {
    const auto while_revalidating = by_store("", whole(30s), 70s);
    CHECK(is<answers::stored>(while_revalidating));
    CHECK(while_revalidating.why.what == cache::ruling::stale_behind);
    CHECK(is<answers::stored>(by_store("Cache-Control: max-stale\r\n", whole(), 70s)));

    const auto to_peer = by_store(only_if_cached, whole(30s), 70s, true);
    REQUIRE(is<answers::refused>(to_peer));
    CHECK(std::get<answers::refused>(to_peer.what).why.code == failure_code::only_if_cached_miss);
    CHECK(to_peer.why.forward == http::forward_reason::stale);
}

TEST_CASE("what another site asks for is asked of members, once, and of nobody else") {
    const auto ask = [](const std::string& fields, const cache::lookup_result& kept, bool members) {
        const auto got = take("GET http://a.example/", "Host: a.example\r\n" + fields);
        REQUIRE(!got->read.refused);
        decision out;
        out.what = decide(
            got->read, kept, usual, "me", {.asks_members = members}, arrival + 70s, out.why);
        return out;
    };
    const cache::lookup_result nothing;
    CHECK(is<answers::of_members>(ask(only_if_cached, nothing, true)));
    CHECK(is<answers::refused>(ask(only_if_cached, nothing, false)));
    // What is stale here may be fresh there.
    CHECK(is<answers::of_members>(ask(only_if_cached, whole(), true)));
    // It has come through here already.
    CHECK(is<answers::refused>(ask(only_if_cached + "Via: 1.1 me\r\n", nothing, true)));
    CHECK(is<answers::fetched>(ask("", nothing, true)));
}

TEST_CASE("what does not answer is fetched, or refused to who wants nothing but what is stored") {
    for (const auto& kept : {cache::lookup_result{}, whole()}) {
        const auto fetched = by_store("", kept, 70s);
        REQUIRE(is<answers::fetched>(fetched));
        CHECK(!std::get<answers::fetched>(fetched.what).anew);
        const auto refused = by_store(only_if_cached, kept, 70s);
        REQUIRE(is<answers::refused>(refused));
        CHECK(std::get<answers::refused>(refused.what).why.code ==
              failure_code::only_if_cached_miss);
    }
    CHECK(by_store("", {}).why.forward == http::forward_reason::uri_miss);
    CHECK(by_store("", whole(), 70s).why.forward == http::forward_reason::stale);
}

TEST_CASE("what would be fetched is refused where its origin may not be asked") {
    for (const auto& [fields, url, code] :
         std::vector<std::tuple<std::string, std::string, failure_code>>{
             {"Via: 1.1 me\r\n", "http://a.example/", failure_code::loop_detected},
             {"", "http://a.example:22/", failure_code::port_refused},
             {"", "http://127.0.0.1/", failure_code::destination_refused}}) {
        CAPTURE(url);
        const auto got = by_store(fields, {}, 1s, false, url);
        REQUIRE(is<answers::refused>(got));
        CHECK(std::get<answers::refused>(got.what).why.code == code);
        CHECK(got.why.forward == http::forward_reason::uri_miss);
    }
}

TEST_CASE("only-if-cached is told so before what stands against asking") {
    const auto got = by_store(only_if_cached + "Via: 1.1 me\r\n", {});
    CHECK(std::get<answers::refused>(got.what).why.code == failure_code::only_if_cached_miss);
}

TEST_CASE("a sibling's only-if-cached has what is stored, and else joins what is on its way") {
    const auto by_sibling = [](const std::string& fields, const cache::lookup_result& kept) {
        const auto got = take("GET http://a.example/", "Host: a.example\r\n" + fields);
        REQUIRE(!got->read.refused);
        decision out;
        out.what = decide(got->read, kept, usual, "me", {.joins = true}, arrival + 70s, out.why);
        return out;
    };
    CHECK(is<answers::under_way>(by_sibling(only_if_cached, {})));
    CHECK(is<answers::under_way>(by_sibling(only_if_cached, whole())));  // stale by now
    CHECK(is<answers::refused>(by_sibling(only_if_cached + "If-Match: \"1\"\r\n", {})));
    CHECK(is<answers::stored>(by_sibling(only_if_cached, whole(30s))));
    CHECK(is<answers::under_way>(by_sibling(only_if_cached + "Via: 1.1 me\r\n", {})));
    CHECK(is<answers::fetched>(by_sibling("", {})));
}

TEST_CASE("parts that hold all but a gap answer with it; those that hold what is wanted, alone") {
    auto parts = cache::test::drafted{};
    parts->status = 200;
    parts->head = "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 10\r\n";
    cache::index_head(parts);
    parts->freshness.response_time = arrival;
    parts->freshness.lifetime = 60s;
    cache::partial_body held;
    held.total = 10;
    held.held.push_back({0, cache::test::body_of("01234")});
    parts->parts = std::make_shared<const cache::partial_body>(std::move(held));

    CHECK(is<answers::stored>(by_store("Range: bytes=1-3\r\n", kept_for(parts))));
    const auto got = by_store("", kept_for(parts));
    REQUIRE(is<answers::partial>(got));
    CHECK(got.why.part.gap.first == 5);
    CHECK(got.why.part.gap.last == 9);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_decide
