// See partitioned.hpp. A key's places are those of `indices` modulo a partition's bits, the i-th
// one in partition i: any two of them are as good as independent, and a fold of each partition is a
// fold of the filter.

#include "filter/partitioned.hpp"

#include "filter/bit_words.hpp"
#include "filter/indices.hpp"

#include <algorithm>
#include <cassert>

namespace reprise::filter {

partitioned_bloom::partitioned_bloom(bloom_size size) : size_{size}, words_(words_for(size.bits)) {
    assert(size.probes > 0 && size.bits > 0 && size.bits % size.probes == 0);
    assert(size.bits < std::uint64_t{1} << 63);
}

bool partitioned_bloom::insert_and_test(key_hash key) noexcept {
    indices at{key, partition_bits()};
    std::uint64_t was_off = 0;
    for (std::uint64_t first = 0; first < size_.bits; first += partition_bits()) {
        const auto place = first + at.next();
        auto& word = words_[place / 64];
        was_off |= ~word & bit_at(place);
        word |= bit_at(place);
    }
    return was_off == 0;
}

bool partitioned_bloom::may_contain(key_hash key) const noexcept {
    const auto step = partition_bits();
    indices at{key, step};
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
    const auto whole = partition_bits();
    const auto half = whole / 2;
    if (whole % 2 != 0) {
        return filter_errc::odd_size;
    }
    if (half < 2) {
        return filter_errc::too_small;
    }
    partitioned_bloom folded{{size_.bits / 2, size_.probes}};
    for (unsigned partition = 0; partition < size_.probes; ++partition) {
        merge_bits(words_, partition * whole, half, folded.words_, partition * half);
        merge_bits(words_, partition * whole + half, half, folded.words_, partition * half);
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
