#pragma once
// Room in a vector before something is begun that must not stop in the middle.

#include <algorithm>
#include <cstddef>

namespace reprise::proxy::cache::disk {

/// So that the next `more` that are pushed back take no memory. It grows as by pushing, so that one call for
/// each that comes is no more work than that. @throws std::bad_alloc, and nothing has changed
template <class Vector>
void make_room_in(Vector& of, std::size_t more = 1) {
    const auto wanted = of.size() + more;
    if (wanted > of.capacity()) {
        of.reserve(std::max(wanted, 2 * of.capacity()));
    }
}

}  // namespace reprise::proxy::cache::disk
