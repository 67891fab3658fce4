// What asking all siblings at once costs beside asking one, and beside asking each.
//
//     bench_sibling_index                    10^5, 10^6 and 10^7 keys a digest
//     bench_sibling_index 100000 1000000     so many
//
// Digests have the default size (19 bits a key, 2 probes) and keys of their own. The baseline is a
// plain bit vector of the same size with the same places that ends at the first bit that is off;
// "each" asks as many of them one after the other, from hash to answer, and "each, hashed once"
// shares the places among them. All memory is in huge pages. Ten trials of each in turn, the two
// best and two worst dropped, means of the rest; answers are compared before.
//
// Look-ups follow one another, and overlap as far as the processor lets them, the baseline's too.

#include "filter/big_array.hpp"
#include "filter/indices.hpp"
#include "filter/sibling_index.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace {

namespace filter = reprise::filter;
using filter::key_hash;

constexpr unsigned bits_a_key = 19;
constexpr unsigned probes = 2;
constexpr std::size_t trials = 10;
constexpr std::size_t dropped = 2;  // at either end

/// A digest as it would be without an index.
class plain_digest {
public:
    explicit plain_digest(filter::bloom_size size) : size_{size}, words_((size.bits + 63) / 64) {}

    void insert(key_hash key) noexcept {
        filter::indices places{key, size_.bits};
        for (unsigned probe = 0; probe < size_.probes; ++probe) {
            const auto place = places.next();
            words_[place / 64] |= std::uint64_t{1} << (place % 64);
        }
    }

    [[nodiscard]] bool may_contain(key_hash key) const noexcept {
        filter::indices places{key, size_.bits};
        for (unsigned probe = 0; probe < size_.probes; ++probe) {
            if (!is_on(places.next())) {
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
    filter::bloom_size size_;
    filter::big_array<std::uint64_t> words_;
};

/// Keys as uniform as hashes; families do not meet.
std::vector<key_hash> random_keys(std::uint64_t family, std::size_t count) {
    std::mt19937_64 random{family};
    std::vector<key_hash> keys(count);
    for (auto& key : keys) {
        key = {.low = random(), .high = random()};
    }
    return keys;
}

/// Keeps the optimiser from dropping what was computed for nothing else.
volatile std::uint64_t sunk = 0;
using lookup = std::function<double()>;  ///< one trial's nanoseconds a look-up

template <class Ask>
lookup timed(std::span<const key_hash> keys, Ask ask) {
    return [keys, ask] {
        const auto begin = std::chrono::steady_clock::now();
        std::uint64_t sum = 0;
        for (const auto key : keys) {
            sum += ask(key);
        }
        const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() -
                                                              begin;
        sunk = sunk + sum;
        return took.count() / static_cast<double>(keys.size());
    };
}

/// Each in turn, so that what else the machine does meets all alike.
std::vector<double> nanoseconds(const std::vector<lookup>& lookups) {
    std::vector<std::array<double, trials>> taken(lookups.size());
    for (const auto& each : lookups) {
        (void)each();  // warm
    }
    for (std::size_t trial = 0; trial < trials; ++trial) {
        for (std::size_t i = 0; i < lookups.size(); ++i) {
            taken[i][trial] = lookups[i]();
        }
    }
    std::vector<double> means;
    for (auto& each : taken) {
        std::sort(each.begin(), each.end());
        double sum = 0;
        for (std::size_t trial = dropped; trial < trials - dropped; ++trial) {
            sum += each[trial];
        }
        means.push_back(sum / (trials - 2 * dropped));
    }
    return means;
}

void compare(filter::sibling_index& index,
             const std::vector<plain_digest>& digests,
             filter::bloom_size size,
             std::uint64_t keys) {
    filter::sibling_index::reader reader{index};
    const auto strangers = random_keys(1'000'003,
                                       std::clamp<std::size_t>(keys, 1'000'000, 4'000'000));
    for (std::size_t i = 0; i < 10'000; ++i) {
        std::uint64_t expected = 0;
        for (std::size_t s = 0; s < digests.size(); ++s) {
            expected |= std::uint64_t{digests[s].may_contain(strangers[i])} << s;
        }
        if (reader.may_hold(strangers[i]) != expected) {
            std::fprintf(stderr, "bench_sibling_index: a wrong answer\n");
            std::exit(1);
        }
    }
    const std::span all{strangers};
    const auto fewer = all.first(all.size() / 10);  // of what takes ten times as long
    const std::vector<lookup> lookups{
        timed(all, [&digests](key_hash key) { return std::uint64_t{digests[0].may_contain(key)}; }),
        timed(all, [&reader](key_hash key) { return reader.may_hold(key); }),
        timed(fewer,
              [&digests](key_hash key) {
                  std::uint64_t mask = 0;
                  for (std::size_t s = 0; s < digests.size(); ++s) {
                      mask |= std::uint64_t{digests[s].may_contain(key)} << s;
                  }
                  return mask;
              }),
        timed(fewer, [&digests, size](key_hash key) {
            std::array<std::uint64_t, probes> places{};
            filter::indices next{key, size.bits};
            std::generate(places.begin(), places.end(), [&] { return next.next(); });
            std::uint64_t mask = 0;
            for (std::size_t s = 0; s < digests.size(); ++s) {
                mask |=
                    std::uint64_t{std::all_of(places.begin(),
                                              places.end(),
                                              [&](auto place) { return digests[s].is_on(place); })}
                    << s;
            }
            return mask;
        })};
    const auto ns = nanoseconds(lookups);
    std::printf("| %llu | %zu | %.1f | %.1f | %.1f | %.2f | %.0f | 1/%.1f | 1/%.1f |\n",
                static_cast<unsigned long long>(keys),
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

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void bench(std::uint64_t keys) {
    const filter::bloom_size size{.bits = keys * bits_a_key, .probes = probes};
    filter::sibling_index index;
    std::vector<plain_digest> digests;
    for (unsigned sibling = 0; sibling < filter::sibling_index::capacity; ++sibling) {
        auto& digest = digests.emplace_back(size);
        std::mt19937_64 random{sibling};
        for (std::uint64_t i = 0; i < keys; ++i) {
            const auto low = random();
            digest.insert({.low = low, .high = random()});
        }
        index.put(sibling, size, digest.words());
        const auto siblings = sibling + 1;
        if (siblings == 1 || siblings == 8 || siblings == 16 || siblings == 32 || siblings == 64) {
            compare(index, digests, size, keys);
        }
    }

    auto begin = std::chrono::steady_clock::now();
    index.put(0, size, digests[0].words());
    const auto put = seconds_since(begin);
    // One key in a hundred left and one came: up to two places each.
    std::mt19937_64 random{99};
    std::vector<std::uint64_t> places(keys / 25);
    std::generate(places.begin(), places.end(), [&] { return random() % size.bits; });
    std::sort(places.begin(), places.end());
    begin = std::chrono::steady_clock::now();
    const bool flipped = index.flip(0, size, places);
    const auto flip = seconds_since(begin);
    std::fprintf(stderr,
                 "%llu keys, 64 siblings: replaced whole in %.2f ms, by a delta of %zu places in "
                 "%.3f ms%s\n",
                 static_cast<unsigned long long>(keys),
                 put * 1e3,
                 places.size(),
                 flip * 1e3,
                 flipped ? "" : " (refused)");
}

}  // namespace

int main(int count, char** arguments) {
    std::vector<std::uint64_t> sizes;
    for (int i = 1; i < count; ++i) {
        sizes.push_back(std::strtoull(arguments[i], nullptr, 10));
        if (sizes.back() == 0) {
            std::fprintf(stderr, "bench_sibling_index: keys must be a positive number\n");
            return 2;
        }
    }
    if (sizes.empty()) {
        sizes = {100'000, 1'000'000, 10'000'000};
    }
    std::printf("| keys | siblings | index, MB | one digest, ns | index, ns | index / one "
                "| each, ns | index / each | index / each, hashed once |\n"
                "|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for (const auto keys : sizes) {
        bench(keys);
    }
}
