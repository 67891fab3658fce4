// See digest.hpp. Checksum, bits on and rate are computed once, when the digest is made: each is a
// pass over all of it, and statistics ask often.

#define XXH_INLINE_ALL
#include "filter/digest.hpp"

#include "filter/bit_words.hpp"
#include "filter/blocks.hpp"
#include "filter/indices.hpp"
#include "filter/news_bound.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

namespace reprise::filter {

// The bits' bytes are lowest first, and are summed and sent as they lie in memory.
static_assert(std::endian::native == std::endian::little);

namespace {

constexpr double most_bits_a_key = 20;  // of a reader's memory

double product_of_fills(const std::uint64_t* block) noexcept {
    double product = 1;
    for (unsigned lane = 0; lane < lanes; ++lane) {
        product *= static_cast<double>(std::popcount(block[lane])) / lane_bits;
    }
    return product;
}

double rate_of(const digest_shape& shape,
               std::span<const std::uint64_t> words,
               std::uint64_t bits_on) noexcept {
    if (shape.layout == digest_layout::standard) {
        return rate_of_fill(shape, static_cast<double>(bits_on) / static_cast<double>(shape.bits));
    }
    double rates = 0;
    for (std::size_t at = 0; at < words.size(); at += lanes) {
        rates += product_of_fills(&words[at]);
    }
    return rates * lanes / static_cast<double>(words.size());
}

digest_shape shape_of(bloom_size size) noexcept {
    return {.layout = digest_layout::standard, .bits = size.bits, .probes = size.probes};
}

line_words words_of(const blocked_bloom& filter) {
    line_words words(static_cast<std::size_t>(filter.blocks()) * lanes);
    auto out = words.begin();
    for (std::uint64_t block = 0; block < filter.blocks(); ++block) {
        const auto read = filter.read_block(block);
        out = std::copy(read.begin(), read.end(), out);
    }
    return words;
}

digest_shape shape_of(const blocked_bloom& filter) noexcept {
    return {
        .layout = digest_layout::blocked, .bits = filter.blocks() * block_bits, .probes = lanes};
}

}  // namespace

bool is_valid(const digest_shape& shape) noexcept {
    if (shape.bits == 0 || shape.bits > most_digest_bits || shape.probes == 0 ||
        shape.probes > most_digest_probes) {
        return false;
    }
    switch (shape.layout) {
    case digest_layout::standard: return true;
    case digest_layout::blocked: return shape.probes == lanes && shape.bits % block_bits == 0;
    }
    return false;
}

bloom_size digest_size(std::uint64_t keys, double rate) noexcept {
    const auto wanted = static_cast<double>(keys);
    double least = std::numeric_limits<double>::infinity();
    bloom_size best{.bits = most_digest_bits, .probes = most_digest_probes};
    for (unsigned probes = 1; probes <= most_digest_probes; ++probes) {
        // classic_rate solved for bits: a bit is on with rate^(1/probes).
        const double on = std::pow(rate, 1.0 / probes);
        const double exact = -(probes * wanted) / std::log1p(-on);
        const auto capped = std::min(std::ceil(exact / 64) * 64, double(most_digest_bits));
        const bloom_size size{.bits = static_cast<std::uint64_t>(capped), .probes = probes};
        if (exact <= most_bits_a_key * wanted) {
            return size;
        }
        if (exact < least) {
            least = exact;
            best = size;
        }
    }
    return best;
}

digest::digest(digest_shape shape, line_words words, digest_stamp stamp)
    : shape_{shape},
      stamp_{stamp},
      words_{std::move(words)} {
    assert(is_valid(shape));
    assert(words_.size() == words_for(shape.bits));
    assert(shape.bits % 64 == 0 || words_.back() >> (shape.bits % 64) == 0);
    settle();
}

void digest::settle() {
    checksum_ = XXH3_64bits(words_.data(), static_cast<std::size_t>((shape_.bits + 7) / 8));
    bits_on_ = count_on(words_);
    rate_ = rate_of(shape_, words_, bits_on_);
}

digest digest::of(const blocked_bloom& filter, digest_stamp stamp) {
    return digest{shape_of(filter), words_of(filter), stamp};
}

digest digest::of(const blocked_bloom& a, const blocked_bloom& b, digest_stamp stamp) {
    const std::array both{&a, &b};
    return of(both, stamp);
}

digest digest::of(std::span<const blocked_bloom* const> filters, digest_stamp stamp) {
    assert(!filters.empty());
    const auto& first = *filters.front();
    auto words = words_of(first);
    for (const auto* const other : filters.subspan(1)) {
        assert(other->blocks() == first.blocks());
        auto word = words.begin();
        for (std::uint64_t block = 0; block < other->blocks(); ++block) {
            for (const auto read : other->read_block(block)) {
                *word++ |= read;
            }
        }
    }
    return digest{shape_of(first), std::move(words), stamp};
}

digest digest::of(const standard_bloom& filter, digest_stamp stamp) {
    const auto words = filter.words();
    return digest{shape_of(filter.size()), line_words(words.begin(), words.end()), stamp};
}

digest digest::of(const counting_bloom& filter, digest_stamp stamp) {
    const auto& places = filter.places();
    line_words words(static_cast<std::size_t>(places.bit_words()));
    for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = places.bits_on(i);
    }
    return digest{shape_of(filter.size()), std::move(words), stamp};
}

digest digest::of(const stamped_bloom& filter, digest_stamp stamp) {
    return of(filter.snapshot(), stamp);
}

bool digest::may_contain(key_hash key) const noexcept {
    if (shape_.layout == digest_layout::blocked) {
        const auto* const block = &words_[block_of(key, words_.size() / lanes) * lanes];
        return is_on_in_block(key, [block](unsigned lane) noexcept { return block[lane]; });
    }
    indices places{key, shape_.bits};
    for (unsigned probe = 0; probe < shape_.probes; ++probe) {
        const auto place = places.next();
        if ((words_[place / 64] & bit_at(place)) == 0) {
            return false;
        }
    }
    return true;
}

double rate_of_fill(const digest_shape& shape, double fill) noexcept {
    return std::pow(fill, shape.probes);
}

double digest::fill() const noexcept {
    return static_cast<double>(bits_on_) / static_cast<double>(shape_.bits);
}

double digest::estimated_keys() const noexcept {
    const auto bits = static_cast<double>(shape_.bits);
    // A full filter says only "very many"; one bit off is the most it can tell.
    const double off = std::max(1.0, bits - static_cast<double>(bits_on_)) / bits;
    if (bits_on_ == 0) {
        return 0;  // not -0, which would be shown
    }
    if (shape_.layout == digest_layout::blocked) {
        return std::log(off) / std::log1p(-double{lanes} / bits);  // bits / lanes places in a lane
    }
    // With one bit there is nothing to tell a key from many; log1p(-1) would be infinite.
    return shape_.bits == 1 ? static_cast<double>(bits_on_)
                            : std::log(off) / (shape_.probes * std::log1p(-1 / bits));
}

std::vector<std::uint64_t> flipped_places(const digest& before, const digest& after) {
    assert(before.shape() == after.shape());
    std::vector<std::uint64_t> places;
    for (std::size_t i = 0; i < before.words().size(); ++i) {
        for (auto left = before.words()[i] ^ after.words()[i]; left != 0; left &= left - 1) {
            places.push_back(i * 64 + static_cast<unsigned>(std::countr_zero(left)));
        }
    }
    return places;
}

std::optional<std::vector<std::uint64_t>> few_flipped_places(const digest& before,
                                                             const digest& after) {
    assert(before.shape() == after.shape());
    std::uint64_t turned = 0;
    for (std::size_t i = 0; i < before.words().size(); ++i) {
        turned += static_cast<unsigned>(std::popcount(before.words()[i] ^ after.words()[i]));
    }
    if (turned > most_news_places(before.shape().bits)) {
        return std::nullopt;
    }
    return flipped_places(before, after);
}

}  // namespace reprise::filter
