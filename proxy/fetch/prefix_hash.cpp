#include "proxy/fetch/prefix_hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace reprise::proxy::fetch {

struct prefix_hash::states {
    XXH3_state_t had, again;
};

prefix_hash::prefix_hash() : states_{std::make_unique<states>()} {
    (void)XXH3_128bits_reset(&states_->had);
    (void)XXH3_128bits_reset(&states_->again);
}

prefix_hash::~prefix_hash() = default;

void prefix_hash::note(std::string_view bytes) noexcept {
    (void)XXH3_128bits_update(&states_->had, bytes.data(), bytes.size());
}

void prefix_hash::begin_skipping(std::uint64_t bytes) noexcept {
    (void)XXH3_128bits_reset(&states_->again);
    left_ = bytes;
}

bool prefix_hash::skip(std::string_view bytes) noexcept {
    (void)XXH3_128bits_update(&states_->again, bytes.data(), bytes.size());
    left_ -= bytes.size();
    return left_ != 0 || XXH128_isEqual(XXH3_128bits_digest(&states_->had),
                                        XXH3_128bits_digest(&states_->again)) != 0;
}

}  // namespace reprise::proxy::fetch
