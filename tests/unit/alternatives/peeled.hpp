#pragma once
// What the two filters made by peeling have in common to be tested.

#include "tests/unit/alternatives/trials.hpp"

#include <array>
#include <vector>

namespace reprise::alternatives::test {

template <class Filter>
void check_built(const Filter& filter, const std::vector<key_hash>& keys) {
    CHECK(false_negatives(filter, keys) == 0);
    check_rate(filter, filter.rate());
}

inline constexpr auto whole_range = std::array<std::uint64_t, 9>{
    0, 1, 2, 3, 10, 100, 1'000, 9'999, 50'000};

}  // namespace reprise::alternatives::test
