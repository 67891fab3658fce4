#pragma once
// Squid's cache digest: read one, and keep one true of a cache of ours.
//
// The format is Squid's, from observation of Squid 5.7 (tests/data/squid/squid-peering.md, section
// 3): 128 bytes of control block, numbers big-endian, then the mask, bit n in byte n / 8, lowest
// first. Four places per key and no secret (squid_key.hpp). Squid builds its mask anew each hour;
// ours follows every store and eviction, so its source counts.

#include "filter/squid_key.hpp"

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace reprise::filter {

/// Why bytes are no Squid digest that can be used, or a source gives none that Squid would use.
enum class squid_errc {
    truncated = 1,       ///< shorter than the control block, or than that and its mask
    trailing_bytes,      ///< longer than control block and mask
    unknown_version,     ///< below 3, below what it requires, or requiring more than 5
    bad_hash_count,      ///< not four places per key
    bad_bits_per_entry,  ///< none, or above 127, at which Squid itself aborts
    bad_size,            ///< no capacity or mask, or the mask is not what capacity gives
    over_limit,          ///< the mask is above the reader's limit, or above what Squid's int holds
    saturated,           ///< more than 65 % of bits on, which Squid calls useless
};

[[nodiscard]] const boost::system::error_category& squid_category() noexcept;
[[nodiscard]] boost::system::error_code make_error_code(squid_errc code) noexcept;

inline constexpr std::size_t squid_block_bytes = 128;
inline constexpr unsigned squid_most_bits_per_entry = 127;

/// How large a mask is.
struct squid_size {
    std::uint32_t capacity = 0;  ///< entries planned for
    unsigned bits_per_entry = 0;
    bool operator==(const squid_size&) const = default;

    /// (capacity * bits_per_entry + 7) / 8.
    [[nodiscard]] std::uint64_t mask_bytes() const noexcept;
    /// All of the mask's bits, which is what places are taken modulo: mask_bytes() * 8.
    [[nodiscard]] std::uint64_t bits() const noexcept { return mask_bytes() * 8; }
    /// No error if Squid takes a digest of this size, else why not: bad_bits_per_entry (none, or
    /// above 127), bad_size (no capacity), or over_limit (capacity * bits_per_entry + 7 has to stay
    /// below 2^31 - 1, which Squid asserts).
    [[nodiscard]] boost::system::error_code judge() const noexcept;
};

/// What a control block tells of the digest's past. A reader believes none of it: Squid 5.7 does
/// not zero the first when it resizes a mask.
struct squid_report {
    std::uint64_t added = 0;
    std::uint64_t deleted = 0;
    bool operator==(const squid_report&) const = default;
};

/// The capacity to plan for when there are `entries` and the mask was made for `current`: entries,
/// at least 1, but `current` while that is within a tenth of it, as Squid does. Never more than
/// `bits_per_entry` allows; beyond that the mask saturates.
/// @pre 0 < bits_per_entry <= squid_most_bits_per_entry
[[nodiscard]] std::uint32_t squid_capacity(std::uint64_t entries,
                                           std::uint32_t current,
                                           unsigned bits_per_entry) noexcept;

/// A digest that a Squid served. Immutable: any number of threads.
class squid_digest {
public:
    /// Every input yields a digest or a reason. Reads nothing past `wire`, allocates only the mask,
    /// at most `most_bytes`, once its length is known to be there. O(wire) time.
    /// @throws std::bad_alloc
    [[nodiscard]] static boost::system::result<squid_digest> decode(
        std::span<const std::byte> wire, std::uint64_t most_bytes = std::uint64_t{256} << 20);

    [[nodiscard]] bool may_contain(const squid_key& key) const noexcept;

    [[nodiscard]] squid_size size() const noexcept { return size_; }
    [[nodiscard]] squid_report reported() const noexcept { return reported_; }
    [[nodiscard]] std::span<const std::byte> mask() const noexcept { return mask_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return mask_.size(); }

    [[nodiscard]] std::uint64_t bits_on() const noexcept { return bits_on_; }
    [[nodiscard]] double fill() const noexcept;
    /// fill^4.
    [[nodiscard]] double false_positive_rate() const noexcept;
    /// From the bits alone: ln(share off) / (4 ln(1 - 1/bits)).
    [[nodiscard]] double estimated_keys() const noexcept;

private:
    squid_digest(squid_size size, std::span<const std::byte> mask);

    squid_size size_;
    squid_report reported_;
    std::vector<std::byte> mask_;
    std::uint64_t bits_on_ = 0;
};

/// The bytes of a digest with these bits on; refused as squid_size::judge says, or as saturated.
/// @pre mask.size() == size.mask_bytes() @throws std::bad_alloc
[[nodiscard]] boost::system::result<std::vector<std::byte>> encode_squid_digest(
    squid_size size, squid_report report, std::span<const std::byte> mask);

}  // namespace reprise::filter

template <>
struct boost::system::is_error_code_enum<reprise::filter::squid_errc> : std::true_type {};
