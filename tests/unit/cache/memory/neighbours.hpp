#pragma once
// Objects of one size in a memory tier that all live in one stripe, so that its queue is seen alone.

#include "filter/key_hash.hpp"
#include "proxy/cache/memory/memory_tier.hpp"
#include "tests/unit/cache/responses.hpp"

#include <cstdint>
#include <string>

namespace reprise::proxy::cache::test {

/// A capacity that nothing here fills.
inline constexpr std::uint64_t ample = 64u << 20;

/// The high word picks the stripe.
inline filter::key_hash neighbour(std::uint64_t n) {
    return {.low = n, .high = 7};
}
inline std::string numbered(std::uint64_t n) {
    return "http://origin.test/" + std::to_string(1'000 + n);
}

inline bool put_neighbour(memory_tier& store, std::uint64_t n) {
    return store.put(neighbour(n), numbered(n), response({.content = "0123456789"}));
}

/// What one of these neighbours is charged with.
inline std::uint64_t charge_of_neighbour() {
    memory_tier store{ample};
    put_neighbour(store, 0);
    return store.figures().bytes;
}

}  // namespace reprise::proxy::cache::test
