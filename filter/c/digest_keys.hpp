#pragma once
// Keys and seeds of digests as the C face has them, and as filter/ does.

#include "filter/key_hash.hpp"

#include <cstddef>
#include <cstring>
#include <reprise/digest.h>

namespace reprise::filter::c {

inline hash_seed seed_of(const unsigned char* bytes) noexcept {
    hash_seed seed{};
    std::memcpy(seed.data(), bytes, seed.size());
    return seed;
}

inline key_hash hash_from(reprise_key key) noexcept {
    return {.low = key.low, .high = key.high};
}

inline reprise_key key_of(const hash_secret& secret, const void* text, std::size_t length) {
    const auto hash = hash_of({static_cast<const char*>(text), length}, secret);
    return {hash.low, hash.high};
}

}  // namespace reprise::filter::c
