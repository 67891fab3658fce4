#include "filter/union_estimate.hpp"

#include "filter/bit_words.hpp"
#include "filter/estimators.hpp"

#include <algorithm>
#include <bit>

namespace reprise::filter {
namespace {

/// With fewer bits off a union says too little of what else is in it: chance alone would turn an eighth.
constexpr std::uint64_t least_off = 64;

bool folds_to(std::uint64_t larger, std::uint64_t smaller) noexcept {
    return larger == smaller || (smaller % 64 == 0 && larger % smaller == 0);
}

// What its owner says, and no more than there can be.
std::uint64_t listed_in(const digest& one) {
    return std::min(one.stamp().keys, one.shape().bits);
}

}  // namespace

void union_estimate::fold_to(std::uint64_t bits) {
    const auto words = static_cast<std::size_t>(words_for(bits));
    for (auto at = words; at < words_.size(); ++at) {
        words_[at % words] |= words_[at];
    }
    words_.resize(words);
    size_.bits = bits;
}

bool union_estimate::add(const digest& next) {
    const auto& shape = next.shape();
    if (shape.layout != digest_layout::standard || shape.bits < 2) {
        return false;
    }
    if (sum_.digests == 0) {
        words_.assign(next.words().begin(), next.words().end());
        seed_ = next.stamp().seed;
        size_ = {.bits = shape.bits, .probes = shape.probes};
        sum_.keys = estimate_keys(size_, count_on(words_)).keys;
        sum_.listed = listed_in(next);
        sum_.digests = 1;
        return true;
    }
    const auto [least, most] = std::minmax(size_.bits, shape.bits);
    if (next.stamp().seed != seed_ || shape.probes != size_.probes || !folds_to(most, least)) {
        return false;
    }
    fold_to(least);
    filter_pair pair{.size = size_};
    const auto words = next.words();
    for (std::size_t i = 0; i < words_.size(); ++i) {
        std::uint64_t word = 0;
        for (auto at = i; at < words.size(); at += words_.size()) {
            word |= words[at];
        }
        pair.a_on += static_cast<unsigned>(std::popcount(word));
        pair.b_on += static_cast<unsigned>(std::popcount(words_[i]));
        words_[i] |= word;
        pair.either_on += static_cast<unsigned>(std::popcount(words_[i]));
    }
    const auto whole = next.estimated_keys();
    const bool can_be_told = size_.bits - pair.b_on >= least_off;
    sum_.keys += can_be_told ? std::min(estimate_difference(pair).keys, whole) : whole;
    sum_.listed += listed_in(next);
    ++sum_.digests;
    return true;
}

}  // namespace reprise::filter
