// What a response does to the one that it was to replace: in whose place it comes, and whose end it is though it is not kept.

#include "tests/unit/fetch/arrivals.hpp"

#include <string>

namespace reprise::proxy::fetch::test::of_replacing {

namespace {

/// What a request of these fields finds.
cache::stored_ptr stored_at(const node& at, const arrival& asked) {
    const auto& order = *asked.order;
    return at.common.store.find(order.key, order.url, order.request->head.fields).response;
}

}  // namespace

TEST_SUITE_BEGIN("fetch/replacing");

TEST_CASE("an error with a lifetime does not take the place of what may stand in for it") {
    node at;
    see(at);
    arrival good{at};
    good.order->replaces = true;
    good.head("200 OK\r\nCache-Control: max-age=60, stale-if-error=600\r\nContent-Length: 5\r\n");
    good.body("hello");
    good.end();
    arrival bad{at};
    bad.order->replaces = true;
    CHECK(bad.head("503 No\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n").detail ==
          "error");
    bad.body("sorry");
    bad.end();
    CHECK(bad.found() == "hello");
}

TEST_CASE("an error with a lifetime of ours takes the place of nothing that is fresh") {
    auto options = with_memory(1u << 20);
    options.freshness.negative = std::chrono::seconds{10};
    const auto found_after = [&](const std::string& status, const std::string& stored) {
        node at{options};
        see(at, "200 OK\r\nETag: \"1\"\r\nContent-Length: 5\r\n" + stored, true);
        arrival bad{at};
        bad.order->replaces = true;
        bad.head(status + "\r\nContent-Length: 5\r\n");
        bad.body("sorry");
        bad.end();
        return bad.found();
    };
    for (const std::string status : {"500 No", "501 No", "503 No", "521 No", "599 No"}) {
        CAPTURE(status);
        CHECK(found_after(status, "Cache-Control: max-age=60\r\n") == "hello");
        // What answers nobody it may: so the origin is spared.
        CHECK(found_after(status, "Cache-Control: max-age=60\r\nAge: 70\r\n") == "sorry");
        CHECK(found_after(status, "Cache-Control: max-age=60, no-cache\r\n") == "sorry");
    }
    // What would stand in for it, if it does for such an error.
    const std::string stands_in = "Cache-Control: max-age=60, stale-if-error=600\r\nAge: 70\r\n";
    CHECK(found_after("503 No", stands_in) == "hello");
    CHECK(found_after("521 No", stands_in) == "sorry");
}

TEST_CASE("nor does it where what is fresh is another variant") {
    auto options = with_memory(1u << 20);
    options.freshness.negative = std::chrono::seconds{10};
    node at{options};
    const std::string line = "GET http://a.example/x";
    arrival english{at, line, "Accept-Language: en\r\n"};
    english.order->replaces = true;
    english.head(of_five + "Vary: Accept-Language\r\n");
    english.body("hello");
    english.end();
    REQUIRE(english.found() == "hello");
    arrival french{at, line, "Accept-Language: fr\r\n"};
    french.order->replaces = true;  // as admitted
    CHECK(french.head("503 No\r\nContent-Length: 5\r\n").detail == "error");
    french.body("sorry");
    french.end();
    CHECK(english.found() == "hello");
    CHECK(!french.found());
}

TEST_CASE("what was sent stale in its own place is replaced by the same redirection or error") {
    for (const std::string status : {"301 Moved", "308 Moved", "501 No", "200 OK"}) {
        CAPTURE(status);
        node at;
        const auto head = status +
                          "\r\nETag: \"1\"\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n";
        see(at, head + "Age: 70\r\n", true);
        arrival next{at};
        next.order->what = wanted::validating{stored_at(at, next), true};
        next.order->replaces = true;
        next.head(head);
        next.body("again");
        next.end();
        CHECK(next.found() == "again");
    }
}

TEST_CASE("what a validation shows to be gone is not kept on") {
    node at;
    see(at);
    arrival good{at};
    good.order->replaces = true;
    good.head(of_five);
    good.body("hello");
    good.end();
    arrival gone{at};
    gone.order->what = wanted::validating{
        at.common.store.find(gone.order->key, gone.order->url, {}).response};
    gone.order->replaces = true;
    gone.head("404 Not Found\r\nCache-Control: no-store\r\nContent-Length: 5\r\n");
    CHECK(!gone.found());
}

TEST_CASE("nor that of what the look-up alone has found, on disk") {
    const auto error = "503 No\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n";
    node elsewhere;  // its memory is not asked
    arrival good{elsewhere};
    good.order->replaces = true;
    good.head("200 OK\r\nCache-Control: max-age=60, stale-if-error=600\r\nContent-Length: 5\r\n");
    good.body("hello");
    good.end();
    const auto on_disk = elsewhere.common.store.find(good.order->key, good.order->url, {}).response;
    REQUIRE(on_disk);
    for (const bool is_known : {false, true}) {
        node at;
        arrival bad{at};
        bad.order->replaces = true;
        bad.order->found = is_known ? on_disk : nullptr;
        CHECK(bad.head(error).stored != is_known);
        bad.body("sorry");
        bad.end();
        CHECK(bad.found().has_value() != is_known);
    }
}

TEST_CASE("what no store takes, however it is framed, ends what was sent stale in its place") {
    for (const std::string framing :
         {"Content-Length: 50000\r\n", "Transfer-Encoding: chunked\r\n"}) {
        CAPTURE(framing);
        node at{with_memory(20'000)};
        see(at, of_five, true);
        arrival next{at};
        next.order->what = wanted::validating{stored_at(at, next), true};
        next.order->replaces = true;
        next.head(fresh + framing);
        next.body(std::string(50'000, 'x'));
        CHECK(!next.found());
    }
}

TEST_CASE("where a client waits it ends what it was to replace, when it is whole") {
    for (const bool has_length : {true, false}) {
        for (const bool validates : {true, false}) {
            for (const bool is_homes : {true, false}) {
                CAPTURE(has_length);
                CAPTURE(validates);
                CAPTURE(is_homes);
                node at{with_memory(20'000)};
                see(at, of_five, true);
                arrival next{at};
                next.order->found = stored_at(at, next);
                if (validates) {
                    next.order->what = wanted::validating{next.order->found};
                }
                next.order->replaces = true;
                next.came.fetched_now = is_homes;
                next.head(fresh + (has_length ? "Content-Length: 50000\r\n"
                                              : "Transfer-Encoding: chunked\r\n"),
                          is_homes ? word_of::sibling : word_of::origin);
                next.body(std::string(50'000, 'x'));
                CHECK(next.found());
                next.end();
                CHECK(!next.found());
            }
        }
    }
}

TEST_CASE("so does what a client has joined that was begun behind another's back") {
    node at{with_memory(20'000)};
    see(at, of_five, true);
    arrival next{at};
    next.order->what = wanted::validating{stored_at(at, next), true};
    next.order->replaces = true;
    next.head(fresh + "Transfer-Encoding: chunked\r\n");
    next.body("other");
    next.order->into->keep_no_more();  // others needed the room
    next.end();
    CHECK(!next.found());
}

TEST_CASE("however much was invalidated beside it meanwhile") {
    node at{with_memory(20'000)};
    see(at, of_five, true);
    arrival next{at};
    next.order->found = stored_at(at, next);
    next.order->replaces = true;
    next.head(fresh + "Content-Length: 50000\r\n");
    for (std::size_t i = 0; i < 20'000; ++i) {
        const auto url = "http://a.example/other/" + std::to_string(i);
        (void)at.common.store.invalidate(filter::hash_of(url, at.common.admission.secret()), url);
    }
    next.body(std::string(50'000, 'x'));
    next.end();
    CHECK(!next.found());
}

TEST_CASE("but not where it is cut off, is nobody else's, is an error, or is the older of two") {
    enum class what { cut_off, private_, no_store, error, older, siblings };
    using enum what;
    for (const auto why : {cut_off, private_, no_store, error, older, siblings}) {
        CAPTURE(static_cast<int>(why));
        node at{with_memory(20'000)};
        const std::string lasting = "Cache-Control: max-age=60, stale-if-error=600\r\n";
        const std::string length = "Content-Length: 50000\r\n";
        see(at, "200 OK\r\n" + lasting + "Content-Length: 5\r\n", true);
        arrival next{at};
        next.order->found = stored_at(at, next);
        next.order->replaces = true;
        switch (why) {
        case cut_off: next.head(fresh + "Transfer-Encoding: chunked\r\n"); break;
        case private_: next.head("200 OK\r\nCache-Control: private\r\n" + length); break;
        case no_store: next.head("200 OK\r\nCache-Control: no-store\r\n" + length); break;
        case error: next.head("503 No\r\n" + lasting + length); break;
        case siblings: next.head(fresh + length, word_of::sibling); break;
        case older: {
            next.head(fresh + "Transfer-Encoding: chunked\r\n");
            arrival another{at};
            another.order->replaces = true;
            another.came.turn = 1;  // it may be within the same millisecond
            another.head(of_five);
            another.body("hello");
            another.end();
            break;
        }
        }
        next.body(std::string(50'000, 'x'));
        next.end(why != cut_off);
        CHECK(next.found() == "hello");
    }
}

TEST_CASE("nor where it was purged meanwhile, which is no want of room") {
    for (const bool softly : {true, false}) {
        CAPTURE(softly);
        node at{with_memory(20'000)};
        see(at, of_five, true);
        arrival next{at};
        next.order->found = stored_at(at, next);
        next.order->replaces = true;
        next.head(fresh + "Content-Length: 50000\r\n");
        auto& store = at.common.store;
        if (softly) {
            (void)store.expire(next.order->key, next.order->url, wall_now());
        } else {
            (void)store.invalidate(next.order->key, next.order->url);
            see(at, of_five, true);  // of whoever asked after that
        }
        next.body(std::string(50'000, 'x'));
        next.end();
        CHECK(next.found());
    }
}

TEST_CASE("what is kept ends what its request had by another Vary, and no other variant") {
    const std::string english = "X-Lang: en\r\n", german = "X-Lang: de\r\n";
    const std::string get = "GET http://a.example/x";
    node at;
    for (const auto& language : {english, german}) {
        arrival one{at, get, language};
        one.order->replaces = true;
        one.head(of_five + "Vary: X-Lang\r\n");
        one.body("first");
        one.end();
    }
    arrival next{at, get, english};
    next.order->replaces = true;
    next.head(of_five);
    next.body("other");
    next.end();
    CHECK(next.found() == "other");
    const arrival from_germany{at, get, german};
    CHECK(from_germany.found() == "other");
    CHECK(at.common.store.drop(next.order->key, next.order->url, stored_at(at, next)));
    CHECK(!next.found());
    CHECK(from_germany.found() == "first");
}

TEST_CASE(
    "what goes into the store takes the place of what was sent stale, and ends it no sooner") {
    node at{with_memory(20'000)};
    see(at, of_five, true);
    arrival next{at};
    next.order->what = wanted::whole{
        at.common.store.find(next.order->key, next.order->url, {}).response};
    next.order->replaces = true;
    next.head(fresh + "Transfer-Encoding: chunked\r\n");
    next.body("other");
    CHECK(next.found() == "hello");
    next.end();
    CHECK(next.found() == "other");
}

TEST_SUITE_END();

}  // namespace reprise::proxy::fetch::test::of_replacing
