#pragma once
// What all parts of the format share: sizes and limits, checksums, errors, the superblock.
// FORMAT.md is the page; this is its code.

#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace reprise::proxy::cache::disk {

/// What bytes of a store may have wrong with them.
enum class format_errc {
    truncated = 1,  ///< fewer bytes than their own lengths say
    bad_magic,      ///< not what should stand here: never written, or overwritten
    other_version,  ///< of a format that this program does not read
    bad_checksum,   ///< damaged, torn, or of another store
    other_round,    ///< of another sequence: left over from an earlier use of the segment
    bad_length,     ///< a length or place outside what it lies in
    bad_field,      ///< a value that no writer writes
    too_large,      ///< to be written: over the limits of this page
};

[[nodiscard]] const boost::system::error_category& format_category() noexcept;
[[nodiscard]] boost::system::error_code make_error_code(format_errc code) noexcept;

template <class T>
using result = boost::system::result<T>;

/// Records begin and end at multiples of this.
inline constexpr std::uint64_t alignment = 16;
/// A body's checksums are of pieces of this size; the last may be shorter.
inline constexpr std::uint64_t block_bytes = 64u << 10;
/// The largest front (everything of a record but its body) that is written or read.
inline constexpr std::uint64_t front_most = 256u << 10;
/// The smallest size that a store can have. An operator's smaller one is refused.
inline constexpr std::uint64_t smallest_store = 4u << 20;
inline constexpr std::uint64_t smallest_segment = 256u << 10;
inline constexpr std::uint64_t largest_segment = 256u << 20;
inline constexpr std::uint64_t largest_journal = 64u << 20;
/// The index names segments by 16 bits, so a store has at most 16 TiB.
inline constexpr std::uint32_t most_segments = 65535;
/// While one is written another is read, to be used next (reclaimer.hpp).
inline constexpr std::uint32_t fewest_segments = 2;

[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t to) noexcept {
    return (bytes + to - 1) / to * to;
}

/// How a store of some size is divided.
struct geometry {
    std::uint64_t segment_bytes = 0;
    std::uint32_t segments = 0;
    /// Bodies up to this are in their object's own record; also the size of an extent.
    std::uint64_t inline_most = 0;
    /// The largest record, front and body: so that closing a segment early wastes less than half.
    std::uint64_t record_most = 0;
    /// For `purges`, while two of them are there included.
    std::uint64_t journal_most = 0;
    bool operator==(const geometry&) const = default;
};

/// size / 128 in steps of 64 KiB, between smallest_segment and largest_segment; or `segment`, if
/// that is not zero, brought within the same bounds (an existing store keeps its own). All that the
/// result names, superblock included, is together at most `size`. With a `segment` that is given there
/// may be fewer than fewest_segments: then no store can be made so, nor gone on with.
/// @pre size >= smallest_store
[[nodiscard]] geometry plan(std::uint64_t size, std::uint64_t segment = 0) noexcept;
/// The smallest size, to a MiB, at which a store goes on with segments of so many bytes.
/// @pre smallest_segment <= segment <= largest_segment
[[nodiscard]] std::uint64_t least_size_for(std::uint64_t segment) noexcept;

/// XXH3 (64 bits) of `bytes`. The seed is the store's id, so that bytes of another store, or such
/// as somebody made up, do not match.
[[nodiscard]] std::uint64_t checksum(std::span<const char> bytes, std::uint64_t store_id) noexcept;

/// The first file of a store.
struct superblock {
    std::uint64_t store_id = 0;  ///< random: the seed of all checksums
    filter::hash_seed seed{};    ///< the key secret is made from it: as confidential as that is
    std::uint64_t segment_bytes = 0;
    wall_time made{};
};
inline constexpr std::size_t superblock_bytes = 128;
using superblock_image = std::array<char, superblock_bytes>;
[[nodiscard]] superblock_image encode(const superblock& made) noexcept;
[[nodiscard]] result<superblock> read_superblock(std::span<const char> bytes) noexcept;

/// "s-0000002a"
[[nodiscard]] std::string segment_name(std::uint32_t number);
/// The number in such a name; most_segments if it is none.
[[nodiscard]] std::uint32_t segment_number_in(std::string_view name) noexcept;

// A time in 16 bits: quarters of an hour, modulo 65,535 of them (682 days), plus one; 0 is "never
// fresh". Good for what may err (a digest's keys), never for what is served: something stale for
// more than 341 days reads as fresh.

/// `until` rounded down to a quarter of an hour; at most 340 days after `now`.
[[nodiscard]] std::uint16_t coarse_time(wall_time until, wall_time now) noexcept;
[[nodiscard]] bool is_after(std::uint16_t coarse, wall_time now) noexcept;
/// Which of two lies further ahead of `now`; what is past lies nowhere.
[[nodiscard]] bool is_later(std::uint16_t one, std::uint16_t other, wall_time now) noexcept;

// Little-endian values at any address. A store is read on machines of that order only.

static_assert(std::endian::native == std::endian::little);

/// @pre sizeof value bytes at `at`
template <class Value>
void store_at(char* at, Value value) noexcept {
    static_assert(std::is_integral_v<Value>);
    std::memcpy(at, &value, sizeof value);
}

/// @pre sizeof(Value) bytes at `at`
template <class Value>
[[nodiscard]] Value load_at(const char* at) noexcept {
    static_assert(std::is_integral_v<Value>);
    Value value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

}  // namespace reprise::proxy::cache::disk

template <>
struct boost::system::is_error_code_enum<reprise::proxy::cache::disk::format_errc>
    : std::true_type {};
