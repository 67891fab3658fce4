#pragma once
// News: what changed in a digest between two generations, made of the changes themselves, so that
// it costs those and not all bits. A third form of digest_wire's messages (DIGEST_FORMAT.md):
//
//     places   those that flipped, as Golomb-coded gaps
//     names    keys that came, 8 bytes each, whose places are on now; and the places that flipped
//              beside these
//
// whichever is shorter. With two probes places nearly always are (some 22 bits each in 10^7); with
// more, and in blocked filters, where a key has eight, names are.
//
// digest_replica.hpp applies it.

#include "filter/digest.hpp"
#include "filter/key_hash.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace reprise::filter {

/// From a key's name to what filters are asked for; whoever sends names and whoever reads them have
/// the same.
using key_by_name = std::function<key_hash(std::uint64_t name)>;

/// From which state to which.
struct news_span {
    digest_shape shape;
    digest_stamp stamp;              ///< of what it leads to
    std::uint64_t sum = 0;           ///< place_sum of that
    std::uint64_t base_counter = 0;  ///< of the same epoch, smaller than stamp's
    std::uint64_t base_sum = 0;
};

/// What changed in between.
struct net_changes {
    std::vector<std::uint64_t> places;  ///< each that differs, once; rising, unless names say all
    std::vector<std::uint64_t> names;   ///< keys that came, in any order; some may have left since
    /// Nothing went off, and what went on are places of these names: they say all that the places do.
    bool names_say_all = false;
};

/// The shorter encoding; names alone where these say all and are shorter than the places. None where the
/// digest's bits as they are would be shorter still: send the whole. `words`: the bits as they are now;
/// where there are no names nobody looks. O(changes), some tens of nanoseconds each.
/// @pre is_valid(span.shape), words are of that shape, where there are names @throws std::bad_alloc
[[nodiscard]] std::optional<std::vector<std::byte>> encode_news(
    const news_span& span,
    const net_changes& changes,
    std::span<const std::uint64_t> words,
    const key_by_name& key_of);

}  // namespace reprise::filter
