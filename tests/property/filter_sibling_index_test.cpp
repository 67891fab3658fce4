// The sibling index against a model that keeps every digest as it is and asks one after the other:
// whatever siblings come, change, change their size and go, in whatever order.

#include "filter/indices.hpp"
#include "filter/sibling_index.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <vector>

namespace reprise::filter::test::of_filter_sibling_index {

namespace {

struct kept {
    bloom_size size;
    std::vector<std::uint64_t> words;
};
using model = std::map<unsigned, kept>;

constexpr std::array sizes{bloom_size{1, 1},
                           bloom_size{64, 2},
                           bloom_size{333, 2},
                           bloom_size{333, 5},
                           bloom_size{1'000, 3}};

bool may_contain(const kept& digest, key_hash key) {
    indices places{key, digest.size.bits};
    for (unsigned probe = 0; probe < digest.size.probes; ++probe) {
        const auto place = places.next();
        if ((digest.words[place / 64] >> (place % 64) & 1) == 0) {
            return false;
        }
    }
    return true;
}

sibling_mask holders(const model& all, key_hash key) {
    sibling_mask mask = 0;
    for (const auto& [sibling, digest] : all) {
        mask |= sibling_mask{may_contain(digest, key)} << sibling;
    }
    return mask;
}

/// A third of its bits on, about as a digest has.
kept any_digest(std::mt19937_64& random, bloom_size size) {
    kept digest{.size = size, .words = std::vector<std::uint64_t>((size.bits + 63) / 64)};
    for (std::uint64_t place = 0; place < size.bits; ++place) {
        digest.words[place / 64] |= std::uint64_t{random() % 3 == 0} << (place % 64);
    }
    return digest;
}

std::vector<std::uint64_t> any_places(std::mt19937_64& random, bloom_size size) {
    std::vector<std::uint64_t> places(random() % 20);
    std::generate(places.begin(), places.end(), [&] { return random() % size.bits; });
    return places;  // some twice
}

void change(std::mt19937_64& random, unsigned siblings, sibling_index& index, model& all) {
    const auto sibling = static_cast<unsigned>(random() % siblings);
    const auto found = all.find(sibling);
    const auto size = sizes[random() % sizes.size()];
    switch (random() % 8) {
    case 0:
        CHECK(index.remove(sibling) == (found != all.end()));
        all.erase(sibling);
        break;
    case 1:
    case 2: {
        const auto places = any_places(random, size);
        const bool fits = found != all.end() && found->second.size == size;
        CHECK(index.flip(sibling, size, places) == fits);
        for (const auto place : places) {
            if (fits) {
                found->second.words[place / 64] ^= std::uint64_t{1} << (place % 64);
            }
        }
        break;
    }
    case 3:
        if (found != all.end()) {  // the same size once more: the usual replacement
            found->second = any_digest(random, found->second.size);
            index.put(sibling, found->second.size, found->second.words);
            break;
        }
        [[fallthrough]];
    default: all[sibling] = any_digest(random, size); index.put(sibling, size, all[sibling].words);
    }
}

}  // namespace

TEST_SUITE("filter/sibling_index") {
    TEST_CASE("answers are those of all digests asked one by one, whatever changes came before") {
        for (std::uint64_t seed = 1; seed <= 12; ++seed) {
            CAPTURE(seed);
            std::mt19937_64 random{seed};
            const auto siblings = std::array{1U, 3U, 9U, 20U, 33U, 64U}[seed % 6];
            sibling_index index;
            sibling_index::reader often{index};
            sibling_index::reader seldom{index};
            model all;
            for (unsigned step = 0; step < 400; ++step) {
                CAPTURE(step);
                change(random, siblings, index, all);
                for (unsigned i = 0; i < 10; ++i) {
                    const auto key = test::nth_key(seed, random());
                    CHECK(often.may_hold(key) == holders(all, key));
                    if (step % 50 == 0) {
                        CHECK(seldom.may_hold(key) == holders(all, key));
                    }
                }
                sibling_mask known = 0;
                for (const auto& [sibling, digest] : all) {
                    known |= sibling_mask{1} << sibling;
                    if (step % 20 == 0) {
                        CHECK(index.words_of(sibling) == digest.words);
                        CHECK(index.size_of(sibling) == digest.size);
                    }
                }
                CHECK(index.siblings() == known);
                CHECK(index.groups() <= sizes.size());
            }
        }
    }
}

}  // namespace reprise::filter::test::of_filter_sibling_index
