// See partitioned.hpp. A place is the next number of the key's generator, read as a fraction of one
// and multiplied by the bits of a partition. In half as many bits that makes half the place, so
// that folding merges neighbours.

#include "filter/partitioned.hpp"

#include "filter/bit_words.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace reprise::filter {

namespace {

__extension__ typedef unsigned __int128 uint128;  // not ISO C++, and on every platform we build for

/// SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014) with the
/// key's words as its state and its increment, which must be odd.
class places {
public:
    places(key_hash key, std::uint64_t partition_bits) noexcept
        : state_{key.low},
          step_{key.high | 1},
          bits_{partition_bits} {}

    /// The place in the next partition, counted from its first bit.
    std::uint64_t next() noexcept {
        auto mixed = state_;
        state_ += step_;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
        mixed ^= mixed >> 31;
        return static_cast<std::uint64_t>((uint128{mixed} * bits_) >> 64);
    }

private:
    std::uint64_t state_;
    std::uint64_t step_;
    std::uint64_t bits_;
};

/// Bit i of the result is on when bit 2i or 2i + 1 is.
constexpr std::uint64_t pairs_on(std::uint64_t bits) noexcept {
    bits = (bits | bits >> 1) & 0x5555555555555555;
    // Each step halves the gaps: one bit in 2, two in 4, four in 8, and so on.
    bits = (bits | bits >> 1) & 0x3333333333333333;
    bits = (bits | bits >> 2) & 0x0f0f0f0f0f0f0f0f;
    bits = (bits | bits >> 4) & 0x00ff00ff00ff00ff;
    bits = (bits | bits >> 8) & 0x0000ffff0000ffff;
    return (bits | bits >> 16) & 0x00000000ffffffff;
}
static_assert(pairs_on(0x8000'0000'0000'0006) == 0x8000'0003);

}  // namespace

partitioned_bloom::partitioned_bloom(bloom_size size) : size_{size}, words_(words_for(size.bits)) {
    assert(size.probes > 0 && size.bits > 0 && size.bits % size.probes == 0);
    assert(size.bits < std::uint64_t{1} << 63);
}

bool partitioned_bloom::insert_and_test(key_hash key) noexcept {
    const auto step = partition_bits();
    places at{key, step};
    std::uint64_t was_off = 0;
    for (std::uint64_t first = 0; first < size_.bits; first += step) {
        const auto place = first + at.next();
        auto& word = words_[place / 64];
        was_off |= ~word & bit_at(place);
        word |= bit_at(place);
    }
    return was_off == 0;
}

bool partitioned_bloom::may_contain(key_hash key) const noexcept {
    const auto step = partition_bits();
    places at{key, step};
    for (std::uint64_t first = 0; first < size_.bits; first += step) {
        const auto place = first + at.next();
        if ((words_[place / 64] & bit_at(place)) == 0) {
            return false;
        }
    }
    return true;
}

boost::system::result<void> partitioned_bloom::unite(const partitioned_bloom& other) noexcept {
    if (auto checked = combinable(size_, other.size_); !checked) {
        return checked;
    }
    for (std::size_t i = 0; i < words_.size(); ++i) {
        words_[i] |= other.words_[i];
    }
    return {};
}

boost::system::result<void> partitioned_bloom::intersect(const partitioned_bloom& other) noexcept {
    if (auto checked = combinable(size_, other.size_); !checked) {
        return checked;
    }
    for (std::size_t i = 0; i < words_.size(); ++i) {
        words_[i] &= other.words_[i];
    }
    return {};
}

boost::system::result<partitioned_bloom> partitioned_bloom::folded() const {
    if (partition_bits() % 2 != 0) {
        return filter_errc::odd_size;
    }
    if (partition_bits() / 2 < 2) {
        return filter_errc::too_small;
    }
    // No partition begins within a pair of neighbours, so they need not be told apart.
    partitioned_bloom folded{{size_.bits / 2, size_.probes}};
    for (std::uint64_t word = 0; word < words_.size(); ++word) {
        folded.words_[word / 2] |= pairs_on(words_[word]) << (word % 2 * 32);
    }
    return folded;
}

void partitioned_bloom::clear() noexcept {
    std::fill(words_.begin(), words_.end(), 0);
}

std::uint64_t partitioned_bloom::bits_on() const noexcept {
    return count_on(words_);
}

std::uint64_t partitioned_bloom::bits_on(unsigned partition) const noexcept {
    assert(partition < size_.probes);
    const auto first = partition * partition_bits();
    std::uint64_t on = 0;
    for (std::uint64_t done = 0; done < partition_bits(); done += 64) {
        const auto bits = lowest(bits_from(words_, first + done), partition_bits() - done);
        on += static_cast<unsigned>(std::popcount(bits));
    }
    return on;
}

double partitioned_bloom::false_positive_rate() const noexcept {
    double rate = 1;
    for (unsigned partition = 0; partition < size_.probes; ++partition) {
        rate *= static_cast<double>(bits_on(partition)) / static_cast<double>(partition_bits());
    }
    return rate;
}

}  // namespace reprise::filter
