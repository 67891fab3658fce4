// See spatial_filter.hpp.

#include "tools/alternatives/spatial_filter.hpp"

#include "filter/indices.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace reprise::alternatives {

spatial_size spatial_size_for(std::uint64_t keys, double rate) noexcept {
    const auto size = filter::classic_size(keys, rate);
    return {.cells = size.bits, .probes = size.probes};
}

double spatial_rate(const spatial_size& size, double above) noexcept {
    return filter::classic_rate({.bits = size.cells, .probes = size.probes}, above);
}

spatial_filter::spatial_filter(const spatial_size& size, unsigned labels)
    : probes_{size.probes},
      cells_{size.cells, static_cast<unsigned>(std::bit_width(labels))} {
    assert(size.cells > 0 && size.probes > 0 && labels > 0);
}

void spatial_filter::insert(filter::key_hash key, unsigned label) noexcept {
    assert(label > 0 && label <= cells_.max());
    filter::indices places{key, cells_.count()};
    for (unsigned probe = 0; probe < probes_; ++probe) {
        const auto place = places.next();
        cells_.set(place, std::max(cells_.get(place), label));
    }
}

unsigned spatial_filter::label_of(filter::key_hash key) const noexcept {
    filter::indices places{key, cells_.count()};
    auto least = cells_.max();
    for (unsigned probe = 0; probe < probes_ && least != 0; ++probe) {
        least = std::min(least, cells_.get(places.next()));
    }
    return least;
}

}  // namespace reprise::alternatives
