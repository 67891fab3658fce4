#include "proxy/cache/collapse.hpp"
#include "tests/unit/cache/fetching.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace reprise::proxy::cache::test::of_collapse {

using reprise::filter::key_hash;

namespace {

const std::string url = "http://origin.test/page";
const std::string other_url = "http://origin.test/other";

collapse_table::place ask(collapse_table& table, const std::string& name = url) {
    return table.join_or_lead(key_of(name), name, {}, fetch_limits{});
}

/// Who is told what is under way.
class said_of_keys final : public contents_listener {
public:
    void held(holder by,
              const key_hash& key,
              std::string_view /*url*/,
              wall_time /*until*/) noexcept override {
        CHECK(by == holder::under_way);
        there.push_back(key);
        ++calls;
    }
    void gone(holder by, const key_hash& key) noexcept override {
        CHECK(by == holder::under_way);
        const auto one = std::find(there.begin(), there.end(), key);
        REQUIRE(one != there.end());
        there.erase(one);
        ++calls;
    }
    void outdated(const key_hash& /*key*/) noexcept override {}
    void loaded() noexcept override {}

    std::vector<key_hash> there;
    unsigned calls = 0;
};

bool joins(collapse_table& table) {
    return table.join_kept(key_of(url), url, {}) != nullptr;
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

TEST_CASE("what is promised of a fetch is taken back by whatever unlists it") {
    const auto promised = [](said_of_keys& said, collapse_table& table) {
        auto place = ask(table);
        auto& fetch = *place.reader->source();
        REQUIRE(fetch.keep_whole());
        fetch.producer_head(head_of(10));
        table.promise_stored(key_of(url), place.reader->source(), wall_time::max());
        CHECK(said.there.size() == 1);
        return place;
    };
    said_of_keys said;
    {
        collapse_table table{&said};
        {
            const auto place = promised(said, table);
            table.promise_stored(key_of(url), place.reader->source(), wall_time::max());
            CHECK(said.calls == 1);
            table.take_back(key_of(url), place.reader->source());
            CHECK(said.there.empty());
            table.remove(key_of(url), place.reader->source());
            CHECK(said.calls == 2);
        }
        {
            const auto place = promised(said, table);
            table.remove(key_of(url), place.reader->source());
            CHECK(said.there.empty());
        }
        {
            const auto place = promised(said, table);
            table.forget(key_of(url), other_url);
            CHECK(said.there.size() == 1);
            table.forget(key_of(url), url);
            CHECK(said.there.empty());
        }
        {
            const auto place = promised(said, table);
            table.unlist_if([](std::string_view) { return true; });
            CHECK(said.there.empty());
            // Listed no more, it is promised no more.
            table.promise_stored(key_of(url), place.reader->source(), wall_time::max());
            CHECK(said.there.empty());
        }
        {
            const auto place = promised(said, table);
            place.reader->source()->producer_fail({});
            const auto next = ask(table);
            REQUIRE(next.leads);
            CHECK(said.there.empty());
            table.take_back(key_of(url), place.reader->source());
            table.remove(key_of(url), next.reader->source());
        }
        (void)promised(said, table);
    }
    CHECK(said.there.empty());  // with the table
}

TEST_CASE("promised is what a sibling may join") {
    said_of_keys said;
    collapse_table table{&said};
    const auto place = ask(table);
    const auto& source = place.reader->source();
    const auto promise = [&] {
        table.promise_stored(key_of(url), source, wall_time::max());
        return !said.there.empty();
    };
    CHECK_FALSE(promise());
    source->producer_head(head_of(10));
    CHECK_FALSE(promise());
    REQUIRE(source->keep_whole());
    CHECK(promise());
    collapse_table silent;  // nobody is told
    const auto other = ask(silent);
    REQUIRE(other.reader->source()->keep_whole());
    other.reader->source()->producer_head(head_of(10));
    silent.promise_stored(key_of(url), other.reader->source(), wall_time::max());
    silent.take_back(key_of(url), other.reader->source());
    CHECK(said.calls == 1);
}

TEST_CASE(
    "what is expected to be stored is promised before its head, and taken back where it is not") {
    for (const bool is_kept : {true, false}) {
        CAPTURE(is_kept);
        said_of_keys said;
        collapse_table table{&said};
        const auto place = ask(table);
        const auto& source = place.reader->source();
        CHECK_FALSE(joins(table));
        source->producer_expects_to_keep();
        table.promise_stored(key_of(url), source, wall_time::max());
        CHECK(said.there.size() == 1);
        CHECK(joins(table));
        if (is_kept) {
            REQUIRE(source->keep_whole());
        }
        source->producer_head(head_of(10));
        CHECK(joins(table) == is_kept);
        table.promise_stored(key_of(url), source, wall_time::max());
        CHECK(said.there.size() == (is_kept ? 1 : 0));
    }
}

TEST_CASE("a sibling that waits for the head is no sight here, and is told whether it is kept") {
    for (const bool is_kept : {true, false}) {
        CAPTURE(is_kept);
        collapse_table table;
        const auto place = ask(table);
        const auto& source = place.reader->source();
        source->producer_expects_to_keep();
        const auto lent = table.join_kept(key_of(url), url, {});
        REQUIRE(lent);
        CHECK(source->clients() == 1);
        if (is_kept) {
            REQUIRE(source->keep_whole());
        }
        CHECK(source->producer_head(head_of(10)) == 1);
        CHECK(source->is_kept() == is_kept);
    }
}

TEST_CASE("what is expected and fails, or that a sibling feeds after all, is joined by none") {
    {
        collapse_table table;
        const auto place = ask(table);
        place.reader->source()->producer_expects_to_keep();
        place.reader->source()->producer_fail({});
        CHECK_FALSE(joins(table));
    }
    collapse_table table;
    const auto place = ask(table);
    auto& fetch = *place.reader->source();
    fetch.producer_expects_to_keep();
    REQUIRE(fetch.keep_whole());
    const auto lent = head_of(10);
    lent->fed_by_sibling = true;
    fetch.producer_head(lent);
    CHECK_FALSE(joins(table));
}

TEST_CASE("a promise goes from hand to hand, and is taken back once") {
    said_of_keys said;
    {
        promise one{said, key_of(url), url, wall_time::max()};
        CHECK(one);
        promise two{std::move(one)};
        CHECK_FALSE(one);
        CHECK(two);
        promise three;
        CHECK_FALSE(three);
        three = std::move(two);
        CHECK(said.there.size() == 1);
        CHECK(said.calls == 1);
        three = promise{said, key_of(other_url), other_url, wall_time::max()};
        CHECK(said.there == std::vector{key_of(other_url)});
    }
    CHECK(said.there.empty());
    CHECK(said.calls == 4);
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
    CHECK(leader.reader->source()->clients() == 3);
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
    CHECK(report.what == event::head);
    leader.reader->next(report, 10);
    CHECK(report.what == event::data);
    source->producer_finish("");
    leader.reader->next(report, 10);
    CHECK(report.what == event::end);
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
