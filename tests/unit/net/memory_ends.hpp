#pragma once
// Memory that ends where a test wants it to: whether what was begun then is undone.
// This program's operator new and aligned_alloc (from which Asio takes its operations) are memory_ends.cpp's.

#include <cstddef>
#include <limits>

namespace reprise::proxy::net {

/// While it lives this thread allocates `still` times more, and then what it asks for is refused, `refused` times (one or
/// more). One at a time. What a test says of it is to be said when it is gone, since that takes memory too.
/// With `least` it speaks of pieces of so many bytes, and more: smaller ones are there, and not counted.
class memory_ends {
public:
    static constexpr unsigned for_good = std::numeric_limits<unsigned>::max();

    explicit memory_ends(unsigned still = 0,
                         unsigned refused = for_good,
                         std::size_t least = 0) noexcept;
    ~memory_ends();
    memory_ends(const memory_ends&) = delete;
    memory_ends& operator=(const memory_ends&) = delete;
};

}  // namespace reprise::proxy::net
