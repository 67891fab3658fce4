// What is answered to who asks for news.

#include "proxy/peer/news_shelf.hpp"
#include "proxy/peer/resource.hpp"
#include "tests/unit/filter/digests.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace reprise::proxy::peer::test::of_news_resource {
namespace {

using namespace std::chrono_literals;

constexpr wall_time now{1'763'668'089'000ms};
const auto size = filter::digest_size(2000, 0.01);

struct desk {
    desk() { digests.publish(filter::test::digest_of_keys(size, 0, 100, 5), now); }

    void put(std::uint64_t newest, std::uint64_t oldest, std::vector<news_shelf::form> forms = {}) {
        shelf.put({.epoch = epoch, .counter = newest}, oldest, std::move(forms));
    }
    resource_answer ask(const std::string& query,
                        bool waited = false,
                        const std::string& method = "GET",
                        asker who = {.is_reprise = true}) {
        const auto wire = method + " /.well-known/reprise/digest" + query +
                          " HTTP/1.1\r\nHost: a\r\n\r\n";
        http::request_head head;
        REQUIRE(http::parse_request_head(wire, head, {}).state == http::head_state::done);
        offered what;
        what.digest = digests.now();
        what.node = "n";
        what.digest_news = &shelf;
        what.seen_news = shares ? &seen : nullptr;
        what.waited = waited;
        return answer(head, who, what, false, now);
    }
    [[nodiscard]] std::string since(std::uint64_t counter, const std::string& wait = "25") const {
        return "?since=" + to_text({.epoch = epoch, .counter = counter}) + "&wait=" + wait;
    }

    const std::uint64_t epoch = filter::test::stamp_of(1).generation.epoch;
    publication digests;
    unsigned stirred = 0;
    news_shelf shelf{[this] { ++stirred; }};
    bool shares = true;
    news_shelf seen{[this] { ++stirred; }};
};

news_shelf::form form_from(std::uint64_t base) {
    return {.base = base, .wire = std::make_shared<const std::vector<std::byte>>(140)};
}

}  // namespace

TEST_SUITE("peer/news_resource") {
    TEST_CASE("who has the newest waits, and is told 304 when he has waited") {
        desk d;
        d.put(7, 5);
        const auto told = d.ask(d.since(7));
        CHECK(told.what == answered::waiting);
        CHECK(told.wait == 25s);
        CHECK(told.since == filter::digest_generation{.epoch = d.epoch, .counter = 7});
        CHECK(told.head.empty());
        const auto then = d.ask(d.since(7), true);
        CHECK(then.what == answered::not_modified);
        CHECK(then.status == 304);
        CHECK(then.head.find("Reprise-News: 30\r\n") != std::string::npos);
        CHECK(then.head.find("ETag: \"" + to_text({d.epoch, 7}) + "\"\r\n") != std::string::npos);
        CHECK(then.head.find("Reprise-Node: n\r\n") != std::string::npos);
    }

    TEST_CASE("who is behind has news, once it is made") {
        desk d;
        d.put(7, 5, {form_from(6)});
        const auto told = d.ask(d.since(6));
        CHECK(told.what == answered::news);
        CHECK(told.status == 200);
        REQUIRE(told.body != nullptr);
        CHECK(told.body->size() == 140);
        CHECK_FALSE(d.digests.now()->fetched);
        CHECK(told.head.find("ETag: \"" + to_text({d.epoch, 7}) + "\"\r\n") != std::string::npos);
        CHECK(d.stirred == 0);
        CHECK(d.ask(d.since(5)).what == answered::waiting);
        CHECK(d.stirred == 1);
        CHECK(d.shelf.take_wishes().bases == std::vector<std::uint64_t>{5});
        d.put(7, 5, {form_from(5)});
        CHECK(d.ask(d.since(5)).what == answered::news);
        CHECK(d.ask(d.since(6)).what == answered::news);  // still there
        d.put(8, 5);
        CHECK(d.ask(d.since(6)).what == answered::waiting);
    }

    TEST_CASE(
        "who holds nothing, or what nobody remembers, is told the whole that news goes on from") {
        desk d;
        d.put(7, 5);
        for (const auto& query : {std::string{"?wait=25"},
                                  d.since(4),
                                  d.since(8),
                                  std::string{"?since=0-1&wait=25"},
                                  std::string{"?since=junk&wait=25"}}) {
            CAPTURE(query);
            const auto told = d.ask(query);
            CHECK(told.what == answered::whole);
            CHECK(d.digests.now()->fetched);
            CHECK(told.head.find("Reprise-News: 30\r\n") != std::string::npos);
        }
        d.put(9, 6);  // the whole is of 5
        const auto told = d.ask("?wait=25");
        CHECK(told.what == answered::waiting);
        CHECK_FALSE(told.since.has_value());
        CHECK(d.shelf.take_wishes().whole);
        CHECK(d.ask("?wait=25", true).what == answered::whole);  // better than nothing
    }

    TEST_CASE("where the whole is shorter the whole is sent") {
        desk d;
        d.put(7, 4, {{.base = 4, .wire = nullptr}});
        CHECK(d.ask(d.since(4)).what == answered::whole);
        // But not one from which the same would follow.
        d.put(7, 4, {{.base = 4, .wire = nullptr}, {.base = 5, .wire = nullptr}});
        CHECK(d.ask(d.since(4)).what == answered::waiting);
        CHECK(d.shelf.take_wishes().whole);
    }

    TEST_CASE("nobody is sent a whole that is older than what he holds, or the same") {
        desk d;  // the whole is of 5
        for (const std::uint64_t held : {5, 6}) {
            CAPTURE(held);
            d.put(7, 4, {{.base = held, .wire = nullptr}});
            CHECK(d.ask(d.since(held)).what == answered::waiting);
            CHECK(d.shelf.take_wishes().whole);
            const auto then = d.ask(d.since(held), true);
            CHECK(then.what == answered::not_modified);
            CHECK(then.head.find("ETag: \"" + to_text({d.epoch, held}) + "\"\r\n") !=
                  std::string::npos);
            CHECK(d.shelf.take_wishes().whole);
        }
    }

    TEST_CASE("what was seen goes along where both are asked for, and either ends the wait") {
        desk d;
        const std::uint64_t other = 77;
        const auto both = [&](std::uint64_t digest, std::uint64_t of_seen) {
            return d.since(digest) + "&seen=" + to_text({.epoch = other, .counter = of_seen});
        };
        const auto put_seen = [&](std::uint64_t newest, std::vector<news_shelf::form> forms = {}) {
            d.seen.put({.epoch = other, .counter = newest}, 3, std::move(forms));
        };
        d.put(7, 5, {form_from(6)});
        put_seen(4);
        auto told = d.ask(both(7, 4));
        CHECK(told.what == answered::waiting);
        CHECK(told.since == filter::digest_generation{.epoch = d.epoch, .counter = 7});
        CHECK(told.seen_since == filter::digest_generation{.epoch = other, .counter = 4});
        told = d.ask(both(7, 4), true);
        CHECK(told.status == 304);
        CHECK(told.head.find("Reprise-Seen: 0\r\n") != std::string::npos);

        // The digest's alone, what was seen alone, and both.
        told = d.ask(both(6, 4));
        CHECK(told.what == answered::news);
        CHECK(told.head.find("Reprise-Seen: 0\r\n") != std::string::npos);
        CHECK(told.head.find("Content-Length: 140\r\n") != std::string::npos);
        CHECK(told.seen == nullptr);
        put_seen(5, {form_from(4)});
        told = d.ask(both(7, 4));
        CHECK(told.what == answered::news);
        CHECK(told.status == 200);
        CHECK(told.body == nullptr);
        REQUIRE(told.seen != nullptr);
        CHECK(told.head.find("Reprise-Seen: 140\r\n") != std::string::npos);
        CHECK(told.head.find("Content-Length: 140\r\n") != std::string::npos);
        CHECK(told.head.find("ETag: \"" + to_text({d.epoch, 7}) + "\"\r\n") != std::string::npos);
        told = d.ask(both(6, 4));
        CHECK(told.head.find("Reprise-Seen: 140\r\n") != std::string::npos);
        CHECK(told.head.find("Content-Length: 280\r\n") != std::string::npos);
        CHECK(told.bytes() == told.head.size() + 280);

        // News leads nowhere from there: it is to be asked for itself, and at once.
        told = d.ask(both(7, 2));
        CHECK(told.status == 304);
        CHECK(told.head.find("Reprise-Seen: ask\r\n") != std::string::npos);

        // Whoever lacks the digest waits for that, and whoever is no sibling hears nothing.
        d.put(7, 6);
        told = d.ask("?wait=25&seen=" + to_text({.epoch = other, .counter = 4}));
        CHECK(told.what == answered::waiting);
        CHECK(told.seen_since == std::nullopt);
        told = d.ask(both(7, 4), false, "GET", {});
        CHECK(told.status == 403);
        CHECK(told.head.find("Reprise-Seen") == std::string::npos);
        CHECK(told.seen == nullptr);
        told = d.ask(both(7, 4), false, "HEAD");
        CHECK(told.head.find("Reprise-Seen") == std::string::npos);
        CHECK(told.seen == nullptr);
        // Who does not ask for it hears that it might.
        told = d.ask(d.since(6));
        CHECK(told.head.find("Reprise-Seen: 0\r\n") != std::string::npos);
        CHECK(told.seen == nullptr);
        // A node that shares nothing does not say the field.
        d.shares = false;
        told = d.ask(both(6, 4));
        CHECK(told.status == 200);
        CHECK(told.head.find("Reprise-Seen") == std::string::npos);
    }

    TEST_CASE("a wait is a number of seconds, at most thirty") {
        desk d;
        d.put(7, 5);
        CHECK(d.ask(d.since(7, "31")).wait == 30s);
        CHECK(d.ask(d.since(7, "99999999999999999999")).wait == 30s);
        CHECK(d.ask(d.since(7, "029")).wait == 29s);
        CHECK(d.ask(d.since(7, "0")).what == answered::not_modified);
        for (const std::string bad :
             {"", "-1", "1.5", "soon", "1s", "%20", "999999999999999999999"}) {
            CAPTURE(bad);
            const auto told = d.ask(d.since(7, bad));
            CHECK(told.status == 400);
            CHECK(told.text.find("digits, 30 at most") != std::string::npos);
            CHECK(told.body == nullptr);
        }
        CHECK(d.ask(d.since(7) + "&wait=x").status == 400);
    }

    TEST_CASE("strangers do not wait, nor do HEAD and who asks without wait") {
        desk d;
        d.put(7, 5);
        CHECK(d.ask(d.since(7), false, "GET", {}).status == 403);
        CHECK(d.ask(d.since(7, "x"), false, "GET", {}).status == 403);
        CHECK(d.ask(d.since(7), false, "HEAD").status == 200);
        CHECK(d.ask("?since=" + to_text({d.epoch, 7})).what == answered::whole);
        CHECK(d.shelf.take_wishes().plain);
    }

    TEST_CASE("before there is anything one waits too, and is told to come again") {
        desk d;
        news_shelf empty{[] {}};
        const std::string wire =
            "GET /.well-known/reprise/digest?wait=9 HTTP/1.1\r\nHost: a\r\n\r\n";
        http::request_head head;
        REQUIRE(http::parse_request_head(wire, head, {}).state == http::head_state::done);
        const auto told = [&](bool waited) {
            offered what;
            what.node = "n";
            what.digest_news = &empty;
            what.waited = waited;
            return answer(head, {.is_reprise = true}, what, false, now).what;
        };
        CHECK(told(false) == answered::waiting);
        CHECK(told(true) == answered::not_ready);
    }
}

}  // namespace reprise::proxy::peer::test::of_news_resource
