// See key_hash.hpp. XXH_INLINE_ALL makes XXH3 part of this file: the length is tested once and the
// short path (up to 240 bytes, almost every URL) runs straight on the secret's own bytes.

#define XXH_INLINE_ALL
#include "filter/key_hash.hpp"

#include <xxhash.h>

#include <algorithm>

namespace reprise::filter {

static_assert(XXH3_SECRET_DEFAULT_SIZE == 192);

hash_secret hash_secret::from_seed(std::span<const std::byte, 32> seed) noexcept {
    hash_secret made;
    std::copy(seed.begin(), seed.end(), made.seed_.begin());
    // It fails only for a secret shorter than XXH3_SECRET_SIZE_MIN (136) or a null buffer.
    (void)XXH3_generateSecret(made.bytes_.data(), made.bytes_.size(), seed.data(), seed.size());
    return made;
}

key_hash hash_of(std::string_view text, const hash_secret& secret) noexcept {
    const auto hash = XXH3_128bits_withSecret(
        text.data(), text.size(), secret.bytes().data(), std::size_t{192});
    return {.low = hash.low64, .high = hash.high64};
}

}  // namespace reprise::filter
