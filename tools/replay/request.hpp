#pragma once
// A request as models see it: decoded once, whatever the number of models.
// Header only: values.

#include "filter/key_hash.hpp"

#include <chrono>
#include <cstdint>

namespace reprise::replay {

/// An object's number, by first appearance, from 0: models index tables with it instead of hashing.
using object_number = std::uint32_t;

struct request {
    filter::key_hash key;
    std::uint64_t bytes = 0;  ///< of the whole object, as far as known
    object_number object = 0;
    std::uint32_t seconds = 0;  ///< since 1970, or since the trace began

    [[nodiscard]] std::chrono::sys_seconds time() const noexcept {
        return std::chrono::sys_seconds{std::chrono::seconds{seconds}};
    }
};

}  // namespace reprise::replay
