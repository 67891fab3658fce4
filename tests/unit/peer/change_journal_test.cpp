#include "filter/place_sum.hpp"
#include "proxy/peer/change_journal.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

namespace reprise::proxy::peer::test::of_change_journal {

TEST_SUITE("peer/change_journal") {
    TEST_CASE("a step is what differs in the end") {
        change_journal journal{100};
        journal.begin(1);
        journal.came(7, 0);
        journal.turned(5, true);
        journal.turned(3, true);
        journal.turned(5, false);
        CHECK(journal.is_open());
        CHECK(journal.close(2));
        CHECK_FALSE(journal.is_open());
        const auto told = journal.since(1);
        CHECK(told.changes.places == std::vector<std::uint64_t>{3});
        CHECK(told.changes.names == std::vector<std::uint64_t>{7});
        CHECK(told.base_sum == 0);
        CHECK(journal.sum() == filter::mark_of(3));
        CHECK(journal.since(2).changes.places.empty());
    }

    TEST_CASE("many places, of any size, come out in order and once") {
        for (const std::uint64_t range : {1ULL, 700ULL, 1ULL << 24, (1ULL << 33) + 5, ~0ULL}) {
            CAPTURE(range);
            std::mt19937_64 random{range};
            change_journal journal{100'000};
            journal.begin(1);
            std::set<std::uint64_t> on;
            for (int i = 0; i < 3'001; ++i) {
                const auto place = random() % range;
                const bool is_on = on.insert(place).second;
                if (!is_on) {
                    on.erase(place);
                }
                journal.turned(place, is_on);
            }
            CHECK(journal.close(2));
            CHECK(journal.since(1).changes.places ==
                  std::vector<std::uint64_t>{on.begin(), on.end()});
        }
    }

    TEST_CASE("a step is urgent as soon as a key is that turned something, and until it ends") {
        change_journal journal{2};
        journal.begin(1);
        journal.turned(1, true);
        journal.came(7, 1);
        journal.came(8, 0, urgency::urgent);
        CHECK(journal.of_step() == urgency::ordinary);
        journal.turned(2, true);
        journal.came(9, 1, urgency::urgent);
        journal.came(10, 0);
        CHECK(journal.of_step() == urgency::urgent);
        REQUIRE(journal.close(2));
        CHECK(journal.of_step() == urgency::ordinary);
        // Also where nothing differs in the end, and where another size is begun with.
        for (const bool on : {true, false}) {
            journal.turned(3, on);
            journal.came(11, 1, urgency::urgent);
        }
        CHECK(journal.of_step() == urgency::urgent);
        CHECK_FALSE(journal.close(3));
        CHECK(journal.of_step() == urgency::ordinary);
        journal.turned(4, true);
        journal.came(12, 1, urgency::urgent);
        journal.begin(3);
        CHECK(journal.of_step() == urgency::ordinary);
    }

    TEST_CASE("names say all where nothing left and nothing turned that has no name") {
        change_journal journal{100};
        journal.begin(1);
        const auto turn = [&](std::uint64_t place) { journal.turned(place, true); };
        turn(1), turn(2);
        journal.came(70, 2);
        turn(3);
        journal.came(71, 1);
        journal.came(72, 0);
        CHECK(journal.turns() == 3);
        REQUIRE(journal.close(2));
        CHECK(journal.since(1).changes.names_say_all);
        turn(4);
        turn(5);
        journal.came(73, 1);
        REQUIRE(journal.close(3));
        CHECK_FALSE(journal.since(2).changes.names_say_all);
        CHECK_FALSE(journal.since(1).changes.names_say_all);
        turn(6);
        journal.came(74, 1);
        REQUIRE(journal.close(4));
        CHECK(journal.since(3).changes.names_say_all);
        turn(7);
        journal.came(75, 1);
        journal.turned(6, false);
        REQUIRE(journal.close(5));
        CHECK_FALSE(journal.since(4).changes.names_say_all);
        journal.turned(6, true);
        journal.turned(6, false);
        CHECK_FALSE(journal.close(6));
        turn(8);
        journal.came(76, 1);
        REQUIRE(journal.close(6));
        CHECK(journal.since(5).changes.names_say_all);
    }

    TEST_CASE("what came and left is no step") {
        change_journal journal{100};
        journal.begin(1);
        journal.turned(5, true);
        journal.turned(5, false);
        CHECK_FALSE(journal.close(2));
        CHECK(journal.newest() == 1);
        CHECK_FALSE(journal.is_open());
    }

    TEST_CASE("from any step that is remembered, what differs now, and the sum as it was") {
        std::mt19937_64 random{11};
        change_journal journal{600};
        journal.begin(1);
        std::set<std::uint64_t> on;
        std::map<std::uint64_t, std::set<std::uint64_t>> at{{1, {}}};
        std::uint64_t counter = 1;
        unsigned by_names_alone = 0;
        for (int step = 0; step < 400; ++step) {
            for (auto turns = random() % 12; turns > 0; --turns) {
                const auto place = random() % 200;
                const bool is_on = on.insert(place).second;
                if (!is_on) {
                    on.erase(place);
                }
                journal.turned(place, is_on);
                if (is_on) {
                    journal.came(place, 1);
                }
            }
            if (journal.is_open() && journal.close(counter + (step % 7 == 0 ? 2 : 1))) {
                counter = journal.newest();
                at[counter] = on;
            }
            for (const auto& [base, before] : at) {
                if (!journal.knows(base)) {
                    REQUIRE(base < journal.oldest());
                    continue;
                }
                const auto told = journal.since(base);
                if (told.changes.names_say_all) {
                    const std::set named(told.changes.names.begin(), told.changes.names.end());
                    const std::set turned(told.changes.places.begin(), told.changes.places.end());
                    REQUIRE(named == turned);
                    by_names_alone += base != counter ? 1 : 0;
                }
                auto after = before;
                std::uint64_t sum = 0;
                for (const auto place : before) {
                    sum += filter::mark_of(place);
                }
                REQUIRE(told.base_sum == sum);
                for (const auto place : told.changes.places) {
                    const bool is_on = after.insert(place).second;
                    if (!is_on) {
                        after.erase(place);
                    }
                    sum = filter::turned(sum, place, is_on);
                }
                REQUIRE(after == at[counter]);
                REQUIRE(sum == journal.sum());
            }
        }
        CHECK(by_names_alone > 10);
        CHECK(journal.oldest() > 1);
        CHECK(journal.steps() > 10);
        CHECK_FALSE(journal.knows(counter + 1));
        CHECK_FALSE(journal.knows(0));
        CHECK(journal.bytes() < 3 * 8 * 600 + 400 * 100);
    }

    TEST_CASE("a step larger than all that is remembered begins anew, and sums go on") {
        change_journal journal{100};
        journal.begin(1);
        std::uint64_t sum = 0;
        for (std::uint64_t place = 0; place < 1000; ++place) {
            journal.turned(place, true);
            sum += filter::mark_of(place);
        }
        CHECK(journal.is_open());
        CHECK(journal.close(2));
        CHECK(journal.sum() == sum);
        CHECK(journal.oldest() == 2);
        CHECK_FALSE(journal.knows(1));
        journal.turned(3, false);
        CHECK(journal.close(3));
        CHECK(journal.since(2).changes.places == std::vector<std::uint64_t>{3});
        CHECK(journal.since(2).base_sum == sum);
    }
}

}  // namespace reprise::proxy::peer::test::of_change_journal
