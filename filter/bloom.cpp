// See bloom.hpp. Relaxed order everywhere: a bit carries no other data with it, so there is nothing
// that a stronger order would publish.

#include "filter/bloom.hpp"

#include "filter/blocks.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace reprise::filter {

blocked_bloom::blocked_bloom(std::uint64_t blocks) : blocks_{blocks}, lines_{new line[blocks]()} {
    assert(blocks > 0 && blocks <= UINT32_MAX);
}

blocked_bloom::blocked_bloom(std::uint64_t blocks, std::byte* memory) noexcept
    : blocks_{blocks},
      lines_{reinterpret_cast<line*>(memory), release{.is_handed_in = true}} {
    static_assert(sizeof(line) == block_bytes && std::atomic<std::uint64_t>::is_always_lock_free);
    assert(blocks > 0 && blocks <= UINT32_MAX);
    assert(reinterpret_cast<std::uintptr_t>(memory) % alignof(line) == 0);
}

void blocked_bloom::release::operator()(line* lines) const noexcept {
    if (!is_handed_in) {
        delete[] lines;
    }
}

bool blocked_bloom::may_contain(key_hash key) const noexcept {
    const auto& words = lines_[block_of(key, blocks_)].words;
    return is_on_in_block(key, [&words](unsigned lane) noexcept {
        return words[lane].load(std::memory_order_relaxed);
    });
}

void blocked_bloom::prefetch(key_hash key) const noexcept {
    __builtin_prefetch(&lines_[block_of(key, blocks_)]);
}

bool blocked_bloom::insert_and_test(key_hash key) noexcept {
    auto& words = lines_[block_of(key, blocks_)].words;
    bool all_on = true;
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const auto bit = std::uint64_t{1} << place_in(key, lane);
        if ((words[lane].load(std::memory_order_relaxed) & bit) != 0) {
            continue;
        }
        // Another thread may have been quicker; then the bit was on before ours.
        all_on &= (words[lane].fetch_or(bit, std::memory_order_relaxed) & bit) != 0;
    }
    return all_on;
}

void blocked_bloom::clear(std::uint64_t first, std::uint64_t last) noexcept {
    assert(first <= last && last <= blocks_);
    for (auto block = first; block < last; ++block) {
        write_block(block, {});
    }
}

boost::system::result<void> blocked_bloom::unite(const blocked_bloom& other) noexcept {
    if (blocks_ != other.blocks_) {
        return filter_errc::sizes_differ;
    }
    for (std::uint64_t block = 0; block < blocks_; ++block) {
        for (unsigned lane = 0; lane < lanes; ++lane) {
            lines_[block].words[lane].fetch_or(
                other.lines_[block].words[lane].load(std::memory_order_relaxed),
                std::memory_order_relaxed);
        }
    }
    return {};
}

boost::system::result<void> blocked_bloom::intersect(const blocked_bloom& other) noexcept {
    if (blocks_ != other.blocks_) {
        return filter_errc::sizes_differ;
    }
    for (std::uint64_t block = 0; block < blocks_; ++block) {
        for (unsigned lane = 0; lane < lanes; ++lane) {
            lines_[block].words[lane].fetch_and(
                other.lines_[block].words[lane].load(std::memory_order_relaxed),
                std::memory_order_relaxed);
        }
    }
    return {};
}

boost::system::result<blocked_bloom> blocked_bloom::folded() const {
    if (blocks_ % 2 != 0) {
        return filter_errc::odd_size;
    }
    blocked_bloom half{blocks_ / 2};
    for (std::uint64_t block = 0; block < half.blocks_; ++block) {
        auto words = read_block(2 * block);
        const auto other = read_block(2 * block + 1);
        for (unsigned lane = 0; lane < lanes; ++lane) {
            words[lane] |= other[lane];
        }
        half.write_block(block, words);
    }
    return half;
}

std::uint64_t blocked_bloom::bits_on() const noexcept {
    std::uint64_t on = 0;
    for (std::uint64_t block = 0; block < blocks_; ++block) {
        for (const auto& word : lines_[block].words) {
            on += static_cast<unsigned>(std::popcount(word.load(std::memory_order_relaxed)));
        }
    }
    return on;
}

blocked_bloom::estimate blocked_bloom::measure(std::uint64_t sample) const noexcept {
    const auto asked = std::clamp<std::uint64_t>(sample, 1, blocks_);
    std::uint64_t on = 0;
    double rates = 0;
    for (std::uint64_t i = 0; i < asked; ++i) {
        __extension__ using uint128 = unsigned __int128;
        const auto block = static_cast<std::uint64_t>(uint128{i} * blocks_ / asked);
        double rate = 1;
        for (const auto& word : lines_[block].words) {
            const auto set = static_cast<unsigned>(
                std::popcount(word.load(std::memory_order_relaxed)));
            on += set;
            rate *= static_cast<double>(set) / lane_bits;
        }
        rates += rate;
    }
    const auto bits = static_cast<double>(asked * block_bits);
    // A filter with every bit on says only "very many"; one bit off is the most it can tell.
    const double off = std::max(1.0, bits - static_cast<double>(on)) / bits;
    const double places = static_cast<double>(blocks_) * lane_bits;  // of a key in one lane
    return {.fill = static_cast<double>(on) / bits,
            // Not -0, which would be shown.
            .keys = on == 0 ? 0 : std::log(off) / std::log1p(-1.0 / places),
            .false_positive_rate = rates / static_cast<double>(asked)};
}

std::array<std::uint64_t, lanes> blocked_bloom::read_block(std::uint64_t block) const noexcept {
    assert(block < blocks_);
    std::array<std::uint64_t, lanes> read{};
    for (unsigned lane = 0; lane < lanes; ++lane) {
        read[lane] = lines_[block].words[lane].load(std::memory_order_relaxed);
    }
    return read;
}

void blocked_bloom::write_block(std::uint64_t block,
                                const std::array<std::uint64_t, lanes>& words) noexcept {
    assert(block < blocks_);
    for (unsigned lane = 0; lane < lanes; ++lane) {
        lines_[block].words[lane].store(words[lane], std::memory_order_relaxed);
    }
}

}  // namespace reprise::filter
