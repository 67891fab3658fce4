#include "tests/unit/fetch/arrivals.hpp"

#include <algorithm>
#include <string>

namespace reprise::proxy::fetch::test::of_keeping {

TEST_SUITE_BEGIN("fetch/keeping");

TEST_CASE("a first sight is not stored, and its readers are told why; the second is") {
    auto options = with_memory(1u << 20);
    options.admission.probation = false;
    node at{options};
    arrival first{at};
    const auto& told = first.head(of_five);
    CHECK(!told.stored);
    CHECK(told.detail == "first-request");
    first.body("hello");
    first.end();
    CHECK(!first.found());

    arrival second{at};
    CHECK(second.head(of_five).stored);
    second.body("hello");
    CHECK(!second.found());
    second.end();
    CHECK(second.found() == "hello");
}

TEST_CASE("what is stored knows what its fetch took") {
    auto options = with_memory(1u << 20);
    options.admission.choice = {config::admission_policy::always, 2};
    node at{options};
    arrival one{at};
    one.took = cache::packed_wait{std::chrono::milliseconds{70}};
    one.head(of_five);
    one.body("hello");
    one.end();
    const auto& order = *one.order;
    const auto got = at.common.store.find(order.key, order.url, order.request->head.fields);
    REQUIRE(got.response);
    CHECK(got.response->wait() == one.took);
}

TEST_CASE("what a sibling answers with Set-Cookie is not stored, and stays nobody's business") {
    auto options = with_memory(1u << 20);
    options.admission.choice = {config::admission_policy::always, 2};
    options.caching.set_cookie = config::cookie_storing::explicit_lifetime;
    node at{options};
    const std::string cookie = of_five + "Set-Cookie: a=b\r\n";
    {
        arrival one{at, "GET http://a.example/y"};
        CHECK(one.head(cookie).stored);  // an origin's own, with a lifetime, is
    }
    arrival lent{at};
    const auto& head = lent.head(cookie, word_of::sibling);
    CHECK_FALSE(head.stored);
    CHECK(head.detail == "set-cookie");
    lent.body("hello");
    lent.end();
    CHECK_FALSE(lent.found());
    CHECK_FALSE(at.common.uncacheable.has(lent.order->key, steady_now()));
    arrival plain{at};
    CHECK(plain.head(of_five, word_of::sibling).stored);
}

TEST_CASE("a sibling's word on a key is none for the responses to come") {
    auto options = with_memory(1u << 20);
    options.admission.choice = {config::admission_policy::always, 2};
    node at{options};
    {
        arrival one{at};
        (void)one.head(fresh + "Vary: *\r\nContent-Length: 5\r\n", word_of::sibling);
        CHECK_FALSE(at.common.uncacheable.has(one.order->key, steady_now()));
    }
    {
        arrival one{at};
        CHECK(one.head(fresh + "Content-Length: 99999999999\r\n", word_of::sibling).detail ==
              "too-large");
        CHECK_FALSE(at.common.uncacheable.was_too_large(one.order->key, steady_now()));
    }
    arrival one{at};
    (void)one.head(fresh + "Vary: *\r\nContent-Length: 5\r\n");
    CHECK(at.common.uncacheable.has(one.order->key, steady_now()));
}

TEST_CASE("what a home has just fetched, and none may share, is joined by none for a moment") {
    node at;
    arrival one{at};
    one.came.fetched_now = true;
    (void)one.head(of_five + "Set-Cookie: a=b\r\n", word_of::sibling);
    const auto now = steady_now();
    CHECK(at.common.uncacheable.has(one.order->key, now));
    CHECK_FALSE(at.common.uncacheable.has(one.order->key, now + std::chrono::seconds{12}));
}

TEST_CASE("what a sibling has had for longer does not take the place of what is held here") {
    auto options = with_memory(1u << 20);
    options.admission.choice = {config::admission_policy::always, 2};
    node at{options};
    const auto dated = [](const char* hour) {
        return "200 OK\r\nCache-Control: max-age=1000000000\r\nContent-Length: 5\r\n"
               "Date: Sat, 01 Jan 2022 " +
               std::string{hour} + ":00:00 GMT\r\n";
    };
    const auto keep = [&](const char* hour, const std::string& body, word_of whom, bool now) {
        arrival one{at};
        one.came.fetched_now = now;
        const auto detail = std::string{one.head(dated(hour), whom).detail};
        one.body(body);
        one.end();
        CHECK(one.found().has_value());
        return detail + ' ' + one.found().value_or("");
    };
    CHECK(keep("12", "newer", word_of::origin, false) == " newer");
    CHECK(keep("11", "older", word_of::sibling, false) == "older newer");
    CHECK(keep("12", "equal", word_of::sibling, false) == " equal");
    // By the home, for this request; and a Date in the future pins nothing.
    CHECK(keep("11", "fetch", word_of::sibling, true) == " fetch");
    CHECK(keep("10", "asked", word_of::origin, false) == " asked");
}

TEST_CASE("what another site asks for is no sight") {
    auto options = with_memory(1u << 20);
    options.admission.probation = false;
    node at{options};
    for (const auto who : {peer::asked_by::site, peer::asked_by::client}) {
        arrival one{at};
        one.order->asked_by = who;
        one.head(of_five, word_of::sibling);
        one.body("hello");
        one.end();
        const auto& order = *one.order;
        CHECK(at.common.admission.peek(order.key, order.admission).seen_before ==
              (who == peer::asked_by::client ? 1 : 0));
    }
}

TEST_CASE("what is from a sibling is fresh for no longer than its max_age") {
    node at;
    const auto lifetime = [&](const std::string& fields, std::optional<http::seconds> at_most) {
        arrival one{at};
        return one.head("200 OK\r\nContent-Length: 5\r\n" + fields, word_of::sibling, at_most)
            .freshness.lifetime.count();
    };
    CHECK(lifetime("Cache-Control: max-age=31536000\r\n", std::nullopt) == 31536000);
    CHECK(lifetime("Cache-Control: max-age=31536000\r\n", http::seconds{60}) == 60);
    CHECK(lifetime("Cache-Control: max-age=30\r\n", http::seconds{60}) == 30);
}

TEST_CASE("a fetch that fails was no sight") {
    auto options = with_memory(1u << 20);
    options.admission.probation = false;
    node at{options};
    {
        arrival failed{at};
        failed.head(of_five);
        failed.body("he");
        failed.order->into->producer_fail(failure{failure_code::response_cut_short, ""});
    }
    arrival next{at};
    CHECK(!next.head(of_five).stored);
}

TEST_CASE("what admission costs is counted for the host that an accelerator was asked for, too") {
    auto options = with_memory(1u << 20);
    options.admission.probation = false;
    node at{options};
    for (const std::string key : {"http://a.example/x", "//b.example/x http://up"}) {
        for (int sight = 0; sight < 2; ++sight) {
            arrival one{at};
            one.order->url = key;
            one.order->key = filter::hash_of(key, at.common.admission.secret());
            one.head(of_five);
            one.body("hello");
            one.end();
        }
    }
    std::string hosts;
    for (const auto& one : at.common.costly.figures()) {
        hosts += one.host + ' ';
    }
    CHECK(hosts == "a.example b.example ");
}

TEST_CASE("a second request counts as a hit that admission cost, but where that refuses nothing") {
    for (const auto& [policy, lost] : {std::pair{config::admission_policy::always, 0u},
                                       std::pair{config::admission_policy::second_hit, 1u}}) {
        CAPTURE(lost);
        auto options = with_memory(1u << 20);
        options.admission.probation = false;
        options.admission.choice = {policy, 2};
        node at{options};
        see(at);
        CHECK(at.w.counts.admission_hits_lost.read() == 0);
        see(at);
        CHECK(at.w.counts.admission_hits_lost.read() == lost);
        CHECK(at.w.counts.admission_hit_bytes_lost.read() == 5 * lost);
    }
}

TEST_CASE("two who wait for one response are two sights") {
    auto options = with_memory(1u << 20);
    options.admission.probation = false;
    node at{options};
    arrival one{at};
    bool head_known = false;
    const auto other = cache::fetch::join(one.order->into, {}, head_known);
    CHECK(one.head(of_five).stored);
    one.body("hello");
    one.end();
    CHECK(one.found() == "hello");
}

TEST_CASE(
    "what may not be stored is not, says so, and is remembered where others would wait for it") {
    node at;
    see(at);
    arrival one{at};
    const auto& told = one.head("200 OK\r\nCache-Control: no-store\r\nContent-Length: 5\r\n");
    CHECK(told.verdict == http::storability::no_store);
    CHECK(told.detail == "no-store");
    CHECK(!one.kept.storable());
    one.body("hello");
    one.end();
    CHECK(at.common.uncacheable.has(one.order->key, steady_now()));
    arrival next{at};
    next.head(of_five);
    CHECK(!at.common.uncacheable.has(next.order->key, steady_now()));
}

TEST_CASE("what a parent is to keep for itself, and what an order rules out, is not stored") {
    node at;
    see(at);
    arrival elsewhere{at};
    CHECK(elsewhere.head(of_five, word_of::unkept_sibling).detail == "proxy-only");
    arrival unwanted{at};
    unwanted.order->may_store = false;
    CHECK(!unwanted.head(of_five).stored);
    unwanted.body("hello");
    unwanted.end();
    CHECK(!unwanted.found());
}

TEST_CASE("what replaces a stored response asks admission nothing") {
    node at;
    arrival one{at};
    one.order->replaces = true;
    CHECK(one.head(of_five).stored);
    one.body("hello");
    one.end();
    CHECK(one.found() == "hello");
}

TEST_CASE("of unknown length nothing is claimed, and it is stored if it proves small enough") {
    node at{with_memory(64u << 10)};
    see(at);
    arrival small{at};
    CHECK(!small.head(fresh + "Transfer-Encoding: chunked\r\n").stored);
    small.body("hello");
    small.end();
    CHECK(small.found() == "hello");

    arrival large{at, "GET http://a.example/large"};
    large.order->replaces = true;
    large.head(fresh + "Transfer-Encoding: chunked\r\n");
    for (int i = 0; i < 8; ++i) {
        large.body(std::string(16u << 10, 'x'));
    }
    large.end();
    CHECK(!large.found());
}

TEST_CASE("of unknown length it is stored up to memory.max_object, however near that it comes") {
    for (const std::size_t most : {1u << 10, 16u << 10, 40u << 10}) {
        CAPTURE(most);
        node at{with_memory(most)};
        for (const std::size_t bytes : {std::size_t{200}, most - 1, most, most + 1}) {
            CAPTURE(bytes);
            arrival one{at, "GET http://a.example/" + std::to_string(bytes)};
            one.order->replaces = true;
            one.head(fresh + "Transfer-Encoding: chunked\r\n");
            for (std::size_t sent = 0; sent < bytes;) {
                const auto piece = std::min<std::size_t>(bytes - sent, 16u << 10);
                one.body(std::string(piece, 'x'));
                sent += piece;
            }
            one.end();
            CHECK(one.found().has_value() == (bytes <= most));
        }
    }
}

TEST_CASE("what memory does not take is said to be too large, where there is no disk") {
    node at{with_memory(4)};
    arrival one{at};
    one.order->replaces = true;
    CHECK(one.head(of_five).detail == "too-large");
    one.body("hello");
    one.end();
    CHECK(!one.found());
}

TEST_CASE("what was invalidated since anybody was asked stays out") {
    node at;
    arrival one{at};
    one.order->replaces = true;
    one.head(of_five);
    (void)at.common.store.invalidate(one.order->key, one.order->url);
    one.body("hello");
    one.end();
    CHECK(!one.found());
}

TEST_CASE("what is kept no more, by whomever, keeps no room from others") {
    node at;
    arrival one{at};
    one.order->replaces = true;
    one.head(fresh + "Content-Length: 100000\r\n");
    one.body(std::string(1'000, 'a'));
    const auto reserved = [&] { return at.common.store.memory().figures().reserved; };
    REQUIRE(reserved() > 0);
    one.order->into->keep_no_more();  // as an unsafe method's success has it (fetches.forget)
    one.body(std::string(1'000, 'b'));
    CHECK(reserved() == 0);
}

TEST_CASE("a body that cannot be trusted to be the answer's is not stored") {
    node at;
    arrival one{at};
    one.order->replaces = true;
    one.head(of_five);
    one.body("hello");
    one.end(false);
    CHECK(!one.found());
}

TEST_CASE("a part that was asked for is kept as a part, beside what is held of the same") {
    node at;
    const std::string part = "206 Partial Content\r\nCache-Control: max-age=60\r\nETag: \"1\"\r\n";
    for (const auto& [range, bytes] : {std::pair{"0-4", "hello"}, std::pair{"5-9", "world"}}) {
        arrival one{at, "GET http://a.example/x", "Range: bytes=" + std::string{range} + "\r\n"};
        one.order->own_range = true;
        one.order->replaces = true;
        one.head(part + "Content-Range: bytes " + range + "/10\r\nContent-Length: 5\r\n");
        one.body(bytes);
        one.end();
    }
    arrival whole{at};
    CHECK(whole.found() == "helloworld");
}

TEST_CASE("what varies by a field that we write for the client is not stored") {
    using config::forwarded_field;
    const auto is_stored = [](forwarded_field written, const std::string& vary) {
        auto options = with_memory(1u << 20);
        options.admission.choice = {config::admission_policy::always, 2};
        options.forwarding.client_address = written;
        node at{options};
        arrival one{at};
        const auto& head = one.head(of_five + "Vary: Accept, " + vary + "\r\n");
        CHECK((head.verdict == http::storability::storable) == head.stored);
        return head.stored;
    };
    CHECK(is_stored(forwarded_field::off, "X-Forwarded-For, Forwarded"));
    CHECK(is_stored(forwarded_field::x_forwarded_for, "Forwarded"));
    CHECK(is_stored(forwarded_field::forwarded, "X-Forwarded-For"));
    CHECK_FALSE(is_stored(forwarded_field::x_forwarded_for, "X-Forwarded-For"));
    CHECK_FALSE(is_stored(forwarded_field::forwarded, "forwarded"));
    CHECK_FALSE(is_stored(forwarded_field::both, "X-Forwarded-For"));
    CHECK_FALSE(is_stored(forwarded_field::both, "Forwarded"));
}

TEST_CASE("a part that tells variants apart otherwise is none of what is stored") {
    const std::string part = "206 Partial Content\r\nCache-Control: max-age=60\r\nETag: \"1\"\r\n";
    const std::string vary = "Vary: Accept-Language\r\n";
    struct {
        std::string first, then;
        bool together;
    } const pairs[]{{"", "", true}, {vary, "", true}, {vary, vary, true}, {"", vary, false}};
    for (const auto& pair : pairs) {
        CAPTURE(pair.first);
        CAPTURE(pair.then);
        node at;
        const auto arrives = [&](const std::string& range, const std::string& fields) {
            arrival one{at, "GET http://a.example/x", "Range: bytes=" + range + "\r\n"};
            one.order->own_range = true;
            one.order->replaces = true;
            one.head(part + fields + "Content-Range: bytes " + range +
                     "/10\r\nContent-Length: 5\r\n");
            one.body(range == "0-4" ? "hello" : "world");
            one.end();
        };
        arrives("0-4", pair.first);
        arrives("5-9", pair.then);
        CHECK((arrival{at}.found() == "helloworld") == pair.together);
    }
}

TEST_CASE("what goes on elsewhere is kept only where its last source allows it") {
    auto options = with_memory(1u << 20);
    options.admission.choice = {config::admission_policy::always, 2};
    const std::string head = "200 OK\r\nContent-Length: 5\r\nETag: \"1\"\r\n";
    for (const auto& [fields, is_kept] :
         {std::pair{"Cache-Control: max-age=60\r\n", true},
          std::pair{"Cache-Control: max-age=1\r\n", true},
          std::pair{"Cache-Control: private\r\n", false},
          std::pair{"Cache-Control: no-store\r\n", false},
          std::pair{"Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n", false},
          std::pair{"Cache-Control: max-age=60\r\nVary: Accept-Language\r\n", false}}) {
        CAPTURE(fields);
        node at{options};
        arrival one{at};
        CHECK(one.head(head + "Cache-Control: max-age=60\r\n", word_of::sibling).stored);
        one.body("he");
        one.goes_on(head + fields);
        // Who joined before that was known, and is a sight, wants all of it kept.
        (void)one.order->into->keep_whole();
        one.body("llo");
        one.end();
        CHECK(one.found().has_value() == is_kept);
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::fetch::test::of_keeping
