// See split_block.hpp.

#include "filter/split_block.hpp"

#include "filter/lane_rates.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace reprise::filter {

namespace split_block_kernels {

bool put_all_plain(block_words& words, std::uint64_t hash) noexcept {
    std::uint32_t on = 1;
#pragma GCC unroll 8
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const auto place = place_in(hash, lane);
        on &= words[lane] >> place;
        words[lane] |= std::uint32_t{1} << place;
    }
    return on != 0;
}

#if defined(__x86_64__)

const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;

[[gnu::target("avx2")]] bool put_all_avx2(block_words& words, std::uint64_t hash) noexcept {
    auto* const at = reinterpret_cast<__m256i*>(words.data());
    const auto block = _mm256_load_si256(at);
    const auto halves = _mm256_set1_epi64x(static_cast<long long>(hash));
    const auto counts = _mm256_load_si256(reinterpret_cast<const __m256i*>(&lane_counts));
    const auto places = _mm256_and_si256(_mm256_srlv_epi32(halves, counts),
                                         _mm256_set1_epi32(lane_bits - 1));
    const auto bits = _mm256_sllv_epi32(_mm256_set1_epi32(1), places);
    _mm256_store_si256(at, _mm256_or_si256(block, bits));
    return _mm256_testc_si256(block, bits) != 0;
}

#else

const bool has_avx2 = false;

bool put_all_avx2(block_words& words, std::uint64_t hash) noexcept {
    return put_all_plain(words, hash);
}

#endif

}  // namespace split_block_kernels

namespace {

namespace kernels = split_block_kernels;

}  // namespace

double split_block_rate(std::uint64_t blocks, double keys) noexcept {
    assert(blocks > 0 && keys >= 0);
    return lanes_rate(split_lanes, split_lane_bits, blocks, keys);
}

std::uint64_t split_blocks_for(std::uint64_t keys, double rate) noexcept {
    assert(keys > 0 && rate > 0 && rate < 1);
    return least(1, UINT32_MAX, [&](auto blocks) {
        return split_block_rate(blocks, static_cast<double>(keys)) <= rate;
    });
}

std::uint64_t split_block_capacity(std::uint64_t blocks, double rate) noexcept {
    assert(blocks > 0 && rate > 0 && rate < 1);
    return least(1,
                 most_keys,
                 [&](auto keys) {
                     return split_block_rate(blocks, static_cast<double>(keys)) > rate;
                 }) -
           1;
}

split_block_bloom::split_block_bloom(std::uint64_t blocks) : blocks_{blocks} {
    assert(blocks > 0 && blocks <= UINT32_MAX);
}

bool split_block_bloom::insert_and_test(key_hash key) noexcept {
    auto& words = blocks_[place_of(key)].words;
    return kernels::has_avx2 ? kernels::put_all_avx2(words, key.high)
                             : kernels::put_all_plain(words, key.high);
}

void split_block_bloom::may_contain(std::span<const key_hash> keys,
                                    std::span<bool> answers) const noexcept {
    assert(keys.size() == answers.size());
    // As many as a core keeps on their way at once, and half as many again.
    constexpr std::size_t ahead = 24;
    for (std::size_t i = 0; i < std::min(ahead, keys.size()); ++i) {
        prefetch(keys[i]);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (i + ahead < keys.size()) {
            prefetch(keys[i + ahead]);
        }
        answers[i] = may_contain(keys[i]);
    }
}

boost::system::result<void> split_block_bloom::unite(const split_block_bloom& other) noexcept {
    if (blocks() != other.blocks()) {
        return filter_errc::sizes_differ;
    }
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        for (unsigned lane = 0; lane < split_lanes; ++lane) {
            blocks_[i].words[lane] |= other.blocks_[i].words[lane];
        }
    }
    return {};
}

boost::system::result<void> split_block_bloom::intersect(const split_block_bloom& other) noexcept {
    if (blocks() != other.blocks()) {
        return filter_errc::sizes_differ;
    }
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        for (unsigned lane = 0; lane < split_lanes; ++lane) {
            blocks_[i].words[lane] &= other.blocks_[i].words[lane];
        }
    }
    return {};
}

boost::system::result<split_block_bloom> split_block_bloom::folded() const {
    if (blocks() % 2 != 0) {
        return filter_errc::odd_size;
    }
    split_block_bloom half{blocks() / 2};
    for (std::size_t i = 0; i < half.blocks_.size(); ++i) {
        for (unsigned lane = 0; lane < split_lanes; ++lane) {
            half.blocks_[i].words[lane] = blocks_[2 * i].words[lane] |
                                          blocks_[2 * i + 1].words[lane];
        }
    }
    return half;
}

std::uint64_t split_block_bloom::bits_on() const noexcept {
    std::uint64_t on = 0;
    for (const auto& one : blocks_) {
        for (const auto word : one.words) {
            on += static_cast<unsigned>(std::popcount(word));
        }
    }
    return on;
}

split_block_bloom::estimate split_block_bloom::measure() const noexcept {
    std::uint64_t on = 0;
    double rates = 0;
    for (const auto& one : blocks_) {
        double rate = 1;
        for (const auto word : one.words) {
            const auto set = static_cast<unsigned>(std::popcount(word));
            on += set;
            rate *= static_cast<double>(set) / split_lane_bits;
        }
        rates += rate;
    }
    const double bits = static_cast<double>(bytes()) * 8;
    const double places = static_cast<double>(blocks()) * split_lane_bits;  // of a key in one lane
    // A filter with every bit on says only "very many"; one bit off is the most it can tell.
    const double off = std::max(1.0, bits - static_cast<double>(on)) / bits;
    return {.fill = static_cast<double>(on) / bits,
            .keys = std::log(off) / std::log1p(-1.0 / places),
            .false_positive_rate = rates / static_cast<double>(blocks())};
}

}  // namespace reprise::filter
