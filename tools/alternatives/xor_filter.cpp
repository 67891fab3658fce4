// See xor_filter.hpp.

#include "tools/alternatives/xor_filter.hpp"

#include <cassert>
#include <cmath>
#include <vector>

namespace reprise::alternatives {

xor_filter::xor_filter(std::uint64_t third, unsigned bits)
    : third_{third},
      slots_{3 * third, bits} {}

std::optional<xor_filter> xor_filter::build(std::span<const filter::key_hash> keys,
                                            unsigned bits,
                                            unsigned most_seeds) {
    assert(bits >= 1 && bits <= 32 && keys.size() < std::uint64_t{1} << 31);
    const auto all = distinct(keys);
    xor_filter built{third_of(all.size()), bits};
    std::vector<std::uint64_t> hashes(all.size());
    while (built.seeds_tried_ < most_seeds) {
        built.seed_ = mix(++built.seeds_tried_);
        for (std::size_t i = 0; i < all.size(); ++i) {
            hashes[i] = seeded(all[i], built.seed_);
        }
        if (peel(
                hashes, [&](auto hash) { return built.places_of(hash); }, built.slots_)) {
            return built;
        }
    }
    return std::nullopt;
}

peel_places xor_filter::places_of(std::uint64_t hash) const noexcept {
    return thirds_of(hash, third_);
}

bool xor_filter::may_contain(filter::key_hash key) const noexcept {
    const auto hash = seeded(key, seed_);
    const auto places = places_of(hash);
    return (slots_.get(places.slot[0]) ^ slots_.get(places.slot[1]) ^ slots_.get(places.slot[2])) ==
           fingerprint_of(hash, slots_.bits());
}

double xor_filter::rate() const noexcept {
    return std::ldexp(1.0, -static_cast<int>(slots_.bits()));
}

}  // namespace reprise::alternatives
