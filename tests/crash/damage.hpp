#pragma once
// What a disk, or somebody, may do to the files of a store that is not in use.

#include <cstdint>
#include <string>

namespace reprise::tests::crash {

struct damage_done {
    std::uint64_t flipped_bits = 0, zeroed_pages = 0, foreign_pages = 0, truncated = 0, removed = 0;
    std::uint64_t journals = 0;  ///< files other than segments that were among them
    damage_done& operator+=(const damage_done& other) noexcept;
};

/// Up to 24 strokes, whose kind and place follow from `seed`: bits flipped, pages zeroed or put in
/// the place of others, segment files cut off or taken away. The superblock stays: without it there
/// is no store, and the program says so and does not start. The journal of purges is struck now and
/// then; it must not be cut off by a whole entry, which nothing could tell from its never having
/// been written, so there only bits are flipped.
[[nodiscard]] damage_done damage_store(const std::string& directory, std::uint64_t seed);

/// What all files in the directory take on the disk.
[[nodiscard]] std::uint64_t bytes_on_disk(const std::string& directory);

}  // namespace reprise::tests::crash
