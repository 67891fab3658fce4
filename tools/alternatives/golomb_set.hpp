#pragma once
// A Golomb-coded set (Putze, Sanders, Singler: "Cache-, Hash- and Space-Efficient Bloom Filters",
// WEA 2007, section 4): keys hashed to [0, keys / rate), sorted, their gaps Golomb-coded.
//
// It is a Bloom filter of one probe, compressed: within 0.1 bits a key of the entropy of such a
// set, log2(1 / rate) + 1.44, and nothing is smaller that lets the hashes be read back. The price
// is the query, which decodes a block of gaps. Static; two of them merge like sorted lists.

#include "filter/key_hash.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace reprise::alternatives {

/// Memory    bits() / 8 bytes, and 16 an index entry, one for each `block` keys.
/// Threads   immutable: any number.
/// Errs      towards yes, at rate(); never no for a key that it was made from.
class golomb_set {
public:
    static constexpr std::uint64_t block = 128;  ///< keys that a query decodes at most

    /// Duplicates, and keys whose hashes meet, count once. O(keys log keys).
    /// @pre 0 < rate < 1, keys.size() / rate < 2^62 @throws std::bad_alloc
    golomb_set(std::span<const filter::key_hash> keys, double rate);

    [[nodiscard]] bool may_contain(filter::key_hash key) const noexcept;

    /// Distinct hashes.
    [[nodiscard]] std::uint64_t keys() const noexcept { return keys_; }
    /// keys() / range: exactly the share of strangers that are taken for a key.
    [[nodiscard]] double rate() const noexcept;
    /// The code itself: what goes on the wire, but for a header.
    [[nodiscard]] std::uint64_t wire_bits() const noexcept { return bits_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept;

    /// All hashes in order: the code read back.
    [[nodiscard]] std::vector<std::uint64_t> values() const;

private:
    /// Reads gaps one after the other.
    class decoder {
    public:
        decoder(const golomb_set& set, std::uint64_t bit) : set_{set}, bit_{bit} {}
        [[nodiscard]] std::uint64_t gap() noexcept;

    private:
        [[nodiscard]] std::uint64_t take(unsigned bits) noexcept;

        const golomb_set& set_;
        std::uint64_t bit_;
    };
    /// Where a block begins, and the least value that it may hold.
    struct entry {
        std::uint64_t from;
        std::uint64_t bit;
    };

    [[nodiscard]] std::uint64_t value_of(filter::key_hash key) const noexcept;
    void append(std::uint64_t value, unsigned bits);
    void append_gap(std::uint64_t gap);

    std::uint64_t range_;
    std::uint64_t divisor_;  // Golomb's parameter
    std::uint64_t keys_ = 0;
    std::uint64_t bits_ = 0;
    std::vector<std::uint64_t> words_;
    std::vector<entry> index_;
};

}  // namespace reprise::alternatives
