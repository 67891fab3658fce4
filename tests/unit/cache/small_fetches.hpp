#pragma once
// Fetches with small limits, and a body for them.

#include "tests/unit/cache/fetching.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace reprise::proxy::cache::test {

inline constexpr std::uint64_t kib = 1024;

// Small numbers with the proportions of the defaults.
inline constexpr fetch_limits small{
    .window = 256 * kib, .read_ahead = 16 * kib, .first_bytes = 32 * kib, .finish = 16 * kib};

inline std::shared_ptr<fetch> begun(const fetch_limits& limits = small) {
    return std::make_shared<fetch>(limits);
}

/// Appends the next `bytes` of the pattern.
inline void produce(fetch& into, std::size_t bytes) {
    into.producer_append(pattern(bytes, static_cast<std::size_t>(into.received())));
}

/// The same until so many have come, of which `reader` takes each at once.
inline void produce_until(fetch& into, std::uint64_t received, client& reader) {
    while (into.received() < received) {
        produce(into, 8 * kib);
        reader.drain();
    }
}

}  // namespace reprise::proxy::cache::test
