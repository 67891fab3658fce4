#include "tests/unit/serve/led_fetches.hpp"

namespace reprise::proxy::serve::test::of_shared_fetch {

using cache::test::pattern;

namespace {

reprise::config::options small() {
    auto out = fetch::test::with_memory(1000);
    out.collapsing.window = 256u << 10;
    return out;
}

http::request_directives directives(const std::string& text) {
    const http::field line{http::field_id::cache_control, "Cache-Control", text};
    return http::read_request_directives({&line, 1});
}

cache::answered told(int age, const std::string& asked) {
    const auto read = directives(asked);
    cache::answered by;
    by.sent = steady_now();
    by.age = std::chrono::seconds{age};
    by.max_age = read.max_age;
    by.min_fresh = read.min_fresh;
    return by;
}

constexpr std::size_t length = 600'000;
const std::string long_one = fresh + "ETag: \"1\"\r\nContent-Length: 600000\r\n";

// One who falls behind in the middle, and whose rest is ordered.
struct falling : following {
    falling() : following{"", small()} {
        lead.head(long_one);
        runs_on(0, 32u << 10);
        sink.takes(1000);
        settle();
        runs_on(32u << 10, length);
        sink.takes(2 * length);
        settle();
    }
};

std::size_t count(const std::string& what, const std::string& in) {
    std::size_t found = 0;
    for (auto at = in.find(what); at != std::string::npos; at = in.find(what, at + 1)) {
        ++found;
    }
    return found;
}

}  // namespace

TEST_SUITE_BEGIN("serve/shared_fetch");

TEST_CASE("who comes while it is fetched asks nobody, and has the same answer") {
    following at;
    CHECK(at.orders.size() == 0);
    at.lead.head(of_five);
    at.lead.body("hello");
    at.lead.end();
    at.settle();
    CHECK(at.one.how == ended::keep);
    CHECK(at.said().body == "hello");
    CHECK(at.said()["Cache-Status"].find("; collapsed") != std::string::npos);
    at.one.close();
    CHECK(at.counted(outcome::collapsed) == 1);
    CHECK(at.at.w.counts.body_bytes_from_collapsing.read() == 5);
}

TEST_CASE("an answer that is somebody's own is sent to nobody else: they ask for theirs") {
    for (const std::string head : {"200 OK\r\nCache-Control: private\r\n",
                                   "200 OK\r\nCache-Control: no-store\r\n",
                                   "200 OK\r\nCache-Control: max-age=60\r\nVary: *\r\n"}) {
        following at;
        at.lead.head(head + "Content-Length: 5\r\n");
        at.lead.body("yours");
        at.lead.end();
        at.settle();
        CHECK(at.sink.sent.empty());
        auto from = at.origin();
        CHECK(!from.order->listed);
        from.head(of_five);
        from.body("mine!");
        from.end();
        at.settle();
        CHECK(at.said().body == "mine!");
        CHECK(at.at.w.counts.collapsed_released.read() == 1);
    }
}

TEST_CASE("what a 304 has confirmed serves those who wait too, but not what it says to its client "
          "alone") {
    for (const bool for_one_client : {false, true}) {
        CAPTURE(for_one_client);
        following at;
        at.store(of_five, "hello");
        const auto kept = at.at.common.store.find(at.key(), url, {}).response;
        REQUIRE(kept);
        auto said = std::make_shared<cache::confirmation>();
        said->for_one_client = for_one_client;
        at.lead.order->into->producer_validated(kept, std::move(said));
        at.settle();
        CHECK(at.orders.size() == (for_one_client ? 1 : 0));
        CHECK(at.sink.sent.empty() == for_one_client);
        if (for_one_client) {
            auto from = at.origin();
            CHECK(from.order->validating() == nullptr);
            from.head(of_five);
            from.body("mine!");
            from.end();
            at.settle();
        }
        CHECK(at.one.how == ended::keep);
        CHECK(at.said().body == (for_one_client ? "mine!" : "hello"));
    }
}

TEST_CASE(
    "what came from elsewhere as its fetch began is a hit for those who follow it, and no 304's") {
    for (const std::string fields : {"", "Range: bytes=1-2\r\n", "If-None-Match: \"1\"\r\n"}) {
        CAPTURE(fields);
        // Something older is stored, so that a range and a condition are the cache's to judge.
        led at;
        at.store(of_five + "ETag: \"0\"\r\nAge: 1000\r\n", "older");
        asking one{at, get(fields)};
        CHECK(at.sink.sent.empty());
        at.store(of_five + "ETag: \"1\"\r\n", "hello");
        const auto kept = at.at.common.store.find(at.key(), url, {}).response;
        REQUIRE(kept);
        at.lead.order->into->producer_validated(kept);
        at.settle();
        CHECK(one.how == ended::keep);
        CHECK(at.orders.size() == 0);
        CHECK(at.said().status == (fields.empty() ? 200 : fields.starts_with("Range") ? 206 : 304));
        CHECK(at.said()["Cache-Status"].starts_with("reprise; hit; ttl="));
        one.close();
        CHECK(at.counted(outcome::collapsed) == 1);
        CHECK(at.counted(outcome::revalidated) == 0);
    }
}

TEST_CASE("what a follower says of age holds for what a 304 has confirmed, too") {
    struct {
        std::string asks, leader_asked;
        int age;
        bool is_confirmed, shares;
    } const rows[]{
        {"max-age=0", "", 0, true, true},            // by the origin, within this second
        {"max-age=0", "", 50, true, false},          // by another cache, which has asked before
        {"max-age=0", "max-age=0", 50, true, true},  // and would say so again
        {"max-age=0", "max-age=10", 50, true, false},
        {"max-age=0", "", 0, false, false},  // by nobody
        {"max-age=80", "", 50, true, true},
        {"max-age=20", "", 50, true, false},
        {"max-age=20", "", 50, false, false},
        {"min-fresh=20", "", 50, true, true},
        {"min-fresh=80", "", 50, true, false},
        {"min-fresh=80", "min-fresh=80", 50, true, true},
        {"min-fresh=80", "min-fresh=70", 50, true, false},
        {"min-fresh=80", "max-age=0", 50, true, false},
        {"max-stale", "", 50, true, true},
    };
    for (const auto& row : rows) {
        CAPTURE(row.asks);
        CAPTURE(row.leader_asked);
        CAPTURE(row.age);
        CAPTURE(row.is_confirmed);
        following at{"Cache-Control: " + row.asks + "\r\n"};
        at.store(
            "200 OK\r\nCache-Control: max-age=100\r\nContent-Length: 5\r\nETag: \"1\"\r\nAge: " +
                std::to_string(row.age) + "\r\n",
            "hello");
        const auto kept = at.at.common.store.find(at.key(), url, {}).response;
        REQUIRE(kept);
        auto by = row.is_confirmed ? std::make_shared<cache::confirmation>() : nullptr;
        if (by) {
            by->by = told(row.age, row.leader_asked);
        }
        at.lead.order->into->producer_validated(kept, by);
        at.settle();
        CHECK(at.sink.sent.empty() == !row.shares);
        REQUIRE(at.orders.size() == (row.shares ? 0 : 1));
        if (!row.shares) {
            // Those that find it too old ask for what is younger together, and with its validators.
            const auto from = at.origin();
            CHECK(from.order->listed);
            CHECK(from.order->validating() == kept);
        }
    }
}

TEST_CASE(
    "those who reload at once share what the origin gives, and what another cache was told to") {
    struct {
        std::string asks, leader_asked, age;
        bool shares;
    } const rows[]{
        {"max-age=0", "", "", true},
        {"max-age=0", "", "50", false},
        {"max-age=0", "max-age=0", "50", true},
        {"max-age=40", "max-age=45", "50", false},
        {"min-fresh=20", "", "50", false},
        {"min-fresh=20", "min-fresh=20", "50", true},
        {"max-age=60", "", "50", true},
    };
    for (const auto& row : rows) {
        CAPTURE(row.asks);
        CAPTURE(row.leader_asked);
        CAPTURE(row.age);
        following at{"Cache-Control: " + row.asks + "\r\n"};
        at.lead.order->asked = directives(row.leader_asked);
        at.lead.head(of_five + (row.age.empty() ? "" : "Age: " + row.age + "\r\n"));
        at.settle();
        CHECK(at.sink.sent.empty() == !row.shares);
        REQUIRE(at.orders.size() == (row.shares ? 0 : 1));
        if (!row.shares) {
            CHECK(at.origin().order->listed);
        }
    }
}

TEST_CASE("one that reloads has nothing of a fetch that was begun long before it") {
    led at;
    at.lead.head(of_five);
    const asking one{at, get("Cache-Control: max-age=0\r\n")};
    CHECK(at.sink.sent.empty());
    REQUIRE(at.orders.size() == 1);
    CHECK(at.origin().order->listed);
}

TEST_CASE("nor of what was asked for long before, though its head is there only now") {
    for (const std::string leader_asked : {"", "max-age=0"}) {
        CAPTURE(leader_asked);
        following at{"Cache-Control: max-age=0\r\n"};
        at.lead.order->asked = directives(leader_asked);
        at.lead.asked_at = steady_now() - std::chrono::seconds{5};
        at.lead.head(of_five);
        at.settle();
        CHECK(at.sink.sent.empty());
        REQUIRE(at.orders.size() == 1);
        CHECK(at.origin().order->listed);
    }
}

TEST_CASE("what is too old twice is asked for alone, by what was confirmed last") {
    following at{"Cache-Control: max-age=0\r\n"};
    at.store(of_five + "ETag: \"1\"\r\nAge: 50\r\n", "hello");
    const auto kept = at.at.common.store.find(at.key(), url, {}).response;
    auto by = std::make_shared<cache::confirmation>();
    by->by = told(50, "");
    at.lead.order->into->producer_validated(kept, by);
    at.at.common.fetches.remove(at.key(), at.lead.order->into);
    auto next = at.join();  // another client leads the second
    at.settle();
    CHECK(at.orders.size() == 0);
    next.reader->source()->producer_validated(kept, by);
    at.settle();
    REQUIRE(at.orders.size() == 1);
    const auto from = at.origin();
    CHECK(!from.order->listed);
    CHECK(from.order->validating() == kept);
}

TEST_CASE("a follower whose fields select another variant asks for it") {
    following at{"Accept-Language: fr\r\n"};
    at.lead.head(of_five + "Vary: Accept-Language\r\n");
    at.settle();
    CHECK(at.sink.sent.empty());
    CHECK(at.orders.size() == 1);
}

TEST_CASE("interim answers of a shared fetch are its leader's alone") {
    following at;
    at.lead.order->into->producer_interim("HTTP/1.1 103 Early Hints\r\n\r\n");
    at.settle();
    CHECK(at.sink.sent.empty());
}

TEST_CASE(
    "a fetch that fails before it asks fails for all, but not where its leader's share was used "
    "up") {
    following at;
    SUBCASE("for all") {
        at.lead.fail(failure_code::connect_refused);
        at.settle();
        CHECK(at.said().status == 502);
        CHECK(at.orders.size() == 0);
    }
    SUBCASE("for the leader") {
        at.lead.fail(failure_code::client_share_used);
        at.settle();
        CHECK(at.sink.sent.empty());
        CHECK(at.orders.size() == 1);
    }
}

TEST_CASE(
    "followers of an error that may pass wait for the next leader once, not all at the origin") {
    following at;
    at.lead.head("503 No\r\nContent-Length: 0\r\n");
    at.settle();
    REQUIRE(at.orders.size() == 1);
    auto from = at.origin();
    CHECK(from.order->listed);
}

TEST_CASE("what was stored while somebody waited serves him, and the origin is not asked again") {
    following at;
    at.store(of_five, "hello");
    at.lead.head("503 No\r\nContent-Length: 0\r\n");
    at.settle();
    CHECK(at.orders.size() == 0);
    CHECK(at.one.how == ended::keep);
    CHECK(at.said().body == "hello");
    CHECK(!at.at.common.fetches.has(at.key(), url));
    at.one.close();
    CHECK(at.counted(outcome::collapsed) == 1);
}

TEST_CASE("who falls out before his head has gone has one whole answer of his own") {
    following at{"", small()};
    at.lead.head(long_one);
    at.runs_on(0, length);
    at.settle();
    CHECK(at.sink.sent.empty());
    auto from = at.origin();
    CHECK(from.order->as<wanted::whole>() != nullptr);
    CHECK(!from.order->listed);
    from.head(of_five);
    from.body("hello");
    from.end();
    at.settle();
    CHECK(at.one.how == ended::keep);
    CHECK(count("HTTP/1.1 200", at.sink.sent) == 1);
    CHECK(at.said().body == "hello");
}

TEST_CASE("who falls out in the middle has the rest by a request of his own, and each byte once") {
    falling at;
    auto rest = at.origin();
    const auto* order = rest.order->as<wanted::rest>();
    REQUIRE(order);
    CHECK(order->etag == "\"1\"");
    CHECK(order->at > 0);
    const auto from = order->at;
    SUBCASE("by a part") {
        rest.head("206 Partial Content\r\nETag: \"1\"\r\nContent-Range: bytes " +
                  std::to_string(from) +
                  "-599999/600000\r\nContent-Length: " + std::to_string(length - from) + "\r\n");
        rest.body(pattern(length - from, from));
    }
    SUBCASE("by all of the same") {
        rest.head(long_one);
        rest.body(pattern(length));
    }
    rest.end();
    at.settle();
    CHECK(at.one.how == ended::keep);
    CHECK(at.sink.wholes == 1);
    CHECK(at.said().body == pattern(length));
    CHECK(count("HTTP/1.1 200", at.sink.sent) == 1);
}

TEST_CASE("what does not go on where he was is not spliced in: he is broken off") {
    falling at;
    auto rest = at.origin();
    const auto from = rest.order->as<wanted::rest>()->at;
    const auto range = [&](std::uint64_t first, const std::string& etag, std::uint64_t total) {
        rest.head("206 Partial Content\r\nETag: " + etag + "\r\nContent-Range: bytes " +
                  std::to_string(first) + "-" + std::to_string(total - 1) + "/" +
                  std::to_string(total) + "\r\nContent-Length: " + std::to_string(total - first) +
                  "\r\n");
    };
    SUBCASE("another representation") {
        range(from, "\"2\"", length);
    }
    SUBCASE("another place") {
        range(from + 1, "\"1\"", length);
    }
    SUBCASE("another length") {
        range(from, "\"1\"", length + 1);
    }
    SUBCASE("another representation, all of it") {
        rest.head(fresh + "ETag: \"2\"\r\nContent-Length: 600000\r\n");
    }
    SUBCASE("an error") {
        rest.head("404 Not Found\r\nContent-Length: 9\r\n");
    }
    SUBCASE("a failure") {
        rest.fail(failure_code::connect_refused);
    }
    at.settle();
    CHECK(at.one.how == ended::gone);
    CHECK(at.sink.broken_off);
    CHECK(at.sink.wholes == 0);
    CHECK(pattern(length).starts_with(at.said().body));
    at.one.close();
    CHECK(at.counted(outcome::cut_short) == 1);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_shared_fetch
