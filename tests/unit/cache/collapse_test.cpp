#include "proxy/cache/collapse.hpp"
#include "tests/unit/cache/fetching.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace reprise::proxy::cache::test::of_collapse {

using reprise::filter::key_hash;

namespace {

const std::string url = "http://origin.test/page";
const std::string other_url = "http://origin.test/other";

collapse_table::place ask(collapse_table& table, const std::string& name = url) {
    return table.join_or_lead(key_of(name), name, {}, fetch_limits{});
}

}  // namespace

TEST_SUITE_BEGIN("cache/collapse");

TEST_CASE("what could not be listed for want of memory leaves nothing behind") {
    collapse_table table;
    // No string is so long: as if there were no memory for one.
    const std::string_view endless{url.data(), ~std::size_t{0} / 2};
    CHECK_THROWS((void)table.join_or_lead(key_of(url), endless, {}, fetch_limits{}));
    CHECK(table.size() == 0);
    CHECK_FALSE(table.has(key_of(url), ""));
    table.forget(key_of(url), "");
    const auto leader = ask(table);
    CHECK(leader.leads);
    CHECK_THROWS((void)table.join_or_lead(key_of(url), endless, {}, fetch_limits{}));
    CHECK_FALSE(ask(table).leads);  // who is listed stays so
}

TEST_CASE("a sibling joins what is being kept and that no sibling feeds, once its head is known") {
    const auto joins = [](collapse_table& table) {
        return table.join_kept(key_of(url), url, {}) != nullptr;
    };
    collapse_table table;
    CHECK_FALSE(joins(table));
    {
        const auto leader = ask(table);
        auto& fetch = *leader.reader->source();
        REQUIRE(fetch.keep_whole());
        CHECK_FALSE(joins(table));  // what is said of it is not known yet
        fetch.producer_head(head_of(10));
        CHECK(joins(table));
        CHECK(table.join_kept(key_of(url), other_url, {}) == nullptr);
        fetch.producer_append("01234");
        CHECK(joins(table));  // from its first byte
        fetch.keep_no_more();
        CHECK_FALSE(joins(table));
        table.remove(key_of(url), leader.reader->source());
    }
    {
        const auto leader = ask(table);
        auto& fetch = *leader.reader->source();
        REQUIRE(fetch.keep_outside());
        fetch.producer_head(head_of(10));
        CHECK(joins(table));
        fetch.producer_append("0123456789");
        fetch.producer_finish("");
        CHECK_FALSE(joins(table));  // it is the store's now
        table.remove(key_of(url), leader.reader->source());
    }
    {
        const auto leader = ask(table);
        auto& fetch = *leader.reader->source();
        REQUIRE(fetch.keep_whole());
        const auto lent = head_of(10);
        lent->fed_by_sibling = true;
        fetch.producer_head(lent);
        CHECK_FALSE(joins(table));
    }
}

TEST_CASE("the first of a key leads, whoever comes meanwhile follows") {
    collapse_table table;
    const auto leader = ask(table);
    REQUIRE(leader.reader);
    CHECK(leader.leads);
    const auto early = ask(table);
    REQUIRE(early.reader);
    CHECK(!early.leads);
    CHECK(!early.head_known);
    CHECK(early.reader->source() == leader.reader->source());
    leader.reader->source()->producer_head(head_of());
    const auto later = ask(table);
    REQUIRE(later.reader);
    CHECK(!later.leads);
    CHECK(later.head_known);
    CHECK(leader.reader->source()->readers() == 3);
    CHECK(table.size() == 1);
}

TEST_CASE("different keys have fetches of their own") {
    collapse_table table;
    const auto one = ask(table, url);
    const auto two = ask(table, other_url);
    CHECK(one.leads);
    CHECK(two.leads);
    CHECK(one.reader->source() != two.reader->source());
    CHECK(table.size() == 2);
}

TEST_CASE("two URLs with one hash never share a fetch") {
    collapse_table table;
    const key_hash same{.low = 1, .high = 2};
    const auto one = table.join_or_lead(same, url, {}, fetch_limits{});
    const auto two = table.join_or_lead(same, other_url, {}, fetch_limits{});
    CHECK(two.leads);
    CHECK(two.reader->source() != one.reader->source());
    table.forget(same, url);  // not the one listed
    const auto three = table.join_or_lead(same, other_url, {}, fetch_limits{});
    CHECK(!three.leads);
}

TEST_CASE("a fetch that can be joined no more is replaced by the next leader's") {
    collapse_table table;
    auto first = ask(table);
    const auto old = first.reader->source();
    SUBCASE("it failed") {
        old->producer_fail(failure{});
    }
    SUBCASE("it was given up") {
        first.reader.reset();
    }
    SUBCASE("its first bytes are gone") {
        old->producer_head(head_of());
        fetch_reader::report report;
        for (int i = 0; i < 20; ++i) {
            old->producer_append(std::string(64u << 10, 'x'));
            first.reader->next(report, 1u << 20);
            first.reader->next(report, 1u << 20);
        }
    }
    const auto second = ask(table);
    CHECK(second.leads);
    CHECK(second.reader->source() != old);
    const auto third = ask(table);
    CHECK(third.reader->source() == second.reader->source());

    // The old one, when it is over, does not take the new one with it.
    table.remove(key_of(url), old);
    CHECK(table.size() == 1);
    table.remove(key_of(url), second.reader->source());
    CHECK(table.size() == 0);
    table.remove(key_of(url), second.reader->source());
    CHECK(ask(table).leads);
}

TEST_CASE("a forgotten fetch is not stored and not joined; its readers go on") {
    collapse_table table;
    const auto leader = ask(table);
    const auto source = leader.reader->source();
    REQUIRE(source->keep_whole());
    source->producer_head(head_of());
    table.forget(key_of(url), url);
    CHECK(!source->kept_whole());
    CHECK(table.size() == 0);
    const auto next = ask(table);
    CHECK(next.leads);
    CHECK(next.reader->source() != source);
    source->producer_append("x");
    fetch_reader::report report;
    leader.reader->next(report, 10);
    CHECK(report.what == news::head);
    leader.reader->next(report, 10);
    CHECK(report.what == news::data);
    source->producer_finish("");
    leader.reader->next(report, 10);
    CHECK(report.what == news::end);
    table.forget(key_of("http://origin.test/never"), "http://origin.test/never");
    CHECK(table.size() == 1);
}

TEST_CASE("threads that ask for one key together have one leader") {
    for (int round = 0; round < 50; ++round) {
        collapse_table table;
        std::atomic<int> leaders{0}, ready{0};
        std::vector<collapse_table::place> places(4);
        std::vector<std::jthread> threads;
        for (auto& place : places) {
            threads.emplace_back([&] {
                ++ready;
                while (ready < 4) {
                    std::this_thread::yield();
                }
                place = ask(table);
                leaders += place.leads;
            });
        }
        threads.clear();
        CHECK(leaders == 1);
        for (const auto& place : places) {
            REQUIRE(place.reader);
            CHECK(place.reader->source() == places[0].reader->source());
        }
    }
}

TEST_CASE("what is unlisted is joined by nobody, and goes on for those who read it") {
    collapse_table table;
    const auto leader = ask(table);
    const auto other = ask(table, other_url);
    leader.reader->source()->keep_whole();
    CHECK(table.has(key_of(url), url));
    table.unlist_if([](std::string_view name) { return name == url; });
    CHECK_FALSE(table.has(key_of(url), url));
    CHECK(table.has(key_of(other_url), other_url));
    CHECK(leader.reader->source()->kept_whole());  // whether it is stored, the store says
    const auto next = ask(table);
    CHECK(next.leads);
    CHECK(next.reader->source() != leader.reader->source());
    table.remove(key_of(url), leader.reader->source());
    CHECK(table.has(key_of(url), url));
}

TEST_SUITE_END();

}  // namespace reprise::proxy::cache::test::of_collapse
