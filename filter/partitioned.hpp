#pragma once
// A Bloom filter whose bits are cut into k equal partitions, one for each probe.
//
// Every key owns exactly k different bits, so no key is found more easily than others because its
// places coincide (Almeida, Baquero, Preguica, Hutchison, "Scalable Bloom Filters", 2007, section
// 3), and each partition is a filter of one probe of its own: the rate has a closed form that is
// exact (partitioned_rate). The price is a rate a little above the standard filter's, which only
// small filters show.
//
// Places are not those of `indices`. With double hashing, plain or enhanced, a key has one of s * s
// sequences of places in partitions of s bits, so that n keys make a share n / s^2 of all others
// false positives, whatever k: in a filter for 1,000 keys at 1 % that is a twentieth of the rate
// (in a standard filter, whose s is m, a thousandth). Here each place is mixed anew from all 128
// bits of the hash, at two multiplications per probe.

#include "filter/filter_errc.hpp"
#include "filter/key_hash.hpp"
#include "filter/sizing.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace reprise::filter {

/// Memory    size.bits / 8 bytes, rounded up to words of 8; allocated and zeroed at construction.
/// Threads   one; const members may run at once.
/// Errs      may_contain may be true for a key never inserted, at partitioned_rate(size, keys); it
///           is never false for one that was.
class partitioned_bloom {
public:
    /// @pre size.probes > 0, and size.bits a positive multiple of it below 2^63: partitioned_size
    ///      makes such
    /// @throws std::bad_alloc
    explicit partitioned_bloom(bloom_size size);

    void insert(key_hash key) noexcept { (void)insert_and_test(key); }

    /// Inserts, and returns what may_contain would have returned before.
    bool insert_and_test(key_hash key) noexcept;

    [[nodiscard]] bool may_contain(key_hash key) const noexcept;

    /// As standard_bloom's, with the same errors.
    [[nodiscard]] boost::system::result<void> unite(const partitioned_bloom& other) noexcept;
    [[nodiscard]] boost::system::result<void> intersect(const partitioned_bloom& other) noexcept;

    /// The filter that the same keys make in partitions half as large.
    /// @returns odd_size when a partition has an odd number of bits, too_small when it has two
    /// @throws std::bad_alloc
    [[nodiscard]] boost::system::result<partitioned_bloom> folded() const;

    void clear() noexcept;

    [[nodiscard]] bloom_size size() const noexcept { return size_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return words_.size() * 8; }

    /// Bits that are on, in all or in one partition. O(bits). @pre partition < size().probes
    [[nodiscard]] std::uint64_t bits_on() const noexcept;
    [[nodiscard]] std::uint64_t bits_on(unsigned partition) const noexcept;

    /// The rate of this filter as it is: the product of its partitions' fills. O(bits).
    [[nodiscard]] double false_positive_rate() const noexcept;

    /// The bits: place i of partition j is bit j * size().bits / size().probes + i, in words as
    /// standard_bloom has them.
    [[nodiscard]] std::span<const std::uint64_t> words() const noexcept { return words_; }

    bool operator==(const partitioned_bloom&) const = default;

private:
    [[nodiscard]] std::uint64_t partition_bits() const noexcept {
        return size_.bits / size_.probes;
    }

    bloom_size size_;
    std::vector<std::uint64_t> words_;
};

}  // namespace reprise::filter
