#include "proxy/serve/members_reply.hpp"
#include "tests/unit/cache/fetching.hpp"
#include "tests/unit/serve/sibling_questions.hpp"

#include <algorithm>
#include <string_view>

namespace reprise::proxy::serve::test::of_members_reply {

using cache::test::pattern;

namespace {

// A gateway, to which another site puts a question; the test is its siblings.
struct gateway : sibling_bench {
    gateway() : sibling_bench{as_gateway()} {}
    [[nodiscard]] std::uint64_t asked() const { return at.w.counts.asked_by_sites.read(); }
    [[nodiscard]] std::uint64_t answered() const { return at.w.counts.sites_answered.read(); }
};

struct handing_on : gateway {
    explicit handing_on(const std::string& fields = "")
        : one{*this, get(for_site + fields)},
          members{origin()} {}
    asking one;
    arrival members;
};

const std::string part = "206 Partial Content\r\nCache-Control: max-age=60\r\nETag: \"1\"\r\n"
                         "Content-Range: bytes 1-2/5\r\nContent-Length: 2\r\n";

}  // namespace

TEST_SUITE_BEGIN("serve/members_reply");

TEST_CASE("siblings alone are asked, for what is stored nowhere here and shared with nobody") {
    handing_on at;
    const auto& order = *at.members.order;
    CHECK(order.asked_by == peer::asked_by::site);
    CHECK(order.may_use_peers);
    CHECK(order.may_ask_siblings);
    CHECK(!order.may_go_home);
    CHECK(!order.may_store);
    CHECK(!order.listed);
    CHECK(order.as<wanted::whole>() != nullptr);
    CHECK(!at.at.common.fetches.has(at.key(), url));
    CHECK(at.asked() == 1);
    CHECK(at.sink.sent.empty());
}

TEST_CASE("what one of them has goes out as it comes, and nothing of it is kept") {
    handing_on at;
    lend_head(at.members, of_five);
    at.members.body("he");
    at.settle();
    CHECK(at.said().status == 200);
    CHECK(at.said().body == "he");
    CHECK(!at.said()["Age"].empty());
    CHECK(at.said()["Cache-Status"].find("; stored") == std::string::npos);
    CHECK(!at.one.how);
    CHECK(at.answered() == 0);  // not before it is whole
    at.members.body("llo");
    at.members.end();
    at.settle();
    CHECK(at.one.how == ended::keep);
    CHECK(at.said().body == "hello");
    CHECK(at.sink.wholes == 1);
    CHECK(at.answered() == 1);
    CHECK(!at.members.found());
    at.one.close();
    CHECK(at.counted(outcome::sibling) == 1);
    CHECK(at.of_siblings(outcome::sibling) == 1);
    CHECK(at.at.w.counts.body_bytes_to_siblings.read() == 5);
    CHECK(at.at.w.counts.body_bytes_of_sibling_hits.read() == 0);  // that is the site's to count
}

TEST_CASE("what has gone through to a site is asked for anew by a client of this node's own") {
    gateway at;
    asking site{at, get(for_site)};
    auto members = at.origin();
    lend_head(members, of_five);
    members.body("hello");
    members.end();
    at.settle();
    REQUIRE(site.how == ended::keep);
    site.close();
    at.sink.sent.clear();
    at.sink.is_whole();
    const asking own{at, get()};
    CHECK(!own.how);
    const auto from = at.origin();
    CHECK(from.order->listed);
    CHECK(from.order->asked_by == peer::asked_by::client);
    CHECK(from.order->may_store);
}

TEST_CASE("a part and a condition are the members' to answer, and their answer is the site's") {
    {
        handing_on at{"Range: bytes=1-2\r\n"};
        CHECK(at.members.order->own_range);
        CHECK(!at.members.order->own_conditions);
        lend_head(at.members, part);
        at.members.body("el");
        at.members.end();
        at.settle();
        CHECK(at.one.how == ended::keep);
        CHECK(at.said().status == 206);
        CHECK(at.said()["Content-Range"] == "bytes 1-2/5");
        CHECK(at.said().body == "el");
        CHECK(!at.members.found());
    }
    handing_on at{"If-None-Match: \"1\"\r\n"};
    CHECK(at.members.order->own_conditions);
    CHECK(!at.members.order->own_range);
    lend_head(at.members, "304 Not Modified\r\nETag: \"1\"\r\n");
    at.members.end();
    at.settle();
    CHECK(at.one.how == ended::keep);
    CHECK(at.said().status == 304);
    CHECK(at.said()["ETag"] == "\"1\"");
    CHECK(at.said().body.empty());
    CHECK(at.answered() == 1);
}

TEST_CASE("where none has it, whatever the reason, it is not stored: a 504") {
    for (const auto why : {failure_code::only_if_cached_miss,
                           failure_code::connect_refused,
                           failure_code::tls_certificate,
                           failure_code::origin_head_timeout,
                           failure_code::client_share_used}) {
        CAPTURE(facts_of(why).name);
        handing_on at;
        at.members.fail(why, "10.0.0.1:80");
        at.settle();
        CHECK(at.one.how == ended::keep);
        CHECK(at.said().status == 504);
        CHECK(at.said().body.find("10.0.0.1") == std::string::npos);
        CHECK(at.answered() == 0);
        CHECK(at.orders.size() == 0);
        at.one.close();
        CHECK(at.of_siblings(outcome::only_if_cached) == 1);
    }
}

TEST_CASE("a body of another length is a 504 where nothing has gone out, and else broken off") {
    for (const bool has_begun : {false, true}) {
        for (const std::string body : {"hell", "hello, and more", "-"}) {
            CAPTURE(has_begun);
            CAPTURE(body);
            handing_on at;
            auto& into = *at.members.order->into;
            lend_head(at.members, of_five);
            if (has_begun) {
                at.settle();
                CHECK(at.said().status == 200);
            }
            if (body == "-") {
                at.members.fail(failure_code::response_cut_short);
            } else {
                into.producer_append(body);
                into.producer_finish("");
            }
            at.settle();
            // Of one that is too short some has gone by the time that this is known.
            const bool goes_out = has_begun || body == "hell";
            CHECK(at.one.how == (goes_out ? ended::gone : ended::keep));
            CHECK(at.sink.broken_off == goes_out);
            CHECK(at.said().status == (goes_out ? 200 : 504));
            if (goes_out) {
                CHECK(std::string_view{"hello"}.starts_with(at.said().body));
                CHECK(at.sink.wholes == 0);
            }
            CHECK(at.answered() == 0);
            at.one.close();
            CHECK(at.of_siblings(goes_out ? outcome::cut_short : outcome::only_if_cached) == 1);
            CHECK(at.of_siblings(outcome::sibling) == 0);
        }
    }
}

TEST_CASE("what is stored here, stale, stands in for no member, as it would for an origin") {
    const std::string stale = "200 OK\r\nCache-Control: max-age=60, stale-if-error=600\r\n"
                              "ETag: \"1\"\r\nAge: 100\r\nContent-Length: 5\r\n";
    for (const bool of_members : {false, true}) {
        for (const bool has_head : {false, true}) {
            CAPTURE(of_members);
            CAPTURE(has_head);
            gateway at;
            at.store(stale, "hello");
            const auto kept = at.at.common.store.find(at.key(), url, {}).response;
            REQUIRE(kept);
            const asking one{at, get(of_members ? for_site : std::string{})};
            auto from = at.origin();
            CHECK(from.order->found == kept);
            CHECK((from.order->validating() == nullptr) == of_members);
            if (has_head) {
                from.head("503 No\r\nContent-Length: 0\r\n");
                from.end();
            } else {
                from.fail(failure_code::connect_refused);
            }
            at.settle();
            CHECK(one.how == ended::keep);
            CHECK(at.said().status == (of_members ? 504 : 200));
            CHECK((at.said().body == "hello") != of_members);
            CHECK(at.answered() == 0);
        }
    }
}

TEST_CASE("what a client says of itself is told to no member") {
    for (const auto* field : {"Authorization: Basic eDp5\r\n", "Cookie: a=b\r\n"}) {
        CAPTURE(field);
        const handing_on at{field};
        CHECK(!at.members.order->may_ask_siblings);
    }
}

TEST_CASE("a site that leaves is asked for by nobody any more, and was not answered") {
    for (const bool takes : {true, false}) {
        CAPTURE(takes);
        handing_on at;
        auto& into = *at.members.order->into;
        lend_head(at.members, of_five);
        at.settle();
        CHECK(!into.abandoned());
        if (!takes) {
            at.sink.takes(0);
        }
        at.members.body("he");
        at.settle();
        CHECK(!at.one.how);
        at.sink.leaves();
        at.settle();
        CHECK(at.one.how == ended::gone);
        CHECK(into.abandoned());
        CHECK(at.sink.wholes == 0);
        CHECK(at.answered() == 0);
        at.one.close();
        CHECK(at.of_siblings(outcome::client_gone) == 1);
        CHECK(at.at.w.counts.body_bytes_to_siblings.read() == (takes ? 2 : 0));
    }
}

TEST_CASE("a site that leaves before a member has said anything is asked for no more") {
    handing_on at;
    at.sink.leaves();
    at.settle();
    CHECK(at.one.how == ended::gone);
    CHECK(at.members.order->into->abandoned());
    at.one.close();
    CHECK(at.of_siblings(outcome::client_gone) == 1);
}

TEST_CASE("members are read no faster than the site takes, and each byte arrives") {
    constexpr std::size_t length = 600'000, step = 4096;
    handing_on at;
    auto& into = *at.members.order->into;
    lend_head(at.members, fresh + "Content-Length: 600000\r\n");
    at.settle();
    at.sink.takes(0);
    std::size_t came = 0;
    const auto comes = [&] {
        const auto some = std::min(step, length - came);
        into.producer_append(pattern(some, came));
        came += some;
        at.settle();
    };
    while (came < length && !into.producer_must_pause()) {
        comes();
    }
    REQUIRE(came < length);
    CHECK(came <= 256u << 10);
    at.sink.takes(2 * length);
    at.settle();
    CHECK(!into.producer_must_pause());
    while (came < length) {
        comes();
    }
    into.producer_finish("");
    at.settle();
    CHECK(at.one.how == ended::keep);
    CHECK(at.said().body == pattern(length));
    CHECK(at.answered() == 1);
    at.one.close();
    CHECK(at.at.w.counts.body_bytes_to_siblings.read() == length);
}

TEST_CASE("who is no site, or asks more than a GET of what is stored, has nobody asked") {
    struct {
        std::string request;
        bool is_known, is_gateway;
    } const rows[]{
        {head_of("HEAD " + url, for_site), true, true},
        {get(for_siblings), true, true},
        {get(for_siblings + "Reprise-Site: ?1\r\n"), true, true},  // a client's, which it passed on
        {get(for_site), false, true},
        {get(for_site), true, false},
    };
    for (const auto& row : rows) {
        CAPTURE(row.request);
        sibling_bench at{row.is_gateway ? as_gateway() : with_a_sibling()};
        if (!row.is_known) {
            at.knows_nobody();
        }
        const asking one{at, row.request};
        CHECK(one.how == ended::keep);
        CHECK(at.said().status == 504);
        CHECK(at.orders.size() == 0);
        CHECK(at.at.w.counts.asked_by_sites.read() == 0);
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_members_reply
