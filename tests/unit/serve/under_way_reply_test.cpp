#include "proxy/serve/under_way_reply.hpp"
#include "tests/unit/cache/fetching.hpp"
#include "tests/unit/serve/sibling_questions.hpp"

#include <string_view>
#include <utility>

namespace reprise::proxy::serve::test::of_under_way_reply {

using cache::test::pattern;

namespace {

reprise::config::options small() {
    auto out = with_a_sibling(1000);
    out.collapsing.window = 256u << 10;
    return out;
}

constexpr std::size_t length = 600'000;
const std::string long_one = fresh + "ETag: \"1\"\r\nContent-Length: 600000\r\n";

// What a sibling may ask for while a client of this node waits for it: it is stored, if it may be.
struct under_way : sibling_bench {
    explicit under_way(const reprise::config::options& options = with_a_sibling())
        : sibling_bench{options},
          place{join()},
          lead{at, ordered()} {}

    cache::collapse_table::place join() {
        auto made = at.common.fetches.join_or_lead(key(), url, {}, at.settings->fetches);
        REQUIRE(made.leads);
        return made;
    }
    std::shared_ptr<fetch::fetch_order> ordered() {
        auto order = fetch::test::order_for("GET " + url, "", at.settings);
        order->into = place.reader->source();
        order->key = key();
        order->listed = true;
        order->replaces = true;  // and so admission is not asked
        return order;
    }
    [[nodiscard]] cache::fetch& source() const { return *lead.order->into; }
    // It has begun before its head, and siblings may know of it.
    void is_expected() { source().producer_expects_to_keep(); }

    // A body comes, which the client takes at once.
    void runs_on(std::size_t from, std::size_t to) {
        constexpr std::size_t step = 32u << 10;
        cache::fetch_reader::report came;
        for (auto at_byte = from; at_byte < to; at_byte += step) {
            lead.body(pattern(std::min(step, to - at_byte), at_byte));
            do {
                place.reader->next(came, step);
            } while (came.what == cache::fetch_reader::event::head ||
                     came.what == cache::fetch_reader::event::data);
        }
    }
    // The head of what a disk takes, and memory not, whole or in part.
    void goes_to_disk() {
        REQUIRE(source().keep_outside());
        const auto head = cache::test::resumable_head_of(length);
        head->freshness.response_time = resident_now();
        head->freshness.lifetime = http::seconds{60};
        head->freshness.source = http::lifetime_source::max_age;
        source().producer_head(head);
    }

    [[nodiscard]] std::uint64_t joined() const { return at.w.counts.collapsed_joined.read(); }
    [[nodiscard]] std::uint64_t released() const { return at.w.counts.collapsed_released.read(); }

    cache::collapse_table::place place;
    arrival lead;
};

}  // namespace

TEST_SUITE_BEGIN("serve/under_way_reply");

TEST_CASE("a sibling has what is being stored as it comes, as of a store, and is no sight of it") {
    under_way at;
    at.lead.head(of_five);
    at.lead.body("he");
    asking one{at, get(for_siblings)};
    CHECK(at.said().status == 200);
    CHECK(at.said().body == "he");
    CHECK(!at.said()["Age"].empty());
    CHECK(at.said()["Cache-Status"].find("; stored; collapsed") != std::string::npos);
    CHECK(at.source().clients() == 1);
    at.lead.body("llo");
    at.lead.end();
    at.settle();
    CHECK(one.how == ended::keep);
    CHECK(at.said().body == "hello");
    CHECK(at.sink.wholes == 1);
    CHECK(at.orders.size() == 0);
    CHECK(at.lead.found() == "hello");
    one.close();
    CHECK(at.counted(outcome::collapsed) == 1);
    CHECK(at.of_siblings(outcome::collapsed) == 1);
    CHECK(at.joined() == 1);
    CHECK(at.released() == 0);
    CHECK(at.at.w.counts.body_bytes_to_siblings.read() == 5);
    CHECK(at.at.w.counts.body_bytes_to_siblings_from_collapsing.read() == 5);
}

TEST_CASE("what is not being stored is not joined, and what is no answer to it is left: a 504, and "
          "nobody is asked") {
    struct {
        std::string head, asks;
        unsigned joins;
    } const rows[]{
        {"200 OK\r\nCache-Control: private, max-age=60\r\nContent-Length: 5\r\n", for_siblings, 0},
        {"200 OK\r\nCache-Control: no-store\r\nContent-Length: 5\r\n", for_siblings, 0},
        {of_five + "Vary: X\r\n", for_siblings + "X: 2\r\n", 1},
        {of_five, "Cache-Control: only-if-cached, min-fresh=90\r\n", 1},
        {of_five, "Cache-Control: only-if-cached, no-cache\r\n", 1},
    };
    for (const auto& row : rows) {
        CAPTURE(row.head);
        CAPTURE(row.asks);
        under_way at;
        at.lead.head(row.head);
        REQUIRE(at.source().kept_whole() == (row.joins > 0));
        asking one{at, get(row.asks)};
        CHECK(one.how == ended::keep);
        CHECK(at.said().status == 504);
        CHECK(at.orders.size() == 0);
        CHECK(at.joined() == row.joins);
        CHECK(at.released() == row.joins);
        one.close();
        CHECK(at.of_siblings(outcome::only_if_cached) == 1);
        CHECK(at.at.w.counts.body_bytes_to_siblings.read() == 0);
    }
}

TEST_CASE("nobody but a sibling joins by only-if-cached, and a sibling by GET alone") {
    for (const bool is_known : {true, false}) {
        CAPTURE(is_known);
        under_way at;
        if (!is_known) {
            at.knows_nobody();
        }
        at.lead.head(of_five);
        const asking one{at, is_known ? head_of("HEAD " + url, for_siblings) : get(for_siblings)};
        CHECK(one.how == ended::keep);
        CHECK(at.said().status == 504);
        CHECK(at.joined() == 0);
        CHECK(at.orders.size() == 0);
    }
}

TEST_CASE("what a sibling feeds is joined by none, whether its head has come or is waited for") {
    for (const bool has_come : {true, false}) {
        CAPTURE(has_come);
        under_way at;
        std::optional<asking> one;
        if (has_come) {
            lend_head(at.lead, of_five);
            one.emplace(at, get(for_siblings));
            CHECK(at.said().status == 504);
        } else {
            at.is_expected();
            one.emplace(at, get(for_siblings + and_waits));
            CHECK(at.sink.sent == at_work);
            lend_head(at.lead, of_five);
            at.settle();
            CHECK(at.said_then().status == 504);
        }
        CHECK(at.source().kept_whole());  // who feeds it is all that stands against it
        CHECK(one->how == ended::keep);
        CHECK(at.joined() == (has_come ? 0 : 1));
        CHECK(at.released() == at.joined());
        CHECK(at.orders.size() == 0);
    }
}

TEST_CASE("before its head it is joined by who waits behind a 102, and hears that one first") {
    under_way at;
    at.is_expected();
    asking one{at, get(for_siblings + and_waits)};
    CHECK(!one.how);
    CHECK(at.sink.sent == at_work);
    CHECK(!at.sink.under_way());
    CHECK(at.joined() == 1);
    at.lead.order->into->producer_interim("HTTP/1.1 103 Early Hints\r\n\r\n");
    at.settle();
    CHECK(at.sink.sent == at_work);  // those are the client's
    at.lead.head(of_five);
    at.lead.body("hello");
    at.lead.end();
    at.settle();
    CHECK(one.how == ended::keep);
    CHECK(at.said_then().status == 200);
    CHECK(at.said_then().body == "hello");
    CHECK(at.sink.wholes == 2);
    CHECK(at.released() == 0);
    CHECK(at.orders.size() == 0);
}

TEST_CASE("who may take a 102 for an answer, or was told of nothing, has his answer at once") {
    struct {
        std::string request;
        bool is_expected;
    } const rows[]{
        {get(for_siblings), true},
        {get(for_siblings + "Reprise-Waits: ?1\r\n"), true},  // a client's, which it passed on
        {"GET " + url + " HTTP/1.0\r\n" + for_siblings + and_waits + "\r\n", true},
        {get(for_siblings + and_waits), false},
    };
    for (const auto& row : rows) {
        CAPTURE(row.request);
        under_way at;
        if (row.is_expected) {
            at.is_expected();
        }
        const asking one{at, row.request};
        REQUIRE(one.how);
        CHECK(at.said().status == 504);
        CHECK(at.joined() == 0);
        CHECK(at.released() == 0);
        CHECK(at.orders.size() == 0);
        CHECK(at.source().clients() == 1);
    }
}

TEST_CASE("what was waited for and comes without a head is an error behind the 102, or a 504") {
    using enum failure_code;
    struct {
        failure_code why;
        bool was_sent, is_anothers;
    } const rows[]{
        {client_share_used, false, true},
        {connect_refused, false, false},
        {origin_closed, true, true},  // over what the client had said, perhaps
    };
    for (const auto& [why, was_sent, is_anothers] : rows) {
        CAPTURE(facts_of(why).name);
        under_way at;
        at.is_expected();
        const asking one{at, get(for_siblings + and_waits)};
        if (was_sent) {
            at.lead.asks();
        }
        at.lead.fail(why);
        at.settle();
        CHECK(one.how == ended::keep);
        CHECK(at.said_then().status == (is_anothers ? 504 : 502));
        CHECK((at.said_then().body.find(facts_of(why).name) == std::string::npos) == is_anothers);
        CHECK(at.sink.wholes == 2);
        CHECK(!at.sink.broken_off);
        CHECK(at.released() == (is_anothers ? 1 : 0));
        CHECK(at.orders.size() == 0);
    }
}

TEST_CASE("what proves not to be stored when its head has come is nothing for who has waited") {
    under_way at;
    at.is_expected();
    const asking one{at, get(for_siblings + and_waits)};
    at.lead.order->may_store = false;
    at.lead.head(of_five);
    REQUIRE(!at.source().kept_whole());
    at.settle();
    CHECK(one.how == ended::keep);
    CHECK(at.said_then().status == 504);
    CHECK(at.released() == 1);
    CHECK(at.orders.size() == 0);
}

TEST_CASE("a sibling that leaves while it waits keeps no fetch alive") {
    under_way at;
    at.is_expected();
    asking one{at, get(for_siblings + and_waits)};
    at.place.reader.reset();  // the client has left before it
    CHECK(!at.source().abandoned());
    at.sink.leaves();
    at.settle();
    CHECK(one.how == ended::gone);
    CHECK(at.source().abandoned());
    one.close();
    CHECK(at.of_siblings(outcome::client_gone) == 1);
}

TEST_CASE("a sibling that has left when its 102 is to go has joined nothing") {
    under_way at;
    at.is_expected();
    at.sink.takes(0);
    asking one{at, get(for_siblings + and_waits)};
    CHECK(at.sink.sends == 1);
    CHECK(!one.how);
    at.sink.leaves();
    at.settle();
    CHECK(one.how == ended::gone);
    CHECK(at.sink.sent.empty());
    CHECK(at.joined() == 0);
    one.close();
    CHECK(at.of_siblings(outcome::client_gone) == 1);
}

TEST_CASE("a sibling that leaves in the middle leaves the fetch to its client") {
    under_way at;
    at.lead.head(of_five);
    at.lead.body("he");
    asking one{at, get(for_siblings)};
    at.sink.leaves();
    at.settle();
    CHECK(one.how == ended::gone);
    CHECK(at.sink.broken_off);
    CHECK(!at.source().abandoned());
    at.lead.body("llo");
    at.lead.end();
    CHECK(at.lead.found() == "hello");
    one.close();
    CHECK(at.of_siblings(outcome::client_gone) == 1);
    CHECK(at.at.w.counts.body_bytes_to_siblings.read() == 2);
}

TEST_CASE("a sibling that takes nothing holds up nobody, and has each byte in the end") {
    under_way at;
    at.lead.head(long_one);
    at.sink.takes(1000);
    asking one{at, get(for_siblings)};
    at.runs_on(0, length);
    at.settle();
    CHECK(at.sink.sent.size() == 1000);
    CHECK(!at.source().producer_must_pause());
    at.lead.end();
    CHECK(at.lead.found() == pattern(length));
    CHECK(!one.how);
    at.sink.takes(2 * length);
    at.settle();
    CHECK(one.how == ended::keep);
    CHECK(at.said().body == pattern(length));
    CHECK(at.sink.wholes == 1);
    CHECK(at.at.w.counts.body_bytes_to_siblings.read() == length);
}

TEST_CASE("of a body that fails, or is of another length than was said, no sibling has a whole") {
    under_way at;
    at.lead.head(of_five);
    at.lead.body("he");
    asking one{at, get(for_siblings)};
    SUBCASE("it fails") {
        at.lead.fail(failure_code::response_cut_short);
    }
    SUBCASE("it is longer") {
        at.source().producer_append("llo, and more");
        at.source().producer_finish("");
    }
    SUBCASE("it is shorter") {
        at.source().producer_finish("");
    }
    at.settle();
    CHECK(one.how == ended::gone);
    CHECK(at.sink.broken_off);
    CHECK(at.sink.wholes == 0);
    const auto body = at.said().body;
    CHECK(std::string_view{"hello"}.starts_with(body));
    one.close();
    CHECK(at.of_siblings(outcome::cut_short) == 1);
    CHECK(at.at.w.counts.body_bytes_to_siblings.read() == body.size());
}

TEST_CASE("a sibling that falls out before its head has gone is told 504, not fetched for") {
    under_way at{small()};
    at.is_expected();
    const asking one{at, get(for_siblings + and_waits)};
    at.goes_to_disk();
    at.runs_on(0, length);
    at.settle();
    CHECK(one.how == ended::keep);
    CHECK(at.said_then().status == 504);
    CHECK(at.joined() == 1);
    CHECK(at.released() == 1);
    CHECK(at.orders.size() == 0);
}

TEST_CASE("one that falls out in the middle is served by nobody who would have to be asked") {
    under_way at{small()};
    at.goes_to_disk();
    at.sink.takes(1000);
    asking one{at, get(for_siblings)};
    at.runs_on(0, 32u << 10);
    at.settle();
    CHECK(at.sink.sent.size() == 1000);
    at.runs_on(32u << 10, length);
    at.sink.takes(2 * length);
    at.settle();
    auto rest = at.origin();
    CHECK(rest.order->as<wanted::rest>() != nullptr);
    CHECK(rest.order->asked_by == peer::asked_by::sibling);
    rest.fail(failure_code::only_if_cached_miss);
    at.settle();
    CHECK(one.how == ended::gone);
    CHECK(at.sink.broken_off);
    CHECK(at.sink.wholes == 0);
    CHECK(pattern(length).starts_with(at.said().body));
    one.close();
    CHECK(at.of_siblings(outcome::cut_short) == 1);
}

TEST_CASE("what is gone since it was looked up is what only-if-cached gets of nothing stored") {
    sibling_bench at;
    stated asked{at, get(for_siblings)};
    under_way_reply reply{asked.x};
    std::optional<ended_or_next> how;
    at.start(reply.give(), how);
    REQUIRE(how);
    const auto* next = std::get_if<answer>(&*how);
    REQUIRE(next);
    const auto* refused = std::get_if<answers::refused>(next);
    REQUIRE(refused);
    CHECK(refused->why.code == failure_code::only_if_cached_miss);
    CHECK(at.sink.sent.empty());
    CHECK(at.at.w.counts.collapsed_joined.read() == 0);
}

TEST_CASE("where another site can't join it members are asked, but not in a circle") {
    for (const bool in_a_circle : {false, true}) {
        CAPTURE(in_a_circle);
        under_way at{as_gateway()};
        at.lead.head("200 OK\r\nCache-Control: private, max-age=60\r\nContent-Length: 5\r\n");
        const auto via = in_a_circle ? "Via: 1.1 " + at.at.common.pseudonym + "\r\n"
                                     : std::string{};
        const asking one{at, get(for_site + via)};
        REQUIRE(at.orders.size() == (in_a_circle ? 0 : 1));
        if (in_a_circle) {
            CHECK(at.said().status == 504);
            continue;
        }
        auto members = at.origin();
        CHECK(members.order->asked_by == peer::asked_by::site);
        CHECK(members.order->into.get() != &at.source());
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_under_way_reply
