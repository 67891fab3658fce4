#include "proxy/peer/fleet_rounds.hpp"
#include "proxy/peer/fleet_table.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace reprise::proxy::peer::test::of_fleet_table {
namespace {

using namespace std::chrono_literals;

constexpr steady_time begin{100h};

node_figures with_requests(std::uint64_t requests) {
    node_figures out;
    out.requests = requests;
    return out;
}

node_record record(const std::string& name,
                   std::uint64_t epoch,
                   std::uint64_t sequence,
                   std::chrono::milliseconds age,
                   std::uint64_t requests = 0) {
    node_record out{name, epoch, sequence, age, {}};
    out.figures.requests = requests;
    return out;
}

const fleet_row* row_of(const std::vector<fleet_row>& rows, const std::string& name) {
    const auto at = std::find_if(
        rows.begin(), rows.end(), [&](const fleet_row& row) { return row.name == name; });
    return at == rows.end() ? nullptr : &*at;
}

/// Requests that `table` knows of the node; -1: it does not know it.
std::int64_t requests_of(const fleet_table& table, const std::string& name, steady_time now) {
    const auto rows = table.rows(now);
    const auto* const row = row_of(rows, name);
    return row == nullptr ? -1 : static_cast<std::int64_t>(row->figures.requests);
}

void pull(fleet_table& by, const fleet_table& from, steady_time sent, steady_time came) {
    by.take(*decode_fleet(from.told(sent)), came - sent, came);
}

}  // namespace

TEST_SUITE("peer/fleet_table") {
    TEST_CASE("a node that has said nothing yet tells nothing, and then its newest figures") {
        fleet_table a{"a", 1};
        CHECK(a.rows(begin).empty());
        CHECK(decode_fleet(a.told(begin))->empty());
        a.note_own(with_requests(1), begin);
        a.note_own(with_requests(2), begin + 1s);
        const auto rows = a.rows(begin + 3s);
        REQUIRE(rows.size() == 1);
        CHECK(rows[0].is_own);
        CHECK(rows[0].alive);
        CHECK(rows[0].age == 2s);
        CHECK(rows[0].figures.requests == 2);
    }

    TEST_CASE("what a node does not list it hears of by one that does") {
        fleet_table a{"a", 1}, b{"b", 2}, c{"c", 3};
        c.note_own(with_requests(7), begin);
        pull(b, c, begin + 1s, begin + 2s);
        pull(a, b, begin + 5s, begin + 5s);
        const auto rows = a.rows(begin + 6s);
        const auto* const row = row_of(rows, "c");
        REQUIRE(row != nullptr);
        CHECK(row->figures.requests == 7);
        CHECK(row->age == 6s);
    }

    TEST_CASE("nobody is told of himself") {
        fleet_table a{"a", 1};
        a.note_own(with_requests(1), begin);
        a.take(std::vector{record("a", 1, 99, 0ms, 50), record("b", 1, 1, 0ms)}, 0s, begin);
        CHECK(requests_of(a, "a", begin) == 1);
        CHECK(a.rows(begin).size() == 2);
    }

    TEST_CASE(
        "of one start the higher sequence counts, whatever came last or says that it is younger") {
        fleet_table a{"a", 1};
        a.take(std::vector{record("b", 5, 8, 3s, 80)}, 0s, begin);
        a.take(std::vector{record("b", 5, 7, 0ms, 70)}, 0s, begin);
        CHECK(requests_of(a, "b", begin) == 80);
        a.take(std::vector{record("b", 5, 9, 4s, 90)}, 0s, begin);
        CHECK(requests_of(a, "b", begin) == 90);
        // The same record by a shorter way.
        a.take(std::vector{record("b", 5, 9, 1s, 90)}, 0s, begin);
        CHECK(a.rows(begin)[0].age == 1s);
    }

    TEST_CASE("a sequence that a node can't catch up with holds its place for a quarter of a "
              "minute, no more") {
        fleet_table a{"a", 1};
        a.take(std::vector{record("b", 5, std::numeric_limits<std::uint64_t>::max(), 0ms, 666)},
               0s,
               begin);
        a.take(std::vector{record("b", 5, 8, 0ms, 80)}, 0s, begin + 14s);
        CHECK(requests_of(a, "b", begin + 14s) == 666);
        a.take(std::vector{record("b", 5, 9, 0ms, 90)}, 0s, begin + 16s);
        CHECK(requests_of(a, "b", begin + 16s) == 90);
    }

    TEST_CASE("no record of a start makes a node older than an earlier one did") {
        fleet_table a{"a", 1};
        a.take(std::vector{record("b", 5, 8, 2s, 80)}, 0s, begin);
        // By somebody who says that it is dead.
        a.take(std::vector{record("b", 5, 1000, 16s, 666)}, 0s, begin);
        CHECK(a.rows(begin)[0].age == 2s);
        CHECK(a.rows(begin)[0].alive);
        a.take(std::vector{record("b", 5, 1000, 30'001ms, 666)}, 0s, begin + 1s);
        CHECK(a.rows(begin + 1s)[0].age == 3s);
    }

    TEST_CASE("of two starts the younger counts") {
        fleet_table a{"a", 1};
        a.take(std::vector{record("b", 5, 1000, 4s, 80)}, 0s, begin);
        a.take(std::vector{record("b", 6, 1, 1s, 1)}, 0s, begin);
        CHECK(requests_of(a, "b", begin) == 1);
        a.take(std::vector{record("b", 5, 1000, 10s, 80)}, 0s, begin + 6s);
        CHECK(requests_of(a, "b", begin + 6s) == 1);
    }

    TEST_CASE(
        "who was not heard of for half a minute is not alive, and after five he is not known") {
        fleet_table a{"a", 1};
        a.note_own({}, begin);
        a.take(std::vector{record("b", 5, 1, 10s)}, 0s, begin);
        const auto alive = [&](steady_time now) {
            const auto rows = a.rows(now);
            return row_of(rows, "b")->alive;
        };
        CHECK(alive(begin + 20s));
        CHECK_FALSE(alive(begin + 21s));
        CHECK(a.rows(begin + 290s).size() == 2);
        CHECK(decode_fleet(a.told(begin + 290s))->size() == 2);
        CHECK(a.rows(begin + 291s).size() == 1);
        CHECK(decode_fleet(a.told(begin + 291s))->size() == 1);
        // Its own is never too old: whoever shows it is alive.
        CHECK(a.rows(begin + 291s)[0].alive);
    }

    TEST_CASE("what is too old is not taken, so that nothing dropped comes back") {
        fleet_table a{"a", 1};
        a.take(std::vector{record("b", 5, 1, 300s), record("c", 5, 1, 299s)}, 2s, begin);
        CHECK(a.rows(begin).empty());
    }

    TEST_CASE("the table is bounded: of what is beyond the oldest goes") {
        fleet_table a{"a", 1};
        a.note_own({}, begin);
        std::vector<node_record> many;
        for (unsigned i = 0; i < most_fleet_nodes - 1; ++i) {
            many.push_back(
                record("n" + std::to_string(i), 1, 1, std::chrono::milliseconds{1000 + i}));
        }
        a.take(many, 0s, begin);
        CHECK(a.rows(begin).size() == most_fleet_nodes);
        a.take(std::vector{record("older", 1, 1, 100s)}, 0s, begin);
        CHECK(requests_of(a, "older", begin) == -1);
        a.take(std::vector{record("younger", 1, 1, 0s)}, 0s, begin);
        CHECK(a.rows(begin).size() == most_fleet_nodes);
        CHECK(requests_of(a, "younger", begin) == 0);
        CHECK(requests_of(a, "n254", begin) == -1);
        CHECK(decode_fleet(a.told(begin))->size() == most_fleet_nodes);
    }

    // Any graph that is connected, any order of exchanges, ways of any length, clocks that have nothing in
    // common, nodes that begin anew: when nobody says anything new, all come to know the same.
    TEST_CASE("however records travel, all tables come to the newest") {
        for (unsigned seed = 1; seed <= 40; ++seed) {
            CAPTURE(seed);
            std::mt19937 random{seed};
            const auto below = [&](std::size_t n) { return random() % n; };
            const auto count = 2 + below(9);
            struct node {
                std::unique_ptr<fleet_table> table;
                steady_time::duration offset;
                std::vector<std::size_t> asks;
            };
            std::vector<node> nodes;
            std::uint64_t said = 0;
            std::map<std::string, std::uint64_t> newest;
            const auto make = [&](std::size_t i) {
                return std::make_unique<fleet_table>("n" + std::to_string(i), random());
            };
            for (std::size_t i = 0; i < count; ++i) {
                nodes.push_back({make(i), std::chrono::seconds{below(1'000'000)}, {}});
                if (i > 0) {
                    const auto with = below(i);
                    nodes[i].asks.push_back(with);
                    nodes[with].asks.push_back(i);
                }
            }
            steady_time now = begin;
            const auto say = [&](std::size_t i) {
                newest["n" + std::to_string(i)] = ++said;
                nodes[i].table->note_own(with_requests(said), now + nodes[i].offset);
            };
            const auto exchange = [&](std::size_t by, std::size_t from) {
                const auto sent = now;
                now += std::chrono::milliseconds{below(200)};
                const auto wire = nodes[from].table->told(now + nodes[from].offset);
                now += std::chrono::milliseconds{below(200)};
                nodes[by].table->take(*decode_fleet(wire), now - sent, now + nodes[by].offset);
            };
            for (unsigned step = 0; step < 300; ++step) {
                now += std::chrono::milliseconds{below(300)};
                const auto i = below(count);
                if (below(20) == 0) {
                    nodes[i].table = make(i);
                    say(i);
                } else if (below(3) == 0) {
                    say(i);
                } else {
                    exchange(i, nodes[i].asks[below(nodes[i].asks.size())]);
                }
            }
            // What was told before a start is older then than ages err by.
            now += 10s;
            for (std::size_t i = 0; i < count; ++i) {
                say(i);
            }
            for (unsigned round = 0; round < count; ++round) {
                for (std::size_t i = 0; i < count; ++i) {
                    for (const auto from : nodes[i].asks) {
                        exchange(i, from);
                    }
                }
            }
            now += 1s;
            for (const auto& one : nodes) {
                CHECK(one.table->rows(now + one.offset).size() == count);
                for (const auto& [name, requests] : newest) {
                    CHECK(requests_of(*one.table, name, now + one.offset) ==
                          static_cast<std::int64_t>(requests));
                }
            }
        }
    }

    // What FLEET.md says of a large fleet: each asks one of its siblings a second.
    TEST_CASE("in a fleet of 256 that lists 64 each nobody is taken for dead") {
        // The full size takes ThreadSanitizer a minute, and nothing is shared here.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
        constexpr std::size_t count = 48, listed = 12;
#else
        constexpr std::size_t count = 256, listed = 64;
#endif
        std::mt19937 random{1};
        std::vector<std::unique_ptr<fleet_table>> tables;
        std::vector<fleet_rounds> rounds;
        for (std::size_t i = 0; i < count; ++i) {
            tables.push_back(std::make_unique<fleet_table>("n" + std::to_string(i), i + 1));
            std::set<std::string> siblings;
            while (siblings.size() < listed) {
                siblings.insert(std::to_string(random() % count));
            }
            rounds.emplace_back(i + 1);
            rounds.back().set({siblings.begin(), siblings.end()});
        }
        std::chrono::milliseconds oldest{0};
        for (unsigned second = 0; second < 50; ++second) {
            const auto now = begin + std::chrono::seconds{second};
            for (auto& table : tables) {
                table->note_own({}, now);
            }
            for (std::size_t i = 0; i < count; ++i) {
                const auto whom = std::stoul(*rounds[i].next(now));
                pull(*tables[i], *tables[whom], now, now);
            }
            if (second == 20 || second == 49) {
                for (const auto& table : tables) {
                    const auto rows = table->rows(now);
                    CHECK(rows.size() == count);
                    for (const auto& row : rows) {
                        oldest = std::max(oldest, row.age);
                    }
                }
            }
        }
        MESSAGE("the oldest of ", count * count, " records is ", oldest.count(), " ms old");
        CHECK(oldest < fleet_table::alive_for);
    }
}

TEST_SUITE("peer/fleet_rounds") {
    TEST_CASE("each has its turn in a round, and no two rounds need be alike") {
        fleet_rounds rounds{7};
        CHECK_FALSE(rounds.next(begin));
        rounds.set({"a", "b", "c", "d"});
        std::set<std::string> orders;
        for (unsigned round = 0; round < 20; ++round) {
            std::set<std::string> asked;
            std::string order;
            for (unsigned i = 0; i < 4; ++i) {
                const auto whom = rounds.next(begin);
                REQUIRE(whom);
                asked.insert(*whom);
                order += *whom;
                rounds.ended(*whom, true, begin);
            }
            CHECK(asked.size() == 4);
            orders.insert(order);
        }
        CHECK(orders.size() > 1);
    }

    TEST_CASE("who failed is left alone, longer each time, while the others are asked") {
        fleet_rounds rounds{7};
        rounds.set({"a", "b"});
        auto now = begin;
        for (const auto rest : {2s, 4s, 8s, 16s, 32s, 60s, 60s}) {
            rounds.ended("a", false, now);
            for (unsigned i = 0; i < 4; ++i) {
                CHECK(rounds.next(now + rest - 1ms) == "b");
            }
            now += rest;
            std::set<std::string> both;
            for (unsigned i = 0; i < 4; ++i) {
                both.insert(*rounds.next(now));
            }
            CHECK(both.size() == 2);
        }
        // Who is listed still has failed as often; who is not is not asked.
        rounds.ended("a", false, now);
        rounds.set({"a"});
        CHECK_FALSE(rounds.next(now + 59s));
        CHECK(rounds.next(now + 60s) == "a");
        rounds.ended("a", true, now);
        rounds.ended("a", false, now);
        CHECK_FALSE(rounds.next(now + 1s));
        CHECK(rounds.next(now + 2s) == "a");
        rounds.set({});
        CHECK_FALSE(rounds.next(now + 1h));
        rounds.ended("b", false, now);
    }

    TEST_CASE("of a fleet most of which is gone, those that live are heard all the time") {
        fleet_rounds rounds{7};
        std::vector<std::string> names;
        for (unsigned i = 0; i < 63; ++i) {
            names.push_back((i < 15 ? "lives" : "gone") + std::to_string(i));
        }
        rounds.set(names);
        auto now = begin;
        std::optional<steady_time> heard;
        std::chrono::seconds longest{0};
        std::set<std::string> asked;
        while (now < begin + 1h) {
            const auto whom = rounds.next(now);
            if (!whom) {
                now += 1s;
                continue;
            }
            asked.insert(*whom);
            const bool lives = whom->starts_with("lives");
            if (lives) {
                longest = std::max(
                    longest,
                    std::chrono::duration_cast<std::chrono::seconds>(now - heard.value_or(now)));
                heard = now;
            }
            now += lives ? 1s : 5s;
            rounds.ended(*whom, lives, now);
        }
        CHECK(longest < 15s);
        CHECK(asked.size() == 63);
    }
}

}  // namespace reprise::proxy::peer::test::of_fleet_table
