#pragma once
// The body of a large object: extents of one size, found through the index one by one, so that each
// may be moved while others are read.
//
// A reader reads a piece of up to 256 KiB at a time, and only the blocks of 64 KiB that it needs;
// each is verified before a byte of it is given out. When a piece had to come from the disk, the
// next one is asked for as soon as that is there, so that disk and client work at the same time.
//
// Memory    two such pieces at most, and each block only until it is given out. Of a client that lags what was given to
//           it, two blocks or less, and from then on one block and nothing ahead, until it has taken a mebibyte in
//           time. What was let go of is read once more: six blocks at most, a mebibyte apart. Nothing but time
//           tells how a client takes what it is given, and not in the beginning: a quarter of a mebibyte is
//           with the systems' buffers before anybody reads (measured: 264 KiB over loopback).

#include "proxy/cache/disk/core.hpp"
#include "proxy/cache/disk/record.hpp"
#include "proxy/cache/disk_body.hpp"

#include <cstdint>
#include <memory>

namespace reprise::proxy::cache::disk {

/// What the head of a large object says of its body.
struct large_shape {
    filter::key_hash primary{};
    std::uint64_t id = 0;  ///< of the head's record
    std::uint64_t length = 0;
    std::uint32_t extent_bytes = 0;
    std::uint32_t extents = 0;
};

/// Whether the index has the extents. With very many it looks for a thousand, evenly spread:
/// extents go a segment at a time, and a segment has runs of them. O(extents), at most a thousand
/// look-ups.
[[nodiscard]] bool has_extents(const record_index& index, const large_shape& shape);

[[nodiscard]] std::shared_ptr<const disk_body> make_large_body(std::shared_ptr<core> from,
                                                               const large_shape& shape);

}  // namespace reprise::proxy::cache::disk
