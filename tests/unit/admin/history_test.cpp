#include "proxy/admin/history.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace reprise::proxy;
using namespace reprise::proxy::admin;
using std::chrono::seconds;

namespace {

const steady_time begun_at{seconds{1'000'000}};

tally requests(std::uint64_t many) {
    return {.requests = many, .hits = many / 2};
}

}  // namespace

TEST_SUITE("admin/history") {

    TEST_CASE("at the start there is one sample, of no time and nothing in it") {
        const history kept{begun_at};
        const auto hour = kept.last_hour(begun_at, {});
        REQUIRE(hour.size() == 1);
        CHECK(hour[0].span == seconds{0});
        CHECK(hour[0].happened == tally{});
        CHECK(kept.last_day(begun_at, {}).size() == 1);
    }

    TEST_CASE("what happened lies between its two readings, and what is new in the last sample") {
        history kept{begun_at};
        kept.tick(begun_at + seconds{9}, requests(7));  // too early: it counts with what follows
        kept.tick(begun_at + seconds{10}, requests(10));
        kept.tick(begun_at + seconds{20}, requests(16));
        const auto hour = kept.last_hour(begun_at + seconds{23}, requests(20));
        REQUIRE(hour.size() == 3);
        CHECK(hour[0].happened.requests == 10);
        CHECK(hour[1].happened.requests == 6);
        CHECK(hour[1].happened.hits == 3);
        CHECK(hour[1].until == begun_at + seconds{20});
        CHECK(hour[1].span == seconds{10});
        CHECK(hour[2].happened.requests == 4);
        CHECK(hour[2].span == seconds{3});
    }

    TEST_CASE(
        "the hour has 360 samples and the day 288, however long it runs; none is lost between") {
        history kept{begun_at};
        std::uint64_t many = 0;
        auto now = begun_at;
        for (int second = 0; second < 100'000; ++second) {
            now += seconds{1};
            kept.tick(now, requests(++many));
        }
        const auto hour = kept.last_hour(now, requests(many));
        const auto day = kept.last_day(now, requests(many));
        CHECK(hour.size() == 361);  // with the one that is under way
        CHECK(day.size() == 289);
        for (const auto* samples : {&hour, &day}) {
            auto end = samples->front().until - samples->front().span;
            std::uint64_t sum = 0;
            for (const auto& one : *samples) {
                CHECK(one.until - one.span == end);
                end = one.until;
                sum += one.happened.requests;
            }
            CHECK(end == now);
            const auto covered = now - (samples->front().until - samples->front().span);
            CHECK(sum == static_cast<std::uint64_t>(covered / seconds{1}));
        }
    }

    TEST_CASE("ticks that come late make a longer sample, not a wrong one") {
        history kept{begun_at};
        kept.tick(begun_at + seconds{500}, requests(50));
        const auto hour = kept.last_hour(begun_at + seconds{500}, requests(50));
        REQUIRE(hour.size() == 2);
        CHECK(hour[0].span == seconds{500});
        CHECK(hour[0].happened.requests == 50);
    }

    TEST_CASE("within a span counts what came since, and one step more at most") {
        history kept{begun_at};
        auto now = begun_at;
        for (std::uint64_t second = 1; second <= 1000; ++second) {
            now += seconds{1};
            kept.tick(now, requests(second));
        }
        const auto minute = kept.within(seconds{60}, now, requests(1000)).requests;
        CHECK(minute >= 60);
        CHECK(minute <= 70);
        CHECK(kept.within(std::chrono::hours{1}, now, requests(1000)).requests == 1000);
    }

    TEST_CASE("within a day counts what came since yesterday, and five minutes more at most") {
        history kept{begun_at};
        auto now = begun_at;
        for (std::uint64_t second = 1; second <= 100'000; ++second) {
            now += seconds{1};
            kept.tick(now, requests(second));
        }
        const auto day = kept.within(std::chrono::hours{24}, now, requests(100'000)).requests;
        CHECK(day >= 86'400);
        CHECK(day <= 86'700);
    }

    TEST_CASE("a tally tells what an origin did from what its asker did") {
        totals counts;
        const auto fail = [&](failure_code code) {
            ++counts.failures[static_cast<std::size_t>(code)];
        };
        fail(failure_code::dns_not_found);
        fail(failure_code::destination_refused);
        fail(failure_code::bad_request);
        CHECK(tally_of(counts, 0).origin_failures() == 0);
        fail(failure_code::dns_timeout);
        fail(failure_code::connect_refused);
        fail(failure_code::tls_certificate);
        fail(failure_code::response_cut_short);
        const auto sum = tally_of(counts, 3);
        CHECK(sum.unresolved == 1);
        CHECK(sum.unreached == 1);
        CHECK(sum.untrusted == 1);
        CHECK(sum.ill_answered == 1);
        CHECK(sum.lines_dropped == 3);
    }

    TEST_CASE("/history has as many of each count as there are samples") {
        history kept{begun_at};
        kept.tick(begun_at + seconds{10}, requests(10));
        const auto json = nlohmann::ordered_json::parse(
            history_json(kept, begun_at + seconds{12}, requests(11)));
        for (const auto* span : {"hour", "day"}) {
            const auto& columns = json[span];
            CHECK(columns.size() == 18);
            for (const auto& column : columns) {
                CHECK(column.size() == columns["seconds"].size());
            }
        }
        CHECK(json["hour"]["requests"] == nlohmann::ordered_json({10, 1}));
        CHECK(json["hour"]["ended_seconds_ago"] == nlohmann::ordered_json({2.0, 0.0}));
    }

    TEST_CASE("what is within a span says how long that is in truth") {
        history kept{begun_at};
        constexpr std::chrono::hours day{24};
        CHECK(kept.covered(day, begun_at) == seconds{0});
        auto now = begun_at;
        for (int second = 0; second < 100'000; ++second) {
            now += seconds{1};
            kept.tick(now, {});
            if (second == 7'199) {
                CHECK(kept.covered(day, now) == std::chrono::hours{2});
            }
        }
        CHECK(kept.covered(day, now) >= day);
        CHECK(kept.covered(day, now) <= day + seconds{300});
        CHECK_FALSE(kept.has_adopted());
    }

    TEST_CASE("what another process counted goes on in this one, whose counts begin at zero") {
        history before{begun_at};
        auto now = begun_at;
        std::uint64_t many = 0;
        for (int second = 0; second < 7'205; ++second) {
            now += seconds{1};
            before.tick(now, requests(many += 2));
        }
        const auto told_at = now;
        const auto text = history_json(before, told_at, requests(many));
        const auto started = told_at + seconds{3};
        history after{started};
        REQUIRE(after.adopt(text, told_at));
        CHECK(after.has_adopted());
        CHECK(after.within(std::chrono::hours{24}, started, {}).requests == many);
        CHECK(after.covered(std::chrono::hours{24}, started) == seconds{7'208});
        CHECK(after.within(std::chrono::hours{24}, started, {}).hits == many / 2);
        const auto minute = after.within(seconds{60}, started, {}).requests;
        CHECK(minute >= 2 * 57);
        CHECK(minute <= 2 * 70);
        std::uint64_t more = 0;
        now = started;
        for (int second = 0; second < 400; ++second) {
            now += seconds{1};
            after.tick(now, requests(++more));
        }
        CHECK(after.within(std::chrono::hours{24}, now, requests(more)).requests == many + more);
        CHECK(after.within(seconds{60}, now, requests(more)).requests <= 70);
        std::uint64_t sum = 0;
        for (const auto& one : after.last_day(now, requests(more))) {
            CHECK(one.span >= seconds{0});
            sum += one.happened.requests;
        }
        CHECK(sum == many + more);
        CHECK(after.last_hour(now, requests(more)).size() == 361);
    }

    TEST_CASE("over several upgrades a day stays a day, and fits") {
        auto now = begun_at;
        history kept{now};
        for (int upgrade = 0; upgrade < 30; ++upgrade) {
            std::uint64_t many = 0;
            for (int step = 0; step < 360; ++step) {
                now += seconds{10};
                kept.tick(now, requests(++many));
            }
            const auto text = history_json(kept, now, requests(many));
            now += seconds{1};
            history next{now};
            REQUIRE(next.adopt(text, now - seconds{1}));
            kept = next;
        }
        CHECK(kept.last_day(now, {}).size() <= 289);
        const auto of_day = kept.within(std::chrono::hours{24}, now, {}).requests;
        CHECK(of_day >= 8'600);
        CHECK(of_day <= 8'700);
    }

    TEST_CASE("a text of another release is read as far as it is known") {
        const auto only = R"({"ended_seconds_ago": [10, 0], "seconds": [10, 10], "requests": [5, 7],
                              "unheard_of": [1, 2]})";
        const auto text = std::string{"{\"more\": 1, \"hour\": "} + only + ", \"day\": " + only +
                          "}";
        history kept{begun_at};
        REQUIRE(kept.adopt(text, begun_at));
        CHECK(kept.within(std::chrono::hours{24}, begun_at, {}).requests == 12);
        CHECK(kept.within(std::chrono::hours{24}, begun_at, {}).hits == 0);
    }

    TEST_CASE("whatever else is told, nothing is changed") {
        history before{begun_at};
        before.tick(begun_at + seconds{10}, requests(10));
        const auto whole = history_json(before, begun_at + seconds{12}, requests(11));
        const auto started = begun_at + seconds{13};
        const auto is_refused = [&](std::string_view text, steady_time told_at) {
            history kept{started};
            const bool taken = kept.adopt(text, told_at);
            if (!taken) {
                CHECK(kept.within(std::chrono::hours{24}, started, {}) == tally{});
                CHECK_FALSE(kept.has_adopted());
            }
            return !taken;
        };
        CHECK_FALSE(is_refused(whole, started));
        CHECK(is_refused(whole, started + seconds{1}));  // of a time to come
        for (std::size_t cut = 0; cut < whole.size(); ++cut) {
            CHECK(is_refused(std::string_view{whole}.substr(0, cut), started));
        }
        const auto with = [](std::string_view columns) {
            return R"({"hour": )" + std::string{columns} + R"(, "day": )" + std::string{columns} +
                   "}";
        };
        CHECK_FALSE(is_refused(with(R"({"ended_seconds_ago": [0], "seconds": [1]})"), started));
        for (const auto* const wrong :
             {"1",
              "[]",
              "{}",
              R"({"ended_seconds_ago": [], "seconds": []})",
              R"({"ended_seconds_ago": [0], "seconds": []})",
              R"({"ended_seconds_ago": [0], "seconds": ["1"]})",
              R"({"ended_seconds_ago": [-1], "seconds": [1]})",
              R"({"ended_seconds_ago": [0], "seconds": [1e300]})",
              R"({"ended_seconds_ago": [0, 5], "seconds": [1, 1]})",
              R"({"ended_seconds_ago": [0], "seconds": [1], "hits": []})",
              R"({"ended_seconds_ago": [0], "seconds": [1], "hits": [-1]})",
              R"({"ended_seconds_ago": [0], "seconds": [1], "hits": [0.5]})"}) {
            CAPTURE(wrong);
            CHECK(is_refused(with(wrong), started));
        }
    }

}  // TEST_SUITE
