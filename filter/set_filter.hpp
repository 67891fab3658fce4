#pragma once
// What the filters that are made of filters (aging, layered, scalable) ask of those: the face that
// standard, partitioned, blocked and split-block filters have in common.

#include "filter/key_hash.hpp"

#include <concepts>
#include <cstdint>

namespace reprise::filter {

/// Remembers keys, forgets only all at once, and errs only towards containing.
template <class Filter>
concept set_filter = std::movable<Filter> &&
    requires(Filter filter, const Filter constant, key_hash key) {
    filter.insert(key);
    filter.clear();
    { constant.may_contain(key) } -> std::same_as<bool>;
    { constant.bytes() } -> std::convertible_to<std::uint64_t>;
};

/// Inserts `key`, and returns what may_contain would have returned before; in one step where the
/// filter has one.
template <set_filter Filter>
bool insert_and_test(Filter& filter, key_hash key) {
    if constexpr (requires {
                      { filter.insert_and_test(key) } -> std::same_as<bool>;
                  }) {
        return filter.insert_and_test(key);
    } else {
        const bool before = filter.may_contain(key);
        filter.insert(key);
        return before;
    }
}

}  // namespace reprise::filter
