#pragma once
// A size setting that the store's segments do not fit.
//
// A store keeps the segment size that it was made with, and of another size setting it has more or
// fewer of them. Where it has more than it may, the oldest go, whatever their numbers: what was replaced lies
// in an older segment than what replaced it, and would be served again if that went first. So the numbers
// of those that stay may be higher than there are segments.
//
// Of a much smaller setting it would have one, or none, and nothing could be written any more. Then it is begun
// anew, with segments that fit.
//
// Threads   none.
// Errors    values.

#include "proxy/cache/disk/files.hpp"
#include "proxy/cache/disk/format.hpp"
#include "proxy/cache/disk/tier.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace reprise::proxy::cache::disk {

/// Of a store that begins: what the settings wish for, unless fewer than fewest_segments would fit.
[[nodiscard]] std::uint64_t segment_bytes_at_first(const tier_settings& settings) noexcept;

/// Why the store can't go on with its segments at this size; empty: it can.
[[nodiscard]] std::string why_too_small(const tier_settings& settings, const superblock& super);

/// One more than the highest number of a segment that is there, and `planned` at least. Where the directory can't be
/// listed, as many as there can be: what is not looked for may be the newer. Blocks. @throws std::bad_alloc
[[nodiscard]] std::uint32_t numbers_of_segments(filesystem& files,
                                                const std::string& directory,
                                                std::uint32_t planned);

/// Removes the journal, and then all segments, whatever their numbers: they are larger than those that
/// come, and together larger than the store may be. To be done before anything of the new store is
/// written, since the disk may be full of them. Where a crash leaves some, a start finds no journal
/// and believes none: of what replaced what, the half that is left would tell the wrong one.
/// An error: some may be left, and take their room until they are used again. Blocks.
[[nodiscard]] error_code remove_contents(filesystem& files,
                                         const std::string& directory,
                                         const std::string& path_of_journal);

}  // namespace reprise::proxy::cache::disk
