#include "filter/standard.hpp"

#include "filter/indices.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace reprise::filter {

standard_bloom::standard_bloom(bloom_size size)
    : standard_bloom{size, std::vector<std::uint64_t>(words_for(size.bits))} {}

standard_bloom::standard_bloom(bloom_size size, std::vector<std::uint64_t> words)
    : size_{size},
      words_{std::move(words)} {
    assert(size.bits > 0 && size.bits < std::uint64_t{1} << 63 && size.probes > 0);
    assert(words_.size() == words_for(size.bits));
    if (size.bits % 64 != 0) {
        words_.back() = lowest(words_.back(), size.bits % 64);
    }
}

bool standard_bloom::insert_and_test(key_hash key) noexcept {
    indices at{key, size_.bits};
    std::uint64_t was_off = 0;
    for (unsigned probe = 0; probe < size_.probes; ++probe) {
        const auto place = at.next();
        auto& word = words_[place / 64];
        was_off |= ~word & bit_at(place);
        word |= bit_at(place);
    }
    return was_off == 0;
}

bool standard_bloom::may_contain(key_hash key) const noexcept {
    // At the first bit that is off the answer is known: after two probes on average, when half of
    // the bits are on.
    indices at{key, size_.bits};
    for (unsigned probe = 0; probe < size_.probes; ++probe) {
        const auto place = at.next();
        if ((words_[place / 64] & bit_at(place)) == 0) {
            return false;
        }
    }
    return true;
}

boost::system::result<void> standard_bloom::unite(const standard_bloom& other) noexcept {
    if (auto checked = combinable(size_, other.size_); !checked) {
        return checked;
    }
    for (std::size_t i = 0; i < words_.size(); ++i) {
        words_[i] |= other.words_[i];
    }
    return {};
}

boost::system::result<void> standard_bloom::intersect(const standard_bloom& other) noexcept {
    if (auto checked = combinable(size_, other.size_); !checked) {
        return checked;
    }
    for (std::size_t i = 0; i < words_.size(); ++i) {
        words_[i] &= other.words_[i];
    }
    return {};
}

boost::system::result<standard_bloom> standard_bloom::folded() const {
    if (size_.bits % 2 != 0) {
        return filter_errc::odd_size;
    }
    const auto half = size_.bits / 2;
    if (half < size_.probes) {
        return filter_errc::too_small;
    }
    standard_bloom folded{{half, size_.probes}};
    for (std::uint64_t place = 0; place < half; place += 64) {
        const auto both = bits_from(words_, place) | bits_from(words_, half + place);
        merge_bits(folded.words_, place, lowest(both, half - place));
    }
    return folded;
}

void standard_bloom::clear() noexcept {
    std::fill(words_.begin(), words_.end(), 0);
}

std::uint64_t standard_bloom::bits_on() const noexcept {
    return count_on(words_);
}

double standard_bloom::false_positive_rate() const noexcept {
    return std::pow(static_cast<double>(bits_on()) / static_cast<double>(size_.bits), size_.probes);
}

}  // namespace reprise::filter
