// Every filter of the library lives a long life beside an exact model of what it holds.
//
//   soak_filters [operations] [seed]
//
// The operations (10^8 unless told) are divided among the filters: keys come, are asked for, leave
// where the filter lets them; filters are united, folded and cleared. The model is an array of
// counts, one a key of a fixed universe. What a filter's contract rules out (a key denied that it
// holds, an erase that failed, a published bit that differs) is counted, and one such ends the
// program with 1. Beside it stands how often strangers were taken for known, which is allowed.

#include "filter/aging.hpp"
#include "filter/bit_changes.hpp"
#include "filter/bloom.hpp"
#include "filter/counting.hpp"
#include "filter/layered.hpp"
#include "filter/partitioned.hpp"
#include "filter/scalable.hpp"
#include "filter/split_block.hpp"
#include "filter/squid_source.hpp"
#include "filter/stamped.hpp"
#include "filter/standard.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace {

using namespace reprise::filter;

constexpr std::uint64_t universe = 1 << 17;
constexpr std::uint64_t capacity = universe / 2;  ///< keys that each filter is made for
constexpr double rate = 0.01;

/// SplitMix64's finaliser (Steele, Lea, Flood 2014).
constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/// The hash of key `number` in generation `life`, each of which has keys of its own.
key_hash hash_of(std::uint64_t life, std::uint64_t number) noexcept {
    const auto low = mixed((life << 32 | number) + 0x9e3779b97f4a7c15);
    return {.low = low, .high = mixed(low + 0x9e3779b97f4a7c15)};
}

squid_key squid_key_for(key_hash hash) noexcept {
    squid_key key;
    std::memcpy(key.data(), &hash.low, 8);
    std::memcpy(key.data() + 8, &hash.high, 8);
    return key;
}

/// One filter's account.
struct account {
    const char* name;
    std::uint64_t operations = 0;
    std::uint64_t broken = 0;     ///< promises
    std::uint64_t strangers = 0;  ///< asked for while not inside
    std::uint64_t mistaken = 0;   ///< of those, taken for known

    /// Notes an answer about a key that is (or is not) inside.
    void judge(bool inside, bool answer) noexcept {
        ++operations;
        if (inside) {
            broken += answer ? 0 : 1;
        } else {
            ++strangers;
            mistaken += answer ? 1 : 0;
        }
    }
    void expect(bool kept) noexcept { broken += kept ? 0 : 1; }
};

/// Where operations come from: cheap, and the same for a seed.
class dice {
public:
    explicit dice(std::uint64_t seed) : state_{seed} {}
    std::uint64_t below(std::uint64_t limit) noexcept {
        return (mixed(state_ += 0x9e3779b97f4a7c15) >> 32) * limit >> 32;
    }

private:
    std::uint64_t state_;
};

/// Filters that only take keys, until all is cleared. `make()` makes an empty one.
template <class Make>
account soak_set(const char* name, std::uint64_t operations, std::uint64_t seed, Make make) {
    account out{.name = name};
    dice random{seed};
    auto filter = make();
    std::vector<bool> inside(universe);
    std::uint64_t life = 0;
    std::uint64_t held = 0;
    const auto insert = [&](auto& into, std::uint64_t key) {
        into.insert(hash_of(life, key));
        held += inside[key] ? 0 : 1;
        inside[key] = true;
        ++out.operations;
    };
    const auto ask_all = [&](const auto& of) {
        for (std::uint64_t key = 0; key < universe; ++key) {
            out.judge(inside[key], of.may_contain(hash_of(life, key)));
        }
    };
    while (out.operations < operations) {
        if (held < capacity) {
            const auto key = random.below(universe);
            if (random.below(2) == 0) {
                insert(filter, key);
            } else {
                out.judge(inside[key], filter.may_contain(hash_of(life, key)));
            }
            continue;
        }
        // Full: all is asked for, then it ends in one of several ways.
        ask_all(filter);
        if constexpr (requires { filter.unite(filter); }) {
            auto other = make();
            for (int i = 0; i < 1'000; ++i) {
                insert(other, random.below(universe));
            }
            out.expect(filter.unite(other).has_value());
            ask_all(filter);
        }
        if constexpr (requires { filter.folded(); }) {
            // It takes more strangers for known than it was made for, so only the others count.
            if (const auto folded = filter.folded()) {
                for (std::uint64_t key = 0; key < universe; ++key) {
                    out.expect(!inside[key] || folded->may_contain(hash_of(life, key)));
                    ++out.operations;
                }
            }
        }
        if (random.below(2) == 0) {
            filter.clear();
        } else {
            filter = make();
        }
        inside.assign(universe, false);
        held = 0;
        ++life;
    }
    return out;
}

/// Filters that keys leave again. `key_of` makes what the filter is asked with; `check` compares
/// what the filter keeps or publishes with the model, now and then.
template <class Filter, class KeyOf, class Check>
account soak_counting(const char* name,
                      std::uint64_t operations,
                      std::uint64_t seed,
                      Filter& filter,
                      KeyOf key_of,
                      Check check) {
    account out{.name = name};
    dice random{seed};
    std::vector<std::uint8_t> times(universe);
    std::uint64_t held = 0;
    for (std::uint64_t step = 0; out.operations < operations; ++step) {
        const auto number = random.below(universe);
        const auto key = key_of(number);
        auto& count = times[number];
        const auto what = random.below(10);
        if (what < 4 && held < capacity && count < 3) {
            filter.insert(key);
            ++count;
            ++held;
            ++out.operations;
        } else if (what < 7 && count > 0) {
            out.expect(filter.erase(key));
            --count;
            --held;
            ++out.operations;
        } else {
            const bool answer = filter.may_contain(key);
            out.judge(count > 0, answer);
            if (!answer && what == 9) {
                out.expect(!filter.erase(key));
                ++out.operations;
            }
        }
        if (step % (1 << 20) == (1 << 20) - 1) {
            for (std::uint64_t other = 0; other < universe; ++other) {
                out.judge(times[other] > 0, filter.may_contain(key_of(other)));
            }
            out.expect(check(times));
        }
    }
    return out;
}

/// A counting filter with the bits that its owner would publish.
class followed {
public:
    explicit followed(bloom_size size) : filter_{size}, bits_{size} {}

    void insert(key_hash key) {
        filter_.insert(key, [this](std::uint64_t place) { bits_.turn(place); });
    }
    bool erase(key_hash key) {
        return filter_.erase(key, [this](std::uint64_t place) { bits_.turn(place); });
    }
    [[nodiscard]] bool may_contain(key_hash key) const { return filter_.may_contain(key); }

    /// Counters and published bits equal those of a filter made of the model's keys.
    bool equals(const std::vector<std::uint8_t>& times) {
        counting_bloom expected{filter_.size()};
        for (std::uint64_t key = 0; key < universe; ++key) {
            for (unsigned i = 0; i < times[key]; ++i) {
                expected.insert(hash_of(0, key));
            }
        }
        const auto published = bits_.publish();
        if (filter_.stuck() > 0) {  // then more may be on, never less
            auto both = published;
            return both.unite(expected.snapshot()).has_value() && both == published;
        }
        return filter_ == expected && published == expected.snapshot();
    }

private:
    counting_bloom filter_;
    bit_changes bits_;
};

/// Filters that forget: a key is known while fewer than `remembered` others came after it.
template <class Filter>
account soak_aging(const char* name,
                   std::uint64_t operations,
                   std::uint64_t seed,
                   Filter filter,
                   std::uint64_t remembered) {
    account out{.name = name};
    dice random{seed};
    constexpr std::uint64_t never = 0;
    std::vector<std::uint64_t> last(universe, never);  // when inserted, counted in inserts
    std::uint64_t now = 0;
    while (out.operations < operations) {
        const auto number = random.below(universe);
        const auto key = hash_of(0, number);
        if (random.below(2) == 0) {
            filter.insert(key);
            last[number] = ++now;
            ++out.operations;
        } else if (last[number] != never) {
            // What was forgotten is no stranger of whom a rate could be told.
            const bool must_be_known = now - last[number] < remembered;
            out.expect(!must_be_known || filter.may_contain(key));
            ++out.operations;
        } else {
            out.judge(false, filter.may_contain(key));
        }
    }
    return out;
}

/// Generations begin at any time, and are swept in pieces of any size.
account soak_stamped(std::uint64_t operations, std::uint64_t seed, bloom_size size) {
    account out{.name = "stamped"};
    dice random{seed};
    stamped_bloom filter{size};
    bit_changes told{size};
    const auto turn = [&](std::uint64_t place) { told.turn(place); };
    constexpr std::uint64_t never = UINT64_MAX;
    std::vector<std::uint64_t> written(universe, never);  // in which generation
    std::uint64_t now = 0;
    while (out.operations < operations) {
        const auto number = random.below(universe);
        const auto key = hash_of(0, number);
        const auto what = random.below(capacity / 5);
        if (what == 0) {
            filter.advance(turn);
            ++now;
            out.expect(told.publish() == filter.snapshot());
        } else if (what < 100) {
            filter.sweep(random.below(10'000), turn);
        } else if (what % 2 == 0) {
            filter.insert(key, turn);
            written[number] = now;
        } else if (written[number] == never) {
            out.judge(false, filter.may_contain(key));
            continue;
        } else if (now - written[number] < filter.generations()) {
            out.expect(filter.may_contain(key));
        }
        ++out.operations;
    }
    return out;
}

account soak_layered(std::uint64_t operations, std::uint64_t seed) {
    account out{.name = "layered"};
    dice random{seed};
    const auto blocks = blocks_for(capacity, rate);
    constexpr std::size_t layers = 3;
    const auto make = [&] {
        std::vector<split_block_bloom> each(layers, split_block_bloom{blocks});
        return layered_filter<split_block_bloom>{std::move(each)};
    };
    auto filter = make();
    std::vector<std::uint8_t> sights(universe);
    std::uint64_t noted = 0;
    for (std::uint64_t life = 0; out.operations < operations; ++out.operations) {
        const auto number = random.below(universe);
        const auto known = std::min<std::size_t>(sights[number], layers);
        const bool note = random.below(2) == 0;
        const auto key = hash_of(life, number);
        const auto count = note ? filter.note(key) : filter.count(key);
        out.expect(count >= known);
        out.strangers += known == 0 ? 1 : 0;
        out.mistaken += known == 0 && count > 0 ? 1 : 0;
        if (note) {
            sights[number] = static_cast<std::uint8_t>(std::min<std::size_t>(known + 1, layers));
            if (++noted == capacity) {
                filter.clear();
                sights.assign(universe, 0);
                noted = 0;
                ++life;
            }
        }
    }
    return out;
}

std::vector<account> soak_all(std::uint64_t operations, std::uint64_t seed) {
    constexpr std::uint64_t kinds = 11;
    const auto share = operations / kinds + 1;
    const auto even = [](bloom_size size) {  // so that it folds
        return bloom_size{(size.bits + 2 * size.probes - 1) / (2 * size.probes) * 2 * size.probes,
                          size.probes};
    };
    const auto classic = even(classic_size(capacity, rate));
    const auto parts = even(partitioned_size(capacity, rate));
    const auto blocks = blocks_for(capacity, rate);
    const auto split = split_blocks_for(capacity, rate) / 2 * 2 + 2;

    std::vector<account> out;
    out.push_back(soak_set("standard", share, seed, [&] { return standard_bloom{classic}; }));
    out.push_back(soak_set("partitioned", share, seed, [&] { return partitioned_bloom{parts}; }));
    out.push_back(soak_set("blocked", share, seed, [&] { return blocked_bloom{blocks}; }));
    out.push_back(soak_set("split-block", share, seed, [&] { return split_block_bloom{split}; }));
    out.push_back(soak_set("scalable", share, seed, [&] {
        return scalable_filter<standard_bloom>{
            {.first_keys = 1'000, .rate = rate},
            [](std::uint64_t keys, double of) { return standard_bloom{classic_size(keys, of)}; }};
    }));

    followed counting{classic};
    out.push_back(soak_counting(
        "counting",
        share,
        seed,
        counting,
        [](std::uint64_t key) { return hash_of(0, key); },
        [&](const auto& times) { return counting.equals(times); }));
    squid_source squid{{.capacity = static_cast<std::uint32_t>(capacity), .bits_per_entry = 10}};
    out.push_back(soak_counting(
        "Squid's source",
        share,
        seed,
        squid,
        [](std::uint64_t key) { return squid_key_for(hash_of(0, key)); },
        [&](const std::vector<std::uint8_t>& times) {
            std::uint64_t held = 0;
            for (const auto count : times) {
                held += count;
            }
            return squid.keys() == held;
        }));

    out.push_back(soak_aging("double buffer",
                             share,
                             seed,
                             double_buffer<standard_bloom>{capacity / 2, classic},
                             capacity / 4));
    out.push_back(soak_aging("two active",
                             share,
                             seed,
                             two_active_buffers<standard_bloom>{capacity / 2, classic},
                             capacity / 2));
    out.push_back(soak_stamped(share, seed, classic));
    out.push_back(soak_layered(share, seed));
    return out;
}

}  // namespace

int main(int count, char** arguments) {
    const std::uint64_t operations = count > 1 ? std::strtoull(arguments[1], nullptr, 10)
                                               : 100'000'000;
    const std::uint64_t seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
    if (operations == 0) {
        std::fprintf(stderr, "soak_filters: operations must be a number above 0\n");
        return 2;
    }
    const auto begun = std::chrono::steady_clock::now();
    std::uint64_t done = 0;
    std::uint64_t broken = 0;
    std::printf(
        "%-15s %12s %8s %12s %10s\n", "filter", "operations", "broken", "strangers", "mistaken");
    for (const auto& one : soak_all(operations, seed)) {
        std::printf("%-15s %12llu %8llu %12llu %9.3f%%\n",
                    one.name,
                    static_cast<unsigned long long>(one.operations),
                    static_cast<unsigned long long>(one.broken),
                    static_cast<unsigned long long>(one.strangers),
                    100.0 * static_cast<double>(one.mistaken) /
                        static_cast<double>(std::max<std::uint64_t>(1, one.strangers)));
        done += one.operations;
        broken += one.broken;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    std::printf("%llu operations, %llu promises broken, seed %llu, %.1f s\n",
                static_cast<unsigned long long>(done),
                static_cast<unsigned long long>(broken),
                static_cast<unsigned long long>(seed),
                took.count());
    return broken == 0 ? 0 : 1;
}
