#pragma once
// The admission filter as bytes, so that what was seen before a restart is still known after it.
//
// ADMISSION_FORMAT.md has the layout. The hash seed is part of the state, since bits set under one
// secret mean nothing under another; whoever stores the bytes keeps them as confidential as the
// seed (mode 0600). Bytes only: no file is opened here.

#include "filter/admission.hpp"
#include "filter/key_hash.hpp"

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace reprise::filter {

/// Why bytes are no admission state that can be used here. Each means: start empty, with a seed
/// that is new.
enum class admission_errc {
    truncated = 1,    ///< shorter than its header says, or than a header
    trailing_bytes,   ///< longer than its header says
    bad_magic,        ///< not an admission state at all
    unknown_version,  ///< made by another version of the format
    corrupt,          ///< damaged: a checksum does not match
    bad_times,        ///< a generation's start is out of range, or old was begun after young
    objects_differ,   ///< made for another `objects`
    rate_differs,     ///< made for another `false_positive_rate`
    layers_differ,    ///< made for another number of layers
    size_differs,     ///< made for the same settings by a release that sized filters otherwise
};

[[nodiscard]] const boost::system::error_category& admission_category() noexcept;
[[nodiscard]] boost::system::error_code make_error_code(admission_errc code) noexcept;

/// A filter and the seed that its keys must be hashed under.
struct admission_state {
    hash_seed seed;
    std::unique_ptr<admission_filter> filter;
};

/// Takes the next piece of the encoded state; false ends the encoding.
using byte_sink = std::function<bool(std::span<const std::byte>)>;

/// Hands the state to `sink` in order, in pieces of at most 64 KiB. Returns false when the sink
/// did. Other threads may go on noting: what is remembered throughout the call is in the state, and
/// some of what is noted during it. O(memory of the filter); not for an event loop.
bool encode(const admission_filter& filter, const hash_seed& seed, const byte_sink& sink);

/// The same in one piece. @throws std::bad_alloc
[[nodiscard]] std::vector<std::byte> encode(const admission_filter& filter, const hash_seed& seed);

/// How many bytes encode makes of a filter, or of any with these settings. Whoever reads a file for
/// decode need read no more than one byte beyond that: more is refused all the same.
[[nodiscard]] std::uint64_t encoded_size(const admission_filter& filter) noexcept;
[[nodiscard]] std::uint64_t encoded_size(const admission_settings& settings) noexcept;

/// Every input yields a state or a reason. Reads nothing past `wire`; allocates nothing until the
/// checksums are right and the parameters those of `settings`, and then what such a filter takes.
/// `age` is not part of the state and may differ. A start later than `now` (the clock was set back)
/// is taken as `now`: keys are remembered for longer, never shorter. The filter lies in `memory`,
/// where that is not empty; @pre then as of admission_filter's constructor. Where there is a
/// reason nothing was written there.
/// @throws std::bad_alloc
[[nodiscard]] boost::system::result<admission_state> decode(std::span<const std::byte> wire,
                                                            const admission_settings& settings,
                                                            std::chrono::sys_seconds now,
                                                            std::span<std::byte> memory = {});

}  // namespace reprise::filter

template <>
struct boost::system::is_error_code_enum<reprise::filter::admission_errc> : std::true_type {};
