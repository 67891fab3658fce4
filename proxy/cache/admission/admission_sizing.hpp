#pragma once
// How much the admission filter is to remember when it follows the store ("remember": "auto").
//
// A sight is worth remembering for as long as an object stays in the store unused: what comes again
// later than that would not have been a hit anyway, and forgetting it keeps rare objects out. So
// the filter's age is the store's age of eviction, and its size what comes to be seen within that
// age. While nothing is evicted there is room for all that is asked for twice, however late: the
// filter remembers as long as it may, and grows as it fills.
//
// Both go in powers of two, and down only when a quarter would do, so that a filter is exchanged
// seldom (resizable_admission.hpp).

#include "filter/admission.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

namespace reprise::proxy::cache {

struct admission_bounds {
    std::uint64_t most_objects = 1u << 19;  ///< a power of two, at least least_objects
    static constexpr std::uint64_t least_objects = 1u << 14;
    static constexpr std::chrono::seconds least_age{64};
    static constexpr std::chrono::seconds most_age = std::chrono::hours{50};
};

/// The bounds when filters of these settings may take `bytes`.
[[nodiscard]] admission_bounds bounds_within(std::uint64_t bytes,
                                             const filter::admission_settings& settings) noexcept;

/// Where to begin: 2 Mi objects, or the most that may be.
[[nodiscard]] filter::admission_settings begin_remembering(filter::admission_settings settings,
                                                           const admission_bounds& bounds) noexcept;

/// What the filter should be, given what it is; the same settings when it should stay.
/// `eviction_age`: none while the store evicts nothing.
[[nodiscard]] filter::admission_settings follow(const filter::admission_settings& is,
                                                const filter::admission_figures& figures,
                                                std::chrono::sys_seconds now,
                                                std::optional<std::chrono::seconds> eviction_age,
                                                const admission_bounds& bounds) noexcept;

}  // namespace reprise::proxy::cache
