// The vectors were made by libxxhash 0.8.1's own (not inlined) functions, in a C program.

#include "filter/key_hash.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_set>

namespace reprise::filter {

using test::counting_seed;

TEST_SUITE("filter/key_hash") {
    TEST_CASE("a seed makes the secret that XXH3_generateSecret makes") {
        const auto secret = hash_secret::from_seed(counting_seed());
        const std::array<unsigned char, 8> start{0xc6, 0x44, 0x14, 0xe4, 0x70, 0x5e, 0xfc, 0xa8};
        for (std::size_t i = 0; i < start.size(); ++i) {
            CHECK(std::to_integer<unsigned>(secret.bytes()[i]) == start[i]);
        }
        CHECK(secret.seed() == counting_seed());
    }

    TEST_CASE("a text's hash is XXH3's 128 bits under the secret, on each of its paths") {
        const auto secret = hash_secret::from_seed(counting_seed());
        std::string alphabet;
        for (int i = 0; i < 1000; ++i) {
            alphabet += static_cast<char>('a' + i % 26);
        }
        const std::string_view letters = alphabet;
        struct vector {
            std::string_view text;
            key_hash hash;
        };
        const std::array vectors{
            vector{"", {0x43db5bb2756287eb, 0x51ff867e424bb5f5}},
            vector{"a", {0x1b824fa8f643eae4, 0x87acde3d4e68ff88}},
            vector{"http://example.org/", {0x415f744f7a2e80f5, 0xada0e2d00113b730}},
            vector{letters.substr(0, 3), {0xb34b9eb169fd2952, 0x038b4a062672b1de}},
            vector{letters.substr(0, 8), {0xa67bc6a83ee45865, 0x79c3894273b55ec7}},
            vector{letters.substr(0, 16), {0x5cc2b726f7c3434d, 0xb39e2fe09511b010}},
            vector{letters.substr(0, 128), {0x1db74cfe4574d998, 0x2d5b66775e47f567}},
            vector{letters.substr(0, 129), {0x00b05f48c39fe7a6, 0x8a3a702ec51310a0}},
            vector{letters.substr(0, 240), {0xbfea83123f56a0db, 0x0dd1e193b0edd023}},
            vector{letters.substr(0, 241), {0x4e7f58f06fa115db, 0xa21fae75fd43ac2c}},
            vector{letters, {0xf4e1111e8fbb289e, 0x4a463f132fb41f83}},
        };
        for (const auto& [text, hash] : vectors) {
            CAPTURE(text);
            CHECK(hash_of(text, secret) == hash);
        }
    }

    TEST_CASE("every bit of the seed changes the hash of every text") {
        const auto seed = counting_seed();
        const std::string_view text = "http://example.org/";
        const auto before = hash_of(text, hash_secret::from_seed(seed));
        for (std::size_t bit = 0; bit < 256; ++bit) {
            CAPTURE(bit);
            auto other = seed;
            other[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
            const auto after = hash_of(text, hash_secret::from_seed(other));
            CHECK(after.low != before.low);
            CHECK(after.high != before.high);
        }
    }

    TEST_CASE(
        "texts that differ in one character have hashes that differ in about half their bits") {
        const auto secret = hash_secret::from_seed(counting_seed());
        double flipped = 0;
        constexpr int pairs = 1000;
        for (int i = 0; i < pairs; ++i) {
            const auto text = "http://example.org/" + std::to_string(i);
            const auto a = hash_of(text + "a", secret);
            const auto b = hash_of(text + "b", secret);
            flipped += std::popcount(a.low ^ b.low) + std::popcount(a.high ^ b.high);
        }
        // 128,000 fair coins: one sigma is 179 of them.
        CHECK(flipped == doctest::Approx(64.0 * pairs).epsilon(0.015));
    }

    TEST_CASE("the hashes of URLs are uniform, in every part of both words and in both together") {
        // Eight views of 100,000 hashes, each of 256 cells: by chi-square, 4.5 sigma.
        const auto secret = hash_secret::from_seed(counting_seed());
        constexpr int texts = 100'000;
        std::array<std::array<double, 256>, 8> counts{};
        for (int i = 0; i < texts; ++i) {
            const auto hash = hash_of("http://example.org/" + std::to_string(i) + ".html", secret);
            ++counts[0][hash.low % 256];
            ++counts[1][hash.low >> 56];
            ++counts[2][hash.high % 256];
            ++counts[3][hash.high >> 56];
            ++counts[4][hash.low % 16 * 16 + hash.high % 16];
            ++counts[5][(hash.low >> 60) * 16 + (hash.high >> 60)];
            ++counts[6][hash.low % 16 * 16 + (hash.low >> 60)];
            ++counts[7][(hash.low ^ hash.high) >> 28 & 255];
        }
        for (std::size_t view = 0; view < counts.size(); ++view) {
            CAPTURE(view);
            double squares = 0;
            for (const auto count : counts[view]) {
                squares += (count - texts / 256.0) * (count - texts / 256.0) / (texts / 256.0);
            }
            CHECK(std::abs(squares - 255) < 4.5 * std::sqrt(2 * 255.0));
        }
    }

    TEST_CASE("a hash is its own bucket in a hash table") {
        CHECK(std::hash<key_hash>{}({.low = 7, .high = 9}) == 7);
        std::unordered_set<key_hash> set{{1, 2}, {1, 3}, {1, 2}};
        CHECK(set.size() == 2);
    }
}

}  // namespace reprise::filter
