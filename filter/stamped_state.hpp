#pragma once
// A stamped filter as bytes, for a store that outlives its process: nothing else knows what a ring
// holds. STAMPED_FORMAT.md has the layout. Bytes only: no file is opened here.

#include "filter/seed_id.hpp"
#include "filter/stamped.hpp"

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace reprise::filter {

/// Why bytes are no state that can be used here. Each means: begin empty.
enum class stamped_errc {
    truncated = 1,    ///< shorter than its header says, or than a header
    trailing_bytes,   ///< longer than its header says
    bad_magic,        ///< not a stamped filter's state at all
    unknown_version,  ///< of another version of the format
    corrupt,          ///< damaged: a checksum does not match
    bad_header,       ///< a field holds what no writer writes
    sizes_differ,     ///< of another number of places, probes or generations
    other_seed,       ///< keys hashed under another secret
    bad_stamps,       ///< a place holds what no writer writes
};

[[nodiscard]] const boost::system::error_category& stamped_category() noexcept;
[[nodiscard]] boost::system::error_code make_error_code(stamped_errc code) noexcept;

/// A filter, and how far its owner is with the current generation.
struct stamped_state {
    stamped_bloom filter;
    std::uint64_t written = 0;  ///< bytes, in the current generation
    std::uint64_t room = 0;     ///< bytes that the store keeps, where that was found out; or 0
};

/// O(places). @throws std::bad_alloc
[[nodiscard]] std::vector<std::byte> encode(const stamped_state& from, const seed_id& seed);

/// How many bytes that makes of a filter of this size: a reader of a file need read no more than
/// one byte beyond.
[[nodiscard]] std::uint64_t encoded_stamped_size(bloom_size size) noexcept;

/// Every input yields a state or a reason. Reads nothing past `wire`; allocates nothing until it is
/// known to be undamaged and of this size, these generations and this seed. @throws std::bad_alloc
[[nodiscard]] boost::system::result<stamped_state> decode_stamped(std::span<const std::byte> wire,
                                                                  bloom_size size,
                                                                  unsigned generations,
                                                                  const seed_id& seed);

}  // namespace reprise::filter

template <>
struct boost::system::is_error_code_enum<reprise::filter::stamped_errc> : std::true_type {};
