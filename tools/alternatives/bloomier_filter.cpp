// See bloomier_filter.hpp. A slot holds the check in its high bits and the value in its low ones.

#include "tools/alternatives/bloomier_filter.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

namespace reprise::alternatives {

bloomier_filter::bloomier_filter(std::uint64_t third, unsigned value_bits, unsigned check_bits)
    : third_{third},
      value_bits_{value_bits},
      slots_{3 * third, value_bits + check_bits} {}

std::optional<bloomier_filter> bloomier_filter::build(std::span<const bloomier_entry> entries,
                                                      unsigned value_bits,
                                                      unsigned check_bits,
                                                      unsigned most_seeds) {
    assert(value_bits > 0 && check_bits > 0 && value_bits + check_bits <= 32);
    assert(entries.size() < std::uint64_t{1} << 31);
    std::vector<bloomier_entry> all{entries.begin(), entries.end()};
    const auto before = [](const bloomier_entry& a, const bloomier_entry& b) {
        return a.key.low != b.key.low ? a.key.low < b.key.low : a.key.high < b.key.high;
    };
    std::stable_sort(all.begin(), all.end(), before);
    const auto same_key = [](const auto& a, const auto& b) { return a.key == b.key; };
    all.erase(std::unique(all.begin(), all.end(), same_key), all.end());

    bloomier_filter built{third_of(all.size()), value_bits, check_bits};
    std::vector<std::uint64_t> hashes(all.size());
    for (unsigned tried = 1; tried <= most_seeds; ++tried) {
        built.seed_ = mix(tried);
        for (std::size_t i = 0; i < all.size(); ++i) {
            hashes[i] = seeded(all[i].key, built.seed_);
        }
        // Sorted by hash, each finds its value by a search; no table of pointers is needed.
        std::vector<std::uint32_t> by_hash(all.size());
        for (std::uint32_t i = 0; i < by_hash.size(); ++i) {
            by_hash[i] = i;
        }
        std::sort(
            by_hash.begin(), by_hash.end(), [&](auto a, auto b) { return hashes[a] < hashes[b]; });
        const auto wanted = [&](std::uint64_t hash) {
            const auto found = std::partition_point(
                by_hash.begin(), by_hash.end(), [&](auto i) { return hashes[i] < hash; });
            return fingerprint_of(hash, check_bits) << value_bits | all[*found].value;
        };
        const auto places = [&](std::uint64_t hash) { return thirds_of(hash, built.third_); };
        if (peel(hashes, places, wanted, built.slots_)) {
            return built;
        }
    }
    return std::nullopt;
}

std::optional<std::uint32_t> bloomier_filter::value_of(filter::key_hash key) const noexcept {
    const auto hash = seeded(key, seed_);
    const auto slot = thirds_of(hash, third_).slot;
    const auto found = slots_.get(slot[0]) ^ slots_.get(slot[1]) ^ slots_.get(slot[2]);
    if (found >> value_bits_ != fingerprint_of(hash, slots_.bits() - value_bits_)) {
        return std::nullopt;
    }
    return found & ((std::uint32_t{1} << value_bits_) - 1);
}

double bloomier_filter::rate() const noexcept {
    return std::ldexp(1.0, -static_cast<int>(slots_.bits() - value_bits_));
}

}  // namespace reprise::alternatives
