// What else could tell which of 64 siblings may hold a key, beside filter/sibling_index: a spatial Bloom filter and a
// Bloomier filter, which have one table for all siblings, and compacted hashes, of which each sibling has a table.
//
// Each sibling holds as many keys; one in five of them is held by its neighbour too. Errors are counted, not computed:
// siblings named for a stranger, and for what is held how many of its holders are named, and how many others. Look-ups
// are of strangers (the usual miss) and of what is held, trials in turn with ours, so that only the ratio is worth
// reading. An update is one key of one sibling gone and one come, where that is possible at all; else the whole.

#include "filter/digest.hpp"
#include "filter/sibling_index.hpp"
#include "tools/alternatives/bloomier_filter.hpp"
#include "tools/alternatives/hash_compaction.hpp"
#include "tools/alternatives/spatial_filter.hpp"
#include "tools/bench_filter/subjects.hpp"

#include <bit>
#include <cmath>
#include <cstdio>
#include <optional>
#include <random>
#include <stdexcept>

namespace reprise::bench {

namespace {

using namespace filter;
using namespace alternatives;

constexpr unsigned count_of_siblings = sibling_index::capacity;

/// Who holds what.
class fleet_keys {
public:
    explicit fleet_keys(std::uint64_t each) : each_{each}, shared_{each / 5} {}

    /// Calls `visit(key)` for each key of a sibling: those of its own family, and the first of its neighbour's.
    template <class Visit>
    void for_each(unsigned sibling, Visit visit) const {
        for (std::uint64_t i = 0; i < each_ - shared_; ++i) {
            visit(nth_key(100 + sibling, i));
        }
        for (std::uint64_t i = 0; i < shared_; ++i) {
            visit(nth_key(100 + (sibling + 1) % count_of_siblings, i));
        }
    }
    [[nodiscard]] std::uint64_t of_all() const { return each_ * count_of_siblings; }
    [[nodiscard]] std::uint64_t distinct() const { return (each_ - shared_) * count_of_siblings; }

    struct held {
        key_hash key;
        sibling_mask holders;
    };
    /// Keys that are held, each as likely as the others.
    [[nodiscard]] std::vector<held> sample(std::size_t wanted) const {
        std::mt19937_64 random{7};
        std::vector<held> out;
        for (std::size_t n = 0; n < wanted; ++n) {
            const auto family = static_cast<unsigned>(random() % count_of_siblings);
            const auto i = random() % (each_ - shared_);
            auto holders = sibling_mask{1} << family;
            if (i < shared_) {
                holders |= sibling_mask{1} << (family + count_of_siblings - 1) % count_of_siblings;
            }
            out.push_back({nth_key(100 + family, i), holders});
        }
        return out;
    }

private:
    std::uint64_t each_;
    std::uint64_t shared_;
};

struct trial {
    const fleet_keys& keys;
    std::vector<fleet_keys::held> known;
    std::vector<key_hash> known_keys;
    std::vector<key_hash> strangers;
    sibling_index::reader& ours;

    trial(const fleet_keys& all, sibling_index::reader& first)
        : keys{all},
          known{all.sample(400'000)},
          ours{first} {
        for (const auto& one : known) {
            known_keys.push_back(one.key);
        }
        for (std::uint64_t i = 0; i < 1'000'000; ++i) {
            strangers.push_back(nth_key(2, i));
        }
    }
};

/// One line. `ask(key)` gives the siblings named; `bytes` are of the reader's memory, `travels` bits a key of a sibling.
template <class Ask>
void judge(const char* name,
           const trial& with,
           std::uint64_t bytes,
           double update_us,
           const char* update,
           double travels,
           std::size_t share_of_ring,
           const Ask& ask) {
    double in_vain = 0;
    for (const auto key : with.strangers) {
        in_vain += std::popcount(ask(key));
    }
    double any = 0, named = 0, holders = 0, others = 0;
    for (const auto& one : with.known) {
        const auto said = ask(one.key);
        any += (said & one.holders) != 0 ? 1 : 0;
        named += std::popcount(said & one.holders);
        holders += std::popcount(one.holders);
        others += std::popcount(said & ~one.holders);
    }
    const auto part = [&](const std::vector<key_hash>& ring) {
        return std::span{ring}.first(ring.size() / share_of_ring);
    };
    const auto first = [&](key_hash key) { return with.ours.may_hold(key); };
    std::array<std::array<double, trials>, 4> taken{};
    for (std::size_t i = 0; i < trials; ++i) {
        taken[0][i] = overlapped_ns(with.strangers, first);
        taken[1][i] = overlapped_ns(part(with.strangers), ask);
        taken[2][i] = overlapped_ns(with.known_keys, first);
        taken[3][i] = overlapped_ns(part(with.known_keys), ask);
    }
    std::array<double, 4> ns{};
    std::transform(taken.begin(), taken.end(), ns.begin(), middle_mean);
    const auto known = static_cast<double>(with.known.size());
    std::printf("| %s | %.1f | %.2f | %.2f | %.3f | %.2f %% | %.1f %% | %.3f | %.3g%s | %.1f |\n",
                name,
                8 * static_cast<double>(bytes) / static_cast<double>(with.keys.of_all()),
                ns[1] / ns[0],
                ns[3] / ns[2],
                in_vain / static_cast<double>(with.strangers.size()),
                100 * any / known,
                100 * named / holders,
                others / known,
                update_us,
                update,
                travels);
    std::fflush(stdout);
}

double entropy(double on) {
    return -on * std::log2(on) - (1 - on) * std::log2(1 - on);
}

/// Bits a key of a digest that lists which of `places` (a key) are on, `probes` of them for each key.
double listed_bits(double places, unsigned probes) {
    return places * entropy(-std::expm1(-static_cast<double>(probes) / places));
}

/// An index of all siblings' digests of this size.
void fill(sibling_index& index, bloom_size size, const fleet_keys& keys) {
    for (unsigned sibling = 0; sibling < count_of_siblings; ++sibling) {
        standard_bloom digest{size};
        keys.for_each(sibling, [&](key_hash key) { digest.insert(key); });
        index.put(sibling, size, digest.words());
    }
}

/// Microseconds for one key gone and one come, of news that bring a hundred of each.
double flip_us(sibling_index& index, bloom_size size) {
    constexpr std::uint64_t changes = 100;
    std::mt19937_64 random{99};
    std::vector<std::uint64_t> places(changes * 2 * size.probes);
    std::generate(places.begin(), places.end(), [&] { return random() % size.bits; });
    bool flipped = true;
    const auto flip_twice = [&] {
        flipped = index.flip(0, size, places) && index.flip(0, size, places) && flipped;
    };
    const auto took = middle_of([&] { return seconds(flip_twice) / 2; });
    if (!flipped) {
        throw std::runtime_error{"a sibling index refuses a change"};
    }
    return took * 1e6 / changes;
}

sibling_mask mask_of(unsigned label) {
    return label == 0 ? 0 : sibling_mask{1} << (label - 1);
}

/// Its digest of a sibling lists the places of that sibling's keys in the one table of all.
void judge_spatial(const char* name,
                   const spatial_size& size,
                   const trial& with,
                   std::uint64_t each) {
    std::optional<spatial_filter> all;
    // A key that leaves uncovers labels that nobody knows any more: all is made anew.
    const auto took = seconds([&] {
        all.emplace(size, count_of_siblings);
        for (unsigned sibling = 0; sibling < count_of_siblings; ++sibling) {
            with.keys.for_each(sibling, [&](key_hash key) { all->insert(key, sibling + 1); });
        }
    });
    judge(name,
          with,
          all->bytes(),
          took * 1e6,
          " (all anew)",
          listed_bits(static_cast<double>(size.cells) / static_cast<double>(each), size.probes),
          1,
          [&](key_hash key) { return mask_of(all->label_of(key)); });
}

void judge_bloomier(const trial& with, std::uint64_t each, double rate) {
    const auto check_bits = static_cast<unsigned>(std::ceil(-std::log2(rate)));
    constexpr unsigned value_bits = 6;
    std::optional<bloomier_filter> all;
    const auto took = seconds([&] {
        std::vector<bloomier_entry> entries;
        entries.reserve(with.keys.of_all());
        for (unsigned sibling = 0; sibling < count_of_siblings; ++sibling) {
            with.keys.for_each(sibling, [&](key_hash key) { entries.push_back({key, sibling}); });
        }
        all = bloomier_filter::build(entries, value_bits, check_bits);
    });
    if (!all) {
        throw std::runtime_error{"a Bloomier filter could not be built"};
    }
    // Hashes wide enough that two keys of the fleet are mixed up as seldom as a stranger is known, Golomb-coded.
    const auto travels = std::log2(static_cast<double>(with.keys.of_all()) / rate /
                                   static_cast<double>(each)) +
                         1.44;
    judge("Bloomier, one sibling a key",
          with,
          all->bytes(),
          took * 1e6,
          " (all anew)",
          travels,
          1,
          [&](key_hash key) -> sibling_mask {
              const auto value = all->value_of(key);
              return value ? sibling_mask{1} << *value : 0;
          });
    std::printf(
        "| Bloomier, a set of 64 a key (by arithmetic) | %.1f | | | %.3f | 100 %% | 100 %% | 0 | "
        "%.3g (all anew) | %.1f |\n",
        1.23 * (64 + check_bits) * static_cast<double>(with.keys.distinct()) /
            static_cast<double>(with.keys.of_all()),
        std::ldexp(32.0, -static_cast<int>(check_bits)),
        took * 1e6,
        travels);
}

void judge_compaction(const trial& with, std::uint64_t each, double rate) {
    const auto size = compaction_size_for(each, rate);
    std::vector<hash_compaction> tables;
    std::uint64_t bytes = 0;
    double took = 0;
    for (unsigned sibling = 0; sibling < count_of_siblings; ++sibling) {
        took = seconds([&] {
            auto& table = tables.emplace_back(size);
            with.keys.for_each(sibling, [&](key_hash key) {
                if (!table.insert(key)) {
                    throw std::runtime_error{"a table of compacted hashes is full"};
                }
            });
        });
        bytes += tables.back().bytes();
    }
    judge("compacted hashes, a table each",
          with,
          bytes,
          took * 1e6,
          " (its sibling's anew)",
          static_cast<double>(tables.back().wire_bits()) / static_cast<double>(each),
          20,
          [&](key_hash key) {
              sibling_mask mask = 0;
              for (unsigned sibling = 0; sibling < count_of_siblings; ++sibling) {
                  mask |= sibling_mask{tables[sibling].may_contain(key)} << sibling;
              }
              return mask;
          });
}

}  // namespace

void compare_sibling_alternatives(std::uint64_t each, double rate) {
    const fleet_keys keys{each};
    const auto usual = digest_size(each, rate);
    const auto strict = digest_size(each, rate / count_of_siblings);
    sibling_index ours;
    fill(ours, usual, keys);
    sibling_index::reader reader{ours};
    const trial with{keys, reader};
    std::printf("Which of %u siblings holds it; bits are a key of a sibling, times are of ours.\n\n"
                "| | reader, bits | stranger, time | held, time | stranger: asked in vain | held: "
                "a holder is named | holders "
                "named | held: others named | update, us | travels, bits |\n"
                "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
                count_of_siblings);
    const auto bits_of = [&](bloom_size size) {
        return listed_bits(static_cast<double>(size.bits) / static_cast<double>(each), size.probes);
    };
    const auto update = flip_us(ours, usual);
    judge("sibling_index", with, ours.bytes(), update, "", bits_of(usual), 1, [&](key_hash key) {
        return reader.may_hold(key);
    });
    {
        sibling_index stricter;
        fill(stricter, strict, keys);
        sibling_index::reader second{stricter};
        const auto name = "sibling_index, 64 together at the rate, k = " +
                          std::to_string(strict.probes);
        const auto strict_update = flip_us(stricter, strict);
        judge(name.c_str(),
              with,
              stricter.bytes(),
              strict_update,
              "",
              bits_of(strict),
              1,
              [&](key_hash key) { return second.may_hold(key); });
    }
    // As many bits as ours: 7 a cell.
    const auto cells = usual.bits * count_of_siblings / 7;
    const auto probes = best_probes(cells, static_cast<double>(keys.of_all()));
    judge_spatial("spatial, in our memory", {.cells = cells, .probes = probes}, with, each);
    judge_spatial("spatial, at the rate", spatial_size_for(keys.of_all(), rate), with, each);
    judge_bloomier(with, each, rate);
    judge_compaction(with, each, rate);
    std::printf("\n");
}

}  // namespace reprise::bench
