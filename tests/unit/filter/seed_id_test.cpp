#include "filter/seed_id.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

namespace reprise::filter {

using test::counting_seed;
using test::hex;

TEST_SUITE("filter/seed_id") {
    TEST_CASE("a seed's name is the one that the format's page describes") {
        // { printf 'reprise digest seed, version 1'; printf "$SEED"; } | sha256sum
        CHECK(hex(identify(hash_seed{})) == "aa621196ded312b68aaa10f5027089e3");
        CHECK(hex(identify(counting_seed())) == "9dc20ef7dc06521be51ea9b1867c2bb1");
    }

    TEST_CASE("every bit of the seed counts") {
        std::set<seed_id> seen{identify(counting_seed())};
        for (std::size_t bit = 0; bit < 256; ++bit) {
            auto seed = counting_seed();
            seed[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
            seen.insert(identify(seed));
        }
        CHECK(seen.size() == 257);
    }

    TEST_CASE("the name holds no four bytes of the seed in a row") {
        const auto seed = counting_seed();
        const auto id = identify(seed);
        for (std::size_t i = 0; i + 4 <= id.size(); ++i) {
            const auto found = std::search(seed.begin(),
                                           seed.end(),
                                           id.begin() + static_cast<long>(i),
                                           id.begin() + static_cast<long>(i) + 4);
            CHECK(found == seed.end());
        }
    }
}

}  // namespace reprise::filter
