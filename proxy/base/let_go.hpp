#pragma once
// To give a container's memory back. `x = {}` looks as if it did: of a vector, a string, a set or a map
// the compiler takes the assignment from an empty list of elements, which keeps what was taken.

#include <utility>

namespace reprise::proxy {

/// Empties it, and gives back what it had. O(elements), as its destructor.
template <class Container>
void let_go(Container& of) noexcept {
    Container none;
    std::swap(of, none);
}

}  // namespace reprise::proxy
