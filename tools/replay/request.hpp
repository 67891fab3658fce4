#pragma once
// A request as models see it: decoded once, whatever the number of models.
// Header only: values.

#include "filter/key_hash.hpp"
#include "proxy/cache/policy/packed_wait.hpp"

#include <chrono>
#include <cstdint>

namespace reprise::replay {

/// An object's number, by first appearance, from 0: models index tables with it instead of hashing.
using object_number = std::uint32_t;

struct request {
    static constexpr std::uint64_t most_bytes = ~std::uint64_t{0} >>
                                                proxy::cache::packed_wait::bits;

    filter::key_hash key;
    std::uint64_t bytes : 64 - proxy::cache::packed_wait::bits = 0;  ///< of the whole object, as
                                                                     ///< far as known
    std::uint64_t wait_code : proxy::cache::packed_wait::bits = 0;   ///< wait()
    object_number object = 0;
    std::uint32_t seconds = 0;  ///< since 1970, or since the trace began

    /// What fetching it takes, as far as the trace has told.
    [[nodiscard]] proxy::cache::packed_wait wait() const noexcept {
        return proxy::cache::packed_wait::of_code(wait_code);
    }
    [[nodiscard]] std::chrono::sys_seconds time() const noexcept {
        return std::chrono::sys_seconds{std::chrono::seconds{seconds}};
    }
};
static_assert(sizeof(request) == 32);

}  // namespace reprise::replay
