// What asking all siblings at once costs beside asking one, and beside asking each.
//
// Digests have the default size (19 bits a key, 2 probes) and keys of their own. The baseline is a plain bit vector of
// the same size with the same places that ends at the first bit that is off; "each" asks as many of them one after the
// other, from hash to answer, and "each, hashed once" shares the places among them. All memory is in huge pages. Trials
// in turn; answers are compared before.

#include "filter/big_array.hpp"
#include "filter/indices.hpp"
#include "filter/sibling_index.hpp"
#include "tools/bench_filter/subjects.hpp"

#include <cstdio>
#include <random>
#include <stdexcept>

namespace reprise::bench {

namespace {

using namespace filter;

constexpr unsigned bits_for_a_key = 19;
constexpr unsigned probes = 2;

/// A digest as it would be without an index.
class plain_digest {
public:
    explicit plain_digest(bloom_size size) : size_{size}, words_((size.bits + 63) / 64) {}

    using places = std::array<std::uint64_t, probes>;
    [[nodiscard]] places places_of(key_hash key) const noexcept {
        places out{};
        indices next{key, size_.bits};
        std::generate(out.begin(), out.end(), [&] { return next.next(); });
        return out;
    }
    void insert(key_hash key) noexcept {
        for (const auto place : places_of(key)) {
            words_[place / 64] |= std::uint64_t{1} << (place % 64);
        }
    }
    [[nodiscard]] bool may_contain(key_hash key) const noexcept {
        indices next{key, size_.bits};
        for (unsigned probe = 0; probe < probes; ++probe) {
            if (!is_on(next.next())) {
                return false;
            }
        }
        return true;
    }
    [[nodiscard]] bool is_on(std::uint64_t place) const noexcept {
        return (words_[place / 64] >> (place % 64) & 1) != 0;
    }
    [[nodiscard]] std::span<const std::uint64_t> words() const noexcept {
        return {words_.begin(), words_.size()};
    }

private:
    bloom_size size_;
    big_array<std::uint64_t> words_;
};

/// One bit for each digest for which `holds` is true.
template <class Holds>
std::uint64_t mask_of(const std::vector<plain_digest>& digests, Holds holds) {
    std::uint64_t mask = 0;
    for (std::size_t s = 0; s < digests.size(); ++s) {
        mask |= std::uint64_t{holds(digests[s])} << s;
    }
    return mask;
}

void compare(sibling_index& index, const std::vector<plain_digest>& digests, std::uint64_t keys) {
    sibling_index::reader reader{index};
    std::vector<key_hash> absent;
    for (std::uint64_t i = 0; i < std::clamp<std::uint64_t>(keys, 1'000'000, 4'000'000); ++i) {
        absent.push_back(nth_key(2, i));
    }
    const auto each = [&](key_hash key) {
        return mask_of(digests, [&](const auto& one) { return one.may_contain(key); });
    };
    const auto hashed_once = [&](key_hash key) {
        const auto places = digests[0].places_of(key);
        return mask_of(digests, [&](const auto& one) {
            return std::all_of(
                places.begin(), places.end(), [&](auto place) { return one.is_on(place); });
        });
    };
    for (std::size_t i = 0; i < 10'000; ++i) {
        if (reader.may_hold(absent[i]) != each(absent[i])) {
            throw std::runtime_error{"a sibling index gives a wrong answer"};
        }
    }
    const std::span all{absent};
    const auto fewer = all.first(all.size() / 10);  // of what takes ten times as long
    const auto one = [&](key_hash key) { return std::uint64_t{digests[0].may_contain(key)}; };
    const auto at_once = [&](key_hash key) { return reader.may_hold(key); };
    std::array<std::array<double, trials>, 4> taken{};
    for (std::size_t trial = 0; trial < trials; ++trial) {
        taken[0][trial] = overlapped_ns(all, one);
        taken[1][trial] = overlapped_ns(all, at_once);
        taken[2][trial] = overlapped_ns(fewer, each);
        taken[3][trial] = overlapped_ns(fewer, hashed_once);
    }
    std::array<double, 4> ns{};
    std::transform(taken.begin(), taken.end(), ns.begin(), middle_mean);
    std::printf("| %zu | %.1f | %.1f | %.1f | %.2f | %.0f | 1/%.1f | 1/%.1f |\n",
                digests.size(),
                static_cast<double>(index.bytes()) / 1e6,
                ns[0],
                ns[1],
                ns[1] / ns[0],
                ns[2],
                ns[2] / ns[1],
                ns[3] / ns[1]);
    std::fflush(stdout);
}

}  // namespace

void compare_siblings(std::uint64_t keys) {
    std::printf("Siblings asked at once.\n\n"
                "| siblings | index, MB | one digest, ns | index, ns | index / one | each, ns | "
                "index / each | index / each, hashed once |\n"
                "|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    const bloom_size size{.bits = keys * bits_for_a_key, .probes = probes};
    sibling_index index;
    std::vector<plain_digest> digests;
    for (unsigned sibling = 0; sibling < sibling_index::capacity; ++sibling) {
        auto& digest = digests.emplace_back(size);
        for (std::uint64_t i = 0; i < keys; ++i) {
            digest.insert(nth_key(100 + sibling, i));
        }
        index.put(sibling, size, digest.words());
        const auto siblings = sibling + 1;
        if (siblings == 1 || siblings == 8 || siblings == 16 || siblings == 32 || siblings == 64) {
            compare(index, digests, keys);
        }
    }
    const auto put = seconds([&] { index.put(0, size, digests[0].words()); });
    // One key in a hundred left and one came: up to two places each.
    std::mt19937_64 random{99};
    std::vector<std::uint64_t> places(keys / 25);
    std::generate(places.begin(), places.end(), [&] { return random() % size.bits; });
    std::sort(places.begin(), places.end());
    bool flipped = false;
    const auto flip = seconds([&] { flipped = index.flip(0, size, places); });
    std::printf("\nOf 64 siblings one is replaced whole in %.2f ms, by a delta of %zu places in "
                "%.3f ms%s.\n\n",
                put * 1e3,
                places.size(),
                flip * 1e3,
                flipped ? "" : " (refused)");
}

}  // namespace reprise::bench
