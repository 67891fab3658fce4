#pragma once
// From what was measured to settings.

#include "tools/replay/results.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace reprise::replay {

/// The result that serves the objective best at one size, of those that the proxy can be set to.
/// What is within `close` of the fewest misses (relative) counts as equal: of these the one that
/// writes least. Null if there is none.
[[nodiscard]] const result* best_of(std::span<const result> results,
                                    const cache_size& size,
                                    objective wanted,
                                    double close = 0.005);

/// The settings that make the proxy what `chosen` was, as JSON that `reprise --check-config`
/// accepts: sizes that are less than those may be are raised to that. `objects`: of the trace, for
/// what the filter of a scaled setup is to remember; `unit`: bytes that one of its counts stands for.
[[nodiscard]] std::string settings_for(const result& chosen,
                                       objective wanted,
                                       std::uint64_t objects,
                                       std::uint64_t unit);

/// Whether settings can say it: no yardsticks (ARC, exact rules).
[[nodiscard]] bool can_be_set(const setup& what) noexcept;

}  // namespace reprise::replay
