#pragma once
// What a look-up in either tier brings.

#include "proxy/cache/memory/invalidations.hpp"
#include "proxy/cache/stored_response.hpp"

#include <cstdint>

namespace reprise::proxy::cache {

enum class lookup : std::uint8_t {
    absent,         ///< nothing under this key
    other_variant,  ///< only variants that the request's fields do not select
    present,
};

struct lookup_result {
    lookup what = lookup::absent;
    stored_ptr response;
    /// It was on probation, and this look-up admitted it: it is to be written to disk now.
    bool just_admitted = false;
    /// When nothing had ended yet what was just admitted, as evicted_response has it.
    invalidation_mark asked{};
};

}  // namespace reprise::proxy::cache
