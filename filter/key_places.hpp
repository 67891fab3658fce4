#pragma once
// The places that a key owns in a digest of any layout, for whoever turns bits and not only
// asks them.

#include "filter/blocks.hpp"
#include "filter/digest.hpp"
#include "filter/indices.hpp"

#include <cstdint>

namespace reprise::filter {

/// Calls `visit(place)` for each of the key's places; in the standard layout one may come twice.
/// @pre is_valid(shape)
template <class Visit>
void for_each_place(const digest_shape& shape, key_hash key, Visit&& visit) {
    if (shape.layout == digest_layout::blocked) {
        const auto first = block_of(key, shape.bits / block_bits) * block_bits;
        for (unsigned lane = 0; lane < lanes; ++lane) {
            visit(first + lane * lane_bits + place_in(key, lane));
        }
        return;
    }
    indices places{key, shape.bits};
    for (unsigned probe = 0; probe < shape.probes; ++probe) {
        visit(places.next());
    }
}

}  // namespace reprise::filter
