#pragma once
// The Bloom filter as Bloom described it: m bits, k of them per key, anywhere.
//
// The fewest bits for a rate among filters that can be combined by words, and the form in which
// digests travel: filters of equal parameters unite and intersect bit by bit, and one halves into
// the filter that its keys would have made in half the bits, since its places are taken modulo m
// (indices.hpp). The price is a cache miss per probe; where that counts, see bloom.hpp and
// split_block.hpp.

#include "filter/bit_words.hpp"
#include "filter/filter_errc.hpp"
#include "filter/key_hash.hpp"
#include "filter/sizing.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace reprise::filter {

/// Memory    size.bits / 8 bytes, rounded up to words of 8; allocated and zeroed at construction.
/// Threads   one; const members may run at once.
/// Cost      insert and may_contain: two divisions, then a load per probe.
/// Errs      may_contain may be true for a key never inserted, at exact_rate(size, keys) plus
///           alias_rate(size.bits, keys); classic_rate is close to both together, unless the filter
///           or the rate is tiny. It is never false for one that was.
class standard_bloom {
public:
    /// @pre 0 < size.bits < 2^63, size.probes > 0
    /// @throws std::bad_alloc
    explicit standard_bloom(bloom_size size);

    /// A filter of these bits, place i in word i / 64 at bit i % 64, from the lowest. Bits past
    /// size.bits are put off. @pre as above, words.size() == words_for(size.bits)
    standard_bloom(bloom_size size, std::vector<std::uint64_t> words);

    void insert(key_hash key) noexcept { (void)insert_and_test(key); }

    /// Inserts, and returns what may_contain would have returned before.
    bool insert_and_test(key_hash key) noexcept;

    [[nodiscard]] bool may_contain(key_hash key) const noexcept;

    /// Makes this the filter of all keys of both, exactly as if they had been inserted here.
    /// @returns sizes_differ or probes_differ, and nothing is changed
    [[nodiscard]] boost::system::result<void> unite(const standard_bloom& other) noexcept;

    /// Keeps the bits that both have: every key that was in both is in it. Not the filter that the
    /// common keys alone would have made: bits that different keys set in each stay too, so its
    /// rate is higher than that one's, though no higher than either filter's.
    /// @returns as unite
    [[nodiscard]] boost::system::result<void> intersect(const standard_bloom& other) noexcept;

    /// The filter that the same keys make in half the bits, with as many probes.
    /// @returns odd_size; too_small when fewer bits than probes would be left
    /// @throws std::bad_alloc
    [[nodiscard]] boost::system::result<standard_bloom> folded() const;

    void clear() noexcept;

    [[nodiscard]] bloom_size size() const noexcept { return size_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return words_.size() * 8; }

    /// Bits that are on. O(bits).
    [[nodiscard]] std::uint64_t bits_on() const noexcept;

    /// The rate of this filter as it is, not of one like it: (bits on / bits)^probes. O(bits).
    [[nodiscard]] double false_positive_rate() const noexcept;

    /// The bits, as the constructor takes them. Valid until the filter changes or goes.
    [[nodiscard]] std::span<const std::uint64_t> words() const noexcept { return words_; }

    bool operator==(const standard_bloom&) const = default;

private:
    bloom_size size_;
    std::vector<std::uint64_t> words_;
};

}  // namespace reprise::filter
