#include "filter/digest_union.hpp"
#include "tests/unit/filter/digests.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace reprise::filter::test::of_digest_union {
namespace {

// A rate's digests double: 4,096 bits, 8,192 and so on.
bloom_size doubled(unsigned times) {
    return {.bits = std::uint64_t{4096} << times, .probes = 2};
}

std::vector<std::uint64_t> words_of(const digest& of) {
    return {of.words().begin(), of.words().end()};
}

bool names(const digest_union& all, std::uint64_t key) {
    indices places{nth_key(1, key), all.shape()->bits};
    for (unsigned probe = 0; probe < all.shape()->probes; ++probe) {
        const auto place = places.next();
        if ((all.words()[place / 64] >> (place % 64) & 1) == 0) {
            return false;
        }
    }
    return true;
}

bool names_all(const digest_union& all, std::uint64_t first, std::uint64_t last) {
    for (auto key = first; key < last; ++key) {
        if (!names(all, key)) {
            return false;
        }
    }
    return true;
}

/// What a union of these would be, made anew.
std::vector<std::uint64_t> united(const std::map<unsigned, std::vector<std::uint64_t>>& members,
                                  std::size_t words) {
    std::vector<std::uint64_t> out(words);
    for (const auto& [member, its] : members) {
        for (std::size_t i = 0; i < words; ++i) {
            out[i] |= its[i % its.size()];
        }
    }
    return out;
}

}  // namespace

TEST_SUITE("filter/digest_union") {
    TEST_CASE("it names what any member has, whatever their sizes") {
        digest_union all;
        CHECK_FALSE(all.shape());
        CHECK(all.put(3, digest_of_keys(doubled(1), 0, 300)));
        CHECK(all.put(7, digest_of_keys(doubled(0), 200, 350)));
        CHECK(all.shape()->bits == doubled(1).bits);
        CHECK(names_all(all, 0, 350));
        CHECK(all.put(9, digest_of_keys(doubled(3), 1000, 2000)));
        CHECK(all.shape()->bits == doubled(3).bits);
        CHECK(all.members() == 3);
        CHECK(names_all(all, 0, 350));
        CHECK(names_all(all, 1000, 2000));
    }

    TEST_CASE("what a member alone had goes with it, and what others have stays") {
        digest_union all;
        CHECK(all.put(0, digest_of_keys(doubled(0), 0, 100)));
        CHECK(all.put(1, digest_of_keys(doubled(0), 50, 150)));
        all.remove(0);
        const auto alone = digest_of_keys(doubled(0), 50, 150);
        CHECK(std::vector<std::uint64_t>{all.words().begin(), all.words().end()} ==
              words_of(alone));
        all.remove(1);
        all.remove(1);
        CHECK(all.members() == 0);
        CHECK(all.words()[0] == 0);
    }

    TEST_CASE("a digest that says nothing of the others' is no member") {
        digest_union all;
        CHECK(all.put(0, digest_of_keys(doubled(1), 0, 100)));
        CHECK_FALSE(all.put(1, digest_of_keys({.bits = 8192, .probes = 3}, 0, 100)));
        CHECK_FALSE(all.put(1, digest_of_keys({.bits = 4096 + 64, .probes = 2}, 0, 100)));
        CHECK_FALSE(all.put(1, digest_of_keys({.bits = 3 * 8192, .probes = 2}, 0, 100)));
        CHECK_FALSE(all.put(1, digest_of_keys({.bits = 4096 + 1, .probes = 2}, 0, 100)));
        CHECK(all.members() == 1);
        // And where it was one, it is none any more.
        CHECK(all.put(1, digest_of_keys(doubled(1), 500, 600)));
        CHECK_FALSE(all.put(1, digest_of_keys({.bits = 8192, .probes = 3}, 0, 100)));
        CHECK(all.members() == 1);
        CHECK_FALSE(names_all(all, 500, 600));
        // Alone it may have any rate.
        all.remove(0);
        CHECK(all.put(1, digest_of_keys({.bits = 8192, .probes = 3}, 0, 100)));
        CHECK(all.shape()->probes == 3);
    }

    TEST_CASE("places beyond a member's digest, or of a stranger, turn nothing") {
        digest_union all;
        CHECK(all.put(0, digest_of_keys(doubled(0), 0, 100)));
        const auto before = std::vector<std::uint64_t>{all.words().begin(), all.words().end()};
        const std::vector<std::uint64_t> beyond{1, 4096};
        CHECK_FALSE(all.flip(0, beyond));
        CHECK_FALSE(all.flip(5, std::vector<std::uint64_t>{1}));
        CHECK(std::vector<std::uint64_t>{all.words().begin(), all.words().end()} == before);
    }

    TEST_CASE("what has changed leads from what was to what is") {
        std::mt19937_64 random{20'261'126};
        digest_union all;
        std::map<unsigned, std::vector<std::uint64_t>> members;
        std::vector<std::uint64_t> told;
        unsigned by_all = 0, by_places = 0;
        for (int step = 0; step < 600; ++step) {
            const auto member = static_cast<unsigned>(random() % 5);
            const auto known = members.find(member);
            if (known == members.end() || random() % 16 == 0) {
                const auto first = random() % 1000;
                const auto next = digest_of_keys(
                    doubled(static_cast<unsigned>(random() % 3)), first, first + random() % 200);
                REQUIRE(all.put(member, next));
                members[member] = words_of(next);
            } else if (random() % 24 == 0) {
                all.remove(member);
                members.erase(member);
            } else {
                // Now and then more than a small one has words.
                std::vector<std::uint64_t> places(1 + random() % (random() % 8 == 0 ? 200 : 20));
                for (auto& place : places) {
                    place = random() % (known->second.size() * 64);
                    known->second[place / 64] ^= std::uint64_t{1} << (place % 64);
                }
                REQUIRE(all.flip(member, places));
            }
            if (random() % 3 != 0) {
                continue;
            }
            const auto changed = all.take_changes();
            (changed.all ? by_all : by_places) += 1;
            if (changed.all) {
                told.assign(all.words().begin(), all.words().end());
            }
            for (const auto& one : changed.turned) {
                auto& word = told[one.place / 64];
                const auto bit = std::uint64_t{1} << (one.place % 64);
                REQUIRE(((word & bit) != 0) != one.is_on);
                word ^= bit;
            }
            REQUIRE(told == united(members, all.words().size()));
        }
        CHECK(by_all > 10);
        CHECK(by_places > 100);
        (void)all.take_changes();
        const auto nothing = all.take_changes();
        CHECK((!nothing.all && nothing.turned.empty()));
    }

    TEST_CASE("a digest that is far smaller than the others' is left out, and what it turns is no "
              "change") {
        digest_union all;
        const auto one = digest_of_keys(doubled(7), 0, 300);
        const auto other = digest_of_keys(doubled(7), 200, 500);
        CHECK(all.put(0, one));
        CHECK(all.put(1, other));
        CHECK(all.put(2, digest_of_keys(doubled(0), 1000, 1100)));
        CHECK_FALSE(all.is_in(2));
        CHECK(all.members() == 2);
        CHECK(all.left_out() == 1);
        CHECK(words_of(one).size() == all.words().size());
        CHECK(std::vector<std::uint64_t>{all.words().begin(), all.words().end()} ==
              united({{0U, words_of(one)}, {1U, words_of(other)}}, all.words().size()));
        (void)all.take_changes();
        CHECK(all.flip(2, std::vector<std::uint64_t>{1, 2, 3}));
        const auto nothing = all.take_changes();
        CHECK((!nothing.all && nothing.turned.empty()));
        // As soon as it is large enough it is in it.
        CHECK(all.put(2, digest_of_keys(doubled(1), 1000, 1100)));
        CHECK(all.is_in(2));
        CHECK(all.left_out() == 0);
        CHECK(names_all(all, 0, 500));
        CHECK(names_all(all, 1000, 1100));
        // What was turned while it was left out is known when it is let in.
        CHECK(all.put(2, digest_of_keys(doubled(0), 1000, 1100)));
        const std::vector<std::uint64_t> place{77};
        CHECK(all.flip(2, place));
        all.remove(1);
        REQUIRE(all.is_in(2));
        auto flipped = words_of(digest_of_keys(doubled(0), 1000, 1100));
        flipped[1] ^= std::uint64_t{1} << 13;
        CHECK(std::vector<std::uint64_t>{all.words().begin(), all.words().end()} ==
              united({{0U, words_of(one)}, {2U, flipped}}, all.words().size()));
    }

    TEST_CASE("one that is far larger keeps no other out, and its size goes with it") {
        digest_union all;
        CHECK(all.put(0, digest_of_keys(doubled(10), 0, 100)));
        CHECK(all.put(1, digest_of_keys(doubled(0), 200, 300)));
        CHECK(all.put(2, digest_of_keys(doubled(1), 400, 500)));
        CHECK(all.left_out() == 0);
        CHECK(all.shape()->bits == doubled(10).bits);
        CHECK(names_all(all, 0, 100));
        CHECK(names_all(all, 200, 300));
        CHECK(names_all(all, 400, 500));
        (void)all.take_changes();
        all.remove(0);
        CHECK(all.shape()->bits == doubled(1).bits);
        CHECK(all.words().size() == doubled(1).bits / 64);
        CHECK(all.take_changes().all);
        CHECK(names_all(all, 200, 300));
        CHECK(names_all(all, 400, 500));
        CHECK_FALSE(names_all(all, 0, 100));
    }

    TEST_CASE("who is in it goes by the sizes alone, whoever came first") {
        const std::vector<unsigned> times{
            0, 7, 8, 12};  // the second largest is 256 times the first
        std::vector<digest> made;
        for (const auto one : times) {
            made.push_back(digest_of_keys(doubled(one), one * 100, one * 100 + 50));
        }
        std::vector<unsigned> order{0, 1, 2, 3};
        do {
            digest_union all;
            for (const auto member : order) {
                CHECK(all.put(member, made[member]));
            }
            for (const auto member : order) {
                CHECK(all.is_in(member) == (member != 0));
            }
            CHECK(all.shape()->bits == doubled(12).bits);
            CHECK(names_all(all, 700, 750));
            CHECK(names_all(all, 1'200, 1'250));
        } while (std::next_permutation(order.begin(), order.end()));
    }

    TEST_CASE("its rate is that of all members' bits together") {
        digest_union all;
        for (unsigned member = 0; member < 4; ++member) {
            CHECK(all.put(
                member,
                digest_of_keys(digest_size(2000, 0.01), member * 2000, member * 2000 + 2000)));
        }
        unsigned wrong = 0;
        for (std::uint64_t key = 100'000; key < 120'000; ++key) {
            wrong += names(all, key) ? 1 : 0;
        }
        // (1 - 0.9^4)^2: a tenth of each member's bits are on.
        CHECK(wrong / 20'000.0 == doctest::Approx(0.118).epsilon(0.1));
    }
}

}  // namespace reprise::filter::test::of_digest_union
