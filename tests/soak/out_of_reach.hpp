#pragma once
// Which fetches no fleet could have spared: nobody who could be reached had what was asked for.

#include "tests/soak/new_urls_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace reprise::tests::new_urls {

/// A request at the origin.
struct origin_fetch {
    std::uint32_t url = 0;
    unsigned by = 0;  ///< a node
    steady_clock::time_point at;
};

/// A node had answered a request for the URL whole.
struct held_copy {
    std::uint32_t url = 0;
    unsigned by = 0;
    steady_clock::time_point since;
};

/// How many of the fetches, but for each URL's first, went out while no other node that had the object, or was fetching it,
/// could be reached: it was stopped, killed or cut off then or a tenth of a second before, which is how long one
/// waits for it; or the one that asked was cut off. One that was killed has lost what it had, unless it has a disk. That
/// word of a copy takes its time is no excuse here.
[[nodiscard]] std::size_t out_of_reach(const plan& of,
                                       std::span<const origin_fetch> fetches,
                                       std::span<const held_copy> copies,
                                       std::span<const absence> troubles);

}  // namespace reprise::tests::new_urls
