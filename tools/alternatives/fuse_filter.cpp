// See fuse_filter.hpp.

#include "tools/alternatives/fuse_filter.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

namespace reprise::alternatives {

namespace {

constexpr unsigned most_segment_shift = 18;

}  // namespace

// The paper's sizes, found by experiment (its section 4): larger segments for more keys, and more
// slots a key for few.
fuse_filter::shape fuse_filter::shape_for(std::uint64_t keys, unsigned arity) noexcept {
    const auto n = static_cast<double>(std::max<std::uint64_t>(keys, 2));
    const auto log2_segment = arity == 3 ? std::log(n) / std::log(3.33) + 2.25
                                         : std::log(n) / std::log(2.91) - 0.5;
    const auto slots_a_key = arity == 3
                                 ? std::max(1.125, 0.875 + 0.25 * std::log(1e6) / std::log(n))
                                 : std::max(1.075, 0.77 + 0.305 * std::log(6e5) / std::log(n));
    const auto shift = static_cast<unsigned>(
        std::clamp(log2_segment, 2.0, static_cast<double>(most_segment_shift)));
    const auto segments = static_cast<std::uint64_t>(
        std::ceil(n * slots_a_key / std::ldexp(1.0, static_cast<int>(shift))));
    return {.arity = arity,
            .segment_shift = shift,
            .windows = segments > arity - 1 ? segments - (arity - 1) : 1};
}

fuse_filter::fuse_filter(shape sized, unsigned bits)
    : shape_{sized},
      slots_{(sized.windows + sized.arity - 1) << sized.segment_shift, bits} {}

std::optional<fuse_filter> fuse_filter::build(std::span<const filter::key_hash> keys,
                                              unsigned bits,
                                              unsigned arity,
                                              unsigned most_seeds) {
    assert(bits >= 1 && bits <= 32 && keys.size() < std::uint64_t{1} << 31);
    assert(arity == 3 || arity == 4);
    const auto all = distinct(keys);
    fuse_filter built{shape_for(all.size(), arity), bits};
    std::vector<std::uint64_t> hashes(all.size());
    while (built.seeds_tried_ < most_seeds) {
        built.seed_ = mix(++built.seeds_tried_);
        for (std::size_t i = 0; i < all.size(); ++i) {
            hashes[i] = seeded(all[i], built.seed_);
        }
        // In order of their windows, so that peeling goes through memory instead of about in it.
        std::sort(hashes.begin(), hashes.end());
        if (peel(
                hashes, [&](auto hash) { return built.places_of(hash); }, built.slots_)) {
            return built;
        }
    }
    return std::nullopt;
}

peel_places fuse_filter::places_of(std::uint64_t hash) const noexcept {
    // The window by the hash's upper bits, the slots in its segments by another 64 bits: 18 for
    // each of three, the fourth's by the hash's lower bits.
    const auto window = scaled(hash, shape_.windows);
    const auto within = (std::uint64_t{1} << shape_.segment_shift) - 1;
    const auto more = mix(hash ^ 0x94d049bb133111eb);
    const std::array<std::uint64_t, 4> bits{
        more, more >> most_segment_shift, more >> (2 * most_segment_shift), hash};
    peel_places places{.slot = {}, .count = shape_.arity};
    for (unsigned i = 0; i < shape_.arity; ++i) {
        places.slot[i] = (window + i) << shape_.segment_shift | (bits[i] & within);
    }
    return places;
}

bool fuse_filter::may_contain(filter::key_hash key) const noexcept {
    const auto hash = seeded(key, seed_);
    const auto places = places_of(hash);
    auto found = slots_.get(places.slot[0]) ^ slots_.get(places.slot[1]) ^
                 slots_.get(places.slot[2]);
    if (places.count == 4) {
        found ^= slots_.get(places.slot[3]);
    }
    return found == fingerprint_of(hash, slots_.bits());
}

double fuse_filter::rate() const noexcept {
    return std::ldexp(1.0, -static_cast<int>(slots_.bits()));
}

}  // namespace reprise::alternatives
