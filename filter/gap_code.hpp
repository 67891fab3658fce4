#pragma once
// A rising list of bit positions as a string of bits, near its entropy.
//
// The gaps between the bits of a Bloom filter are as good as geometric, and for those Golomb's code
// is the best of all prefix codes (Golomb 1966; Gallager and Van Voorhis 1975): a gap g is its
// quotient by a divisor in unary and its remainder in truncated binary. At two probes and a rate of
// 1 % (a tenth of the bits on) it needs 1.350 log2(1/rate) bits per key where the entropy is 1.340
// and Rice's code, which allows only powers of two as divisor, needs 1.359. An arithmetic coder
// would come nearer by 0.7 % and decode a bit at a time.
//
// Bits are packed lowest first. A quotient q is q ones and a zero. A remainder r < divisor = d
// takes b - 1 or b bits, b = ceil(log2 d) and u = 2^b - d: if r < u, r in b - 1 bits; else y = r +
// u, y / 2 in b - 1 bits and then y mod 2. The string ends in zero bits to a whole byte.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace reprise::filter {

/// The best divisor for gaps between `listed` of `bits` positions: the least d for which
/// (1-p)^d + (1-p)^(d+1) <= 1, p = listed / bits (Gallager and Van Voorhis). 1 when half or more
/// are listed. @pre bits > 0, listed <= bits
[[nodiscard]] std::uint64_t golomb_divisor(std::uint64_t listed, std::uint64_t bits) noexcept;

/// No code of `listed` positions is shorter, the highest of which is `last`; at the best divisor it is
/// some per cent longer in the end. O(1).
/// @pre 0 < listed <= last + 1, 0 < divisor <= 2^40, listed * divisor < 2^64
[[nodiscard]] std::uint64_t least_code_bytes(std::uint64_t listed,
                                             std::uint64_t last,
                                             std::uint64_t divisor) noexcept;

/// Writes gaps. One thread.
class gap_writer {
public:
    /// @pre 0 < divisor <= 2^40
    explicit gap_writer(std::uint64_t divisor);

    /// The number of unlisted positions before the next listed one. @throws std::bad_alloc
    void put(std::uint64_t gap);

    [[nodiscard]] std::size_t bytes() const noexcept { return out_.size() + (used_ + 7) / 8; }

    /// The string, padded. Leaves the writer empty.
    [[nodiscard]] std::vector<std::byte> finish();

private:
    void put_bits(std::uint64_t value, unsigned count);

    std::vector<std::byte> out_;
    std::uint64_t divisor_;
    unsigned width_;        // b
    std::uint64_t shorts_;  // u
    std::uint64_t pending_ = 0;
    unsigned used_ = 0;  // bits of pending_
};

/// Reads gaps; total: every string yields gaps or an end. One thread, no allocation.
class gap_reader {
public:
    /// @pre 0 < divisor <= 2^40
    gap_reader(std::span<const std::byte> code, std::uint64_t divisor) noexcept;

    /// The next gap, if the string has one whole and it is at most `most`. At least one bit is used
    /// up by each; time is O(bits used / 64). @pre most <= 2^40
    [[nodiscard]] std::optional<std::uint64_t> next(std::uint64_t most) noexcept;

    /// Whether only the padding is left: fewer than eight bits, all zero.
    [[nodiscard]] bool is_at_end() noexcept;

private:
    void refill() noexcept;
    [[nodiscard]] std::optional<std::uint64_t> take(unsigned count) noexcept;

    std::span<const std::byte> rest_;
    std::uint64_t divisor_;
    unsigned width_;
    std::uint64_t shorts_;
    std::uint64_t most_quotient_;  // so that quotient times divisor can't overflow
    std::uint64_t window_ = 0;
    unsigned held_ = 0;  // bits of window_
};

}  // namespace reprise::filter
