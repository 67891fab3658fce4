#pragma once
// How tests of the ghosts let them see requests.

#include "proxy/base/clock.hpp"
#include "proxy/cache/policy/what_if.hpp"
#include "tests/unit/cache/policy/what_if_rows.hpp"
#include "tests/unit/filter/keys.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace reprise::proxy::cache::test {

/// As fast as the sample stays whole.
inline void play(what_if& into,
                 const std::vector<std::uint64_t>& keys,
                 std::uint64_t size = 1'000,
                 steady_time from = start) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
        into.note(filter::test::nth_key(1, keys[i]),
                  size,
                  from + std::chrono::seconds{i / what_if::most_pace});
        into.tend();
    }
}

}  // namespace reprise::proxy::cache::test
