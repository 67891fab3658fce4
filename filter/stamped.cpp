// See stamped.hpp.

#include "filter/stamped.hpp"

#include "filter/bit_words.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace reprise::filter {

double stamped_gone(unsigned generations) noexcept {
    assert(generations > 1);
    return 1 / (2.0 * generations - 1);
}

std::uint64_t stamped_keys(std::uint64_t keys, unsigned generations) noexcept {
    assert(generations > 1);
    return keys + (keys + generations - 2) / (generations - 1);
}

stamped_bloom::stamped_bloom(bloom_size size,
                             unsigned generations,
                             std::pmr::memory_resource* memory)
    : size_{size},
      generations_{generations},
      words_(words_for(size.bits) * 4, memory) {
    assert(size.bits > 0 && size.bits < std::uint64_t{1} << 60 && size.probes > 0);
    assert(generations >= 2 && generations <= most_generations);
    swept_ = words_.size();
}

stamped_bloom::stamped_bloom(bloom_size size,
                             unsigned generations,
                             std::span<std::uint64_t> words) noexcept
    : size_{size},
      generations_{generations},
      words_{words} {
    assert(words.size() == words_for(size.bits) * 4);
    swept_ = words_.size();
}

void stamped_bloom::resume(tally counted) noexcept {
    assert(counted.current >= 1 && counted.current <= stamps && counted.swept <= words_.size());
    current_ = static_cast<unsigned>(counted.current);
    on_ = counted.on;
    swept_ = counted.swept;
}

void stamped_bloom::recount() noexcept {
    swept_ = 0;
    on_ = 0;
    for (const auto word : words_) {
        on_ += static_cast<unsigned>(std::popcount(groups_on(word)));
    }
}

unsigned stamped_bloom::age_of(unsigned stamp) const noexcept {
    return stamp == 0 ? generations_ + 1 : (current_ + stamps - stamp) % stamps;
}

unsigned stamped_bloom::stamp_of(unsigned age) const noexcept {
    return (current_ + stamps - 1 - age) % stamps + 1;
}

unsigned stamped_bloom::age_at(std::uint64_t place) const noexcept {
    return age_of(stamp_at(place));
}

void stamped_bloom::stamp(std::uint64_t place, unsigned stamp) noexcept {
    auto& word = words_[place / per_word];
    const auto shift = place % per_word * 4;
    on_ += (word >> shift & stamps) == 0 ? 1 : 0;
    word = (word & ~(std::uint64_t{stamps} << shift)) | std::uint64_t{stamp} << shift;
}

void stamped_bloom::make_younger(std::uint64_t place, unsigned age) noexcept {
    if (age < generations_ && age < age_at(place)) {
        stamp(place, stamp_of(age));
    }
}

bool stamped_bloom::may_contain(key_hash key) const noexcept {
    indices at{key, size_.bits};
    for (unsigned probe = 0; probe < size_.probes; ++probe) {
        if (stamp_at(at.next()) == 0) {
            return false;
        }
    }
    return true;
}

boost::system::result<void> stamped_bloom::unite(const stamped_bloom& other) noexcept {
    if (auto checked = combinable(size_, other.size_); !checked) {
        return checked;
    }
    if (generations_ != other.generations_) {
        return filter_errc::sizes_differ;
    }
    sweep();
    for (std::uint64_t place = 0; place < size_.bits; ++place) {
        make_younger(place, other.age_at(place));
    }
    return {};
}

boost::system::result<stamped_bloom> stamped_bloom::folded() const {
    if (size_.bits % 2 != 0) {
        return filter_errc::odd_size;
    }
    const auto half = size_.bits / 2;
    if (half < size_.probes) {
        return filter_errc::too_small;
    }
    stamped_bloom folded{{half, size_.probes}, generations_};
    for (std::uint64_t place = 0; place < half; ++place) {
        folded.make_younger(place, std::min(age_at(place), age_at(half + place)));
    }
    return folded;
}

standard_bloom stamped_bloom::snapshot() const {
    std::vector<std::uint64_t> words(words_for(size_.bits));
    for (std::uint64_t place = 0; place < size_.bits; ++place) {
        words[place / 64] |= stamp_at(place) != 0 ? bit_at(place) : 0;
    }
    return {size_, std::move(words)};
}

void stamped_bloom::clear() noexcept {
    std::fill(words_.begin(), words_.end(), 0);
    current_ = 1;
    on_ = 0;
    swept_ = words_.size();
}

double stamped_bloom::false_positive_rate() const noexcept {
    return std::pow(static_cast<double>(on_) / static_cast<double>(size_.bits), size_.probes);
}

bool stamped_bloom::operator==(const stamped_bloom& other) const noexcept {
    if (size_ != other.size_ || generations_ != other.generations_) {
        return false;
    }
    for (std::uint64_t place = 0; place < size_.bits; ++place) {
        if (age_at(place) != other.age_at(place)) {
            return false;
        }
    }
    return true;
}

}  // namespace reprise::filter
