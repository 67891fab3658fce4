#include "filter/indices.hpp"
#include "filter/sibling_index.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace reprise::filter {

using test::nth_key;

namespace {

constexpr bloom_size narrow{.bits = 1'900, .probes = 2};
constexpr std::uint64_t keys = 100;  // of each sibling

void insert(std::vector<std::uint64_t>& words, bloom_size size, key_hash key) {
    indices places{key, size.bits};
    for (unsigned probe = 0; probe < size.probes; ++probe) {
        const auto place = places.next();
        words[place / 64] |= std::uint64_t{1} << (place % 64);
    }
}

/// The digest of the first keys of a family.
std::vector<std::uint64_t> digest_of(std::uint64_t family, bloom_size size = narrow) {
    std::vector<std::uint64_t> words((size.bits + 63) / 64);
    for (std::uint64_t i = 0; i < keys; ++i) {
        insert(words, size, nth_key(family, i));
    }
    return words;
}

bool may_contain(const std::vector<std::uint64_t>& words, bloom_size size, key_hash key) {
    std::vector<std::uint64_t> only(words.size());
    insert(only, size, key);
    for (std::size_t i = 0; i < words.size(); ++i) {
        if ((only[i] & ~words[i]) != 0) {
            return false;
        }
    }
    return true;
}

/// Where two digests differ: a delta's places.
std::vector<std::uint64_t> places_between(const std::vector<std::uint64_t>& one,
                                          const std::vector<std::uint64_t>& other) {
    std::vector<std::uint64_t> places;
    for (std::uint64_t place = 0; place < one.size() * 64; ++place) {
        if (((one[place / 64] ^ other[place / 64]) >> (place % 64) & 1) != 0) {
            places.push_back(place);
        }
    }
    return places;
}

}  // namespace

TEST_SUITE("filter/sibling_index") {
    TEST_CASE("an index without siblings answers that none may hold anything") {
        sibling_index index;
        sibling_index::reader reader{index};
        CHECK(reader.may_hold(nth_key(1, 1)) == 0);
        CHECK(index.siblings() == 0);
        CHECK(index.groups() == 0);
        CHECK(index.bytes() == 0);
        CHECK(index.words_of(5).empty());
        CHECK(!index.size_of(5));
    }

    TEST_CASE(
        "each bit of an answer is what the sibling's own digest says, for any number of them") {
        sibling_index index;
        sibling_index::reader reader{index};
        std::vector<std::vector<std::uint64_t>> digests;
        for (unsigned sibling = 0; sibling < sibling_index::capacity; ++sibling) {
            CAPTURE(sibling);
            digests.push_back(digest_of(sibling));
            index.put(sibling, narrow, digests.back());
            unsigned wrong = 0;
            for (std::uint64_t i = 0; i < 50; ++i) {
                for (const auto family : {std::uint64_t{sibling} / 2, std::uint64_t{1'000}}) {
                    const auto key = nth_key(family, i);
                    sibling_mask expected = 0;
                    for (unsigned s = 0; s < digests.size(); ++s) {
                        expected |= sibling_mask{may_contain(digests[s], narrow, key)} << s;
                    }
                    wrong += reader.may_hold(key) == expected ? 0 : 1;
                }
            }
            CHECK(wrong == 0);
        }
        CHECK(index.siblings() == UINT64_MAX);
        CHECK(index.groups() == 1);
    }

    TEST_CASE("a digest comes back as it was put, bits past its end off") {
        sibling_index index;
        for (const std::uint64_t bits : {1, 63, 64, 65, 1'900}) {
            CAPTURE(bits);
            const bloom_size size{.bits = bits, .probes = 3};
            const auto words = digest_of(7, size);
            auto dirty = words;
            if (bits % 64 != 0) {
                dirty.back() |= ~std::uint64_t{0} << (bits % 64);
            }
            index.put(3, size, dirty);
            CHECK(index.words_of(3) == words);
            CHECK(index.size_of(3) == size);
        }
    }

    TEST_CASE("siblings whose numbers meet in a narrow row get a wider one") {
        sibling_index index;
        index.put(1, narrow, digest_of(1));
        CHECK(index.bytes_with(33, narrow) == narrow.bits * 8);
        index.put(33, narrow, digest_of(33));
        CHECK(index.bytes() == narrow.bits * 8);
        CHECK(index.words_of(1) == digest_of(1));
        CHECK(index.words_of(33) == digest_of(33));
        sibling_index::reader reader{index};
        CHECK((reader.may_hold(nth_key(1, 0)) >> 1 & 1) == 1);
        CHECK((reader.may_hold(nth_key(33, 0)) >> 33 & 1) == 1);
    }

    TEST_CASE("rows are as wide as their siblings need, and 64 take eight bytes a bit") {
        sibling_index index;
        for (unsigned sibling = 0; sibling < 64; ++sibling) {
            CAPTURE(sibling);
            const auto told = index.bytes_with(sibling, narrow);
            index.put(sibling, narrow, digest_of(sibling));
            CHECK(index.bytes() == told);
            CHECK(index.bytes_with(sibling, narrow) == told);
            const auto slice = sibling < 8 ? 8 : sibling < 16 ? 16 : sibling < 32 ? 32 : 64;
            CHECK(index.bytes() == narrow.bits * slice / 8);
        }
    }

    TEST_CASE("siblings of any numbers keep their digests while rows are widened") {
        // Every third number, downwards: they meet modulo a slice before it is full.
        constexpr unsigned count = 40;
        const auto number = [](unsigned i) { return (190 - 3 * i) % 64; };
        sibling_index index;
        for (unsigned i = 0; i < count; ++i) {
            index.put(number(i), narrow, digest_of(i));
            for (unsigned before = 0; before <= i; ++before) {
                CAPTURE(i);
                CAPTURE(before);
                CHECK(index.words_of(number(before)) == digest_of(before));
            }
        }
        sibling_index::reader reader{index};
        for (unsigned i = 0; i < count; ++i) {
            CHECK((reader.may_hold(nth_key(i, 0)) >> number(i) & 1) == 1);
        }
    }

    TEST_CASE("a digest put again replaces the one before, in full tables and in others") {
        for (const unsigned siblings : {1, 8, 9, 40, 64}) {
            CAPTURE(siblings);
            sibling_index index;
            sibling_index::reader reader{index};
            for (unsigned sibling = 0; sibling < siblings; ++sibling) {
                index.put(sibling, narrow, digest_of(sibling));
            }
            const auto bytes = index.bytes();
            for (unsigned sibling = 0; sibling < siblings; ++sibling) {
                index.put(sibling, narrow, digest_of(100 + sibling));
            }
            (void)reader.may_hold(nth_key(1, 1));
            index.reclaim();
            CHECK(index.bytes() == bytes);
            for (unsigned sibling = 0; sibling < siblings; ++sibling) {
                CHECK(index.words_of(sibling) == digest_of(100 + sibling));
                CHECK((reader.may_hold(nth_key(100 + sibling, 5)) >> sibling & 1) == 1);
            }
        }
    }

    TEST_CASE("flipping the places of a delta makes the newer digest of the older") {
        sibling_index index;
        for (unsigned sibling = 0; sibling < 20; ++sibling) {
            index.put(sibling, narrow, digest_of(sibling));
        }
        const auto places = places_between(digest_of(13), digest_of(99));
        REQUIRE(index.flip(13, narrow, places));
        CHECK(index.words_of(13) == digest_of(99));
        CHECK(index.words_of(12) == digest_of(12));
        CHECK(index.words_of(14) == digest_of(14));
        sibling_index::reader reader{index};
        CHECK((reader.may_hold(nth_key(99, 0)) >> 13 & 1) == 1);
        REQUIRE(index.flip(13, narrow, places));
        CHECK(index.words_of(13) == digest_of(13));
    }

    TEST_CASE("a delta for another size, another sibling or places past the end changes nothing") {
        sibling_index index;
        index.put(1, narrow, digest_of(1));
        const std::vector<std::uint64_t> first{0};
        CHECK(!index.flip(2, narrow, first));
        CHECK(!index.flip(1, {.bits = narrow.bits + 1, .probes = 2}, first));
        CHECK(!index.flip(1, {.bits = narrow.bits, .probes = 3}, first));
        CHECK(!index.flip(1, narrow, std::vector<std::uint64_t>{0, narrow.bits}));
        CHECK(index.words_of(1) == digest_of(1));
        CHECK(index.flip(1, narrow, {}));
        CHECK(index.words_of(1) == digest_of(1));
    }

    TEST_CASE("digests of different sizes have groups of their own and one answer") {
        sibling_index index;
        sibling_index::reader reader{index};
        const std::array sizes{bloom_size{1'900, 2}, bloom_size{1'900, 3}, bloom_size{777, 2}};
        for (unsigned sibling = 0; sibling < 12; ++sibling) {
            const auto size = sizes[sibling % 3];
            index.put(sibling, size, digest_of(5, size));  // all of them hold the same keys
        }
        CHECK(index.groups() == 3);
        CHECK(index.bytes() == 1'900 + 1'900 + 777);
        for (std::uint64_t i = 0; i < keys; ++i) {
            CHECK(reader.may_hold(nth_key(5, i)) == 0xfff);
        }
    }

    TEST_CASE("a sibling whose digest changes its size changes its group, and empty groups go") {
        sibling_index index;
        sibling_index::reader reader{index};
        constexpr bloom_size larger{.bits = 3'800, .probes = 2};
        index.put(4, narrow, digest_of(4));
        index.put(9, narrow, digest_of(9));
        index.put(4, larger, digest_of(4, larger));
        CHECK(index.groups() == 2);
        CHECK(index.words_of(4) == digest_of(4, larger));
        CHECK((reader.may_hold(nth_key(4, 0)) >> 4 & 1) == 1);
        index.put(9, larger, digest_of(9, larger));
        CHECK(index.groups() == 1);
        CHECK(index.siblings() == (1U << 4 | 1U << 9));
        (void)reader.may_hold(nth_key(4, 0));
        index.reclaim();
        CHECK(index.bytes() == larger.bits);
    }

    TEST_CASE("a removed sibling is in no answer, and its column serves one that fits") {
        sibling_index index;
        sibling_index::reader reader{index};
        for (unsigned sibling = 0; sibling < 8; ++sibling) {
            index.put(sibling, narrow, digest_of(1));
        }
        CHECK(index.remove(3));
        CHECK(!index.remove(3));
        CHECK(index.siblings() == 0b1111'0111);
        CHECK(reader.may_hold(nth_key(1, 0)) == 0b1111'0111);
        CHECK(index.words_of(3).empty());
        index.put(59, narrow, digest_of(2));
        CHECK(index.bytes() == narrow.bits);
        CHECK(index.words_of(59) == digest_of(2));
        for (const unsigned sibling : {0, 1, 2, 4, 5, 6, 7, 59}) {
            CHECK(index.remove(sibling));
        }
        CHECK(index.groups() == 0);
        CHECK(reader.may_hold(nth_key(1, 0)) == 0);
    }

    TEST_CASE("a reader keeps a group that went until its next look-up, its rest or its end") {
        sibling_index index;
        sibling_index::reader asks{index};
        sibling_index::reader rests{index};
        {
            const auto ends = std::make_unique<sibling_index::reader>(index);
            index.put(1, narrow, digest_of(1));
            for (auto* reader : {&asks, &rests, ends.get()}) {
                CHECK(reader->may_hold(nth_key(1, 0)) == 2);
            }
            index.remove(1);
            CHECK(index.bytes() == narrow.bits);
            CHECK(asks.may_hold(nth_key(1, 0)) == 0);
            rests.rest();
            index.reclaim();
            CHECK(index.bytes() == narrow.bits);
        }
        CHECK(index.bytes() == 0);
        index.put(1, narrow, digest_of(1));
        CHECK(rests.may_hold(nth_key(1, 0)) == 2);
    }

    // As many changes as it takes for readers to have asked in between.
    TEST_CASE("a key of the digest that goes and of the one that comes is found all the while") {
        constexpr bloom_size size{.bits = 128, .probes = 2};
        const auto both = nth_key(2, 2);
        for (const unsigned others : {0, 7, 63}) {
            CAPTURE(others);
            std::array<std::vector<std::uint64_t>, 2> digests;
            for (auto& words : digests) {
                words.resize(2);
                insert(words, size, both);
                for (std::uint64_t i = 0; i < 20; ++i) {
                    insert(words, size, nth_key(&words == digests.data() ? 3 : 4, i));
                }
            }
            const auto delta = places_between(digests[0], digests[1]);
            REQUIRE(delta.size() > 10);

            sibling_index index;
            for (unsigned sibling = 0; sibling <= others; ++sibling) {
                index.put(sibling, size, digests[0]);
            }
            const auto all = UINT64_MAX >> (63 - others);
            std::atomic<bool> done{false};
            std::atomic<std::uint64_t> asked{0};
            std::atomic<std::uint64_t> lost{0};
            std::vector<std::jthread> readers;
            for (int thread = 0; thread < 2; ++thread) {
                readers.emplace_back([&] {
                    sibling_index::reader reader{index};
                    while (!done.load(std::memory_order_relaxed)) {
                        lost += reader.may_hold(both) != all ? 1 : 0;
                        asked.fetch_add(1, std::memory_order_relaxed);
                    }
                });
            }
            for (unsigned round = 0; round < 10'000 || asked < 2'000; ++round) {
                index.put(0, size, digests[(round + 1) % 2]);
                REQUIRE(index.flip(0, size, delta));
            }
            done = true;
            readers.clear();
            CHECK(lost == 0);
        }
    }

    // Two digests such that one key has one place in each: neither says yes to it, and only a
    // mixture of the two can. Few bits: the sooner a digest is written after the view has changed,
    // the more readers are still in the view before; and places at either end, so that a mixture
    // lasts as long as it can. Sibling 1 keeps the table while the column has no owner.
    TEST_CASE("a column that changes hands is never taken for its last owner's") {
        constexpr bloom_size size{.bits = 128, .probes = 2};
        const auto torn = [&] {
            for (std::uint64_t i = 0;; ++i) {
                indices places{nth_key(1, i), size.bits};
                if (places.next() < 10 && places.next() > 117) {
                    return nth_key(1, i);
                }
            }
        }();
        indices places{torn, size.bits};
        std::array<std::vector<std::uint64_t>, 2> digests;
        for (auto& words : digests) {
            words.resize(2);
            const auto place = places.next();
            words[place / 64] |= std::uint64_t{1} << (place % 64);
            REQUIRE(!may_contain(words, size, torn));
        }
        sibling_index index;
        index.put(1, size, digests[0]);
        std::atomic<bool> done{false};
        std::atomic<std::uint64_t> asked{0};
        std::atomic<std::uint64_t> mixtures{0};
        std::vector<std::jthread> readers;
        for (int thread = 0; thread < 2; ++thread) {
            readers.emplace_back([&] {
                sibling_index::reader reader{index};
                while (!done.load(std::memory_order_relaxed)) {
                    mixtures += reader.may_hold(torn) != 0 ? 1 : 0;
                    asked.fetch_add(1, std::memory_order_relaxed);
                }
            });
        }
        for (unsigned round = 0; round < 10'000 || asked < 2'000; ++round) {
            const unsigned owner = round % 8 * 8;  // all in one column
            index.put(owner, size, digests[round % 2]);
            REQUIRE(index.bytes_with(owner, size) == size.bits);
            index.remove(owner);
        }
        done = true;
        readers.clear();
        CHECK(mixtures == 0);
    }

    TEST_CASE("a sibling is never without a digest while one of another size replaces it") {
        sibling_index index;
        index.put(5, narrow, digest_of(1));
        std::atomic<bool> done{false};
        std::atomic<std::uint64_t> asked{0};
        std::atomic<std::uint64_t> without{0};
        std::thread asks{[&] {
            sibling_index::reader reader{index};
            while (!done.load(std::memory_order_relaxed)) {
                without += reader.may_hold(nth_key(1, 0)) == 0 ? 1 : 0;
                asked.fetch_add(1, std::memory_order_relaxed);
            }
        }};
        for (unsigned round = 0; round < 100 || asked < 1'000; ++round) {
            // Never the size it has, which is written over in place.
            const bloom_size size{.bits = narrow.bits + (round + 1) % 2, .probes = narrow.probes};
            index.put(5, size, digest_of(1, size));
        }
        done = true;
        asks.join();
        CHECK(without == 0);
    }

    TEST_CASE(
        "writers and readers of several threads, with groups that come and go, lose nothing") {
        sibling_index index;
        std::atomic<std::uint64_t> asked{0};
        std::atomic<bool> done{false};
        std::atomic<std::uint64_t> strange{0};
        std::vector<std::jthread> threads;
        for (unsigned writer = 0; writer < 2; ++writer) {
            threads.emplace_back([&, writer] {
                for (unsigned round = 0; round < 300 || asked < 500; ++round) {
                    const bloom_size size{.bits = 200 + round % 5 * 100, .probes = 2};
                    const auto sibling = writer * 20 + round % 20;
                    index.put(sibling, size, digest_of(sibling, size));
                    if (round % 7 == 0) {
                        index.remove(sibling);
                    }
                }
                done = true;
            });
        }
        for (unsigned reader = 0; reader < 2; ++reader) {
            threads.emplace_back([&] {
                sibling_index::reader asks{index};
                for (std::uint64_t i = 0; !done; ++i) {
                    const auto family = i % 40;
                    const auto holders = asks.may_hold(nth_key(family, i % keys));
                    strange += holders >> 40 != 0 ? 1 : 0;
                    if (i % 100 == 0) {
                        asks.rest();
                    }
                    asked.fetch_add(1, std::memory_order_relaxed);
                }
            });
        }
        threads.clear();
        CHECK(strange == 0);
        sibling_index::reader last{index};
        for (unsigned sibling = 0; sibling < 40; ++sibling) {
            if ((index.siblings() >> sibling & 1) != 0) {
                CHECK((last.may_hold(nth_key(sibling, 0)) >> sibling & 1) == 1);
            }
        }
    }
}

}  // namespace reprise::filter
