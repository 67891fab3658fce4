// See golomb_set.hpp. A gap g, the values left out between two, is g / divisor ones and a zero, and
// then g % divisor in truncated binary; bits from the low end of 64-bit words.

#include "tools/alternatives/golomb_set.hpp"

#include "tools/alternatives/cells.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace reprise::alternatives {

namespace {

constexpr unsigned word_bits = 64;

/// Truncated binary: of `divisor` remainders the first `shorter` take one bit less than the others.
struct remainder_code {
    unsigned bits;  // of the longer ones
    std::uint64_t shorter;

    explicit remainder_code(std::uint64_t divisor) noexcept
        : bits{static_cast<unsigned>(std::bit_width(divisor - 1))},
          shorter{(std::uint64_t{1} << bits) - divisor} {}
};

/// Golomb's parameter for gaps that end at each value with chance p (Gallager, van Voorhis 1975):
/// the least m with (1 - p)^m + (1 - p)^(m + 1) <= 1.
std::uint64_t divisor_for(double p) {
    return p >= 0.5 ? 1
                    : static_cast<std::uint64_t>(
                          std::max(1.0, std::ceil(-std::log(2 - p) / std::log1p(-p))));
}

}  // namespace

golomb_set::golomb_set(std::span<const filter::key_hash> keys, double rate)
    : range_{std::max<std::uint64_t>(
          1, static_cast<std::uint64_t>(std::ceil(static_cast<double>(keys.size()) / rate)))},
      divisor_{divisor_for(rate)} {
    assert(rate > 0 && rate < 1 && range_ < std::uint64_t{1} << 62);
    std::vector<std::uint64_t> values(keys.size());
    std::transform(
        keys.begin(), keys.end(), values.begin(), [&](auto key) { return value_of(key); });
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());

    std::uint64_t from = 0;  // the least value that may come next
    for (const auto value : values) {
        if (keys_++ % block == 0) {
            index_.push_back({.from = from, .bit = bits_});
        }
        append_gap(value - from);
        from = value + 1;
    }
}

std::uint64_t golomb_set::value_of(filter::key_hash key) const noexcept {
    return scaled(key.low, range_);
}

void golomb_set::append(std::uint64_t value, unsigned bits) {
    if (bits == 0) {
        return;
    }
    const auto at = bits_ % word_bits;
    if (at == 0) {
        words_.push_back(0);
    }
    words_.back() |= value << at;
    if (at + bits > word_bits) {
        words_.push_back(value >> (word_bits - at));
    }
    bits_ += bits;
}

void golomb_set::append_gap(std::uint64_t gap) {
    auto ones = gap / divisor_;
    for (; ones >= word_bits / 2; ones -= word_bits / 2) {
        append((std::uint64_t{1} << (word_bits / 2)) - 1, word_bits / 2);
    }
    append((std::uint64_t{1} << ones) - 1, static_cast<unsigned>(ones) + 1);

    const auto remainder = gap % divisor_;
    const remainder_code code{divisor_};
    if (code.bits == 0) {
        return;
    }
    if (remainder < code.shorter) {
        append(remainder, code.bits - 1);
        return;
    }
    // The first bits - 1 bits must not look like a shorter code: they come first, the last after.
    const auto longer = remainder + code.shorter;
    append(longer >> 1, code.bits - 1);
    append(longer & 1, 1);
}

std::uint64_t golomb_set::decoder::take(unsigned bits) noexcept {
    if (bits == 0) {
        return 0;
    }
    const auto at = bit_ % word_bits;
    auto value = set_.words_[bit_ / word_bits] >> at;
    if (at + bits > word_bits) {
        value |= set_.words_[bit_ / word_bits + 1] << (word_bits - at);
    }
    bit_ += bits;
    return value & ((std::uint64_t{1} << bits) - 1);
}

std::uint64_t golomb_set::decoder::gap() noexcept {
    std::uint64_t quotient = 0;
    while (true) {
        const auto at = bit_ % word_bits;
        const auto ones = static_cast<unsigned>(
            std::countr_one(set_.words_[bit_ / word_bits] >> at));
        quotient += ones;
        bit_ += ones;
        if (at + ones < word_bits) {
            break;
        }
    }
    ++bit_;
    const remainder_code code{set_.divisor_};
    if (code.bits == 0) {
        return quotient;
    }
    auto remainder = take(code.bits - 1);
    if (remainder >= code.shorter) {
        remainder = (remainder << 1 | take(1)) - code.shorter;
    }
    return quotient * set_.divisor_ + remainder;
}

bool golomb_set::may_contain(filter::key_hash key) const noexcept {
    const auto wanted = value_of(key);
    const auto after = std::upper_bound(
        index_.begin(), index_.end(), wanted, [](std::uint64_t value, const entry& one) {
            return value < one.from;
        });
    if (after == index_.begin()) {
        return false;
    }
    const auto first = after - 1;
    decoder gaps{*this, first->bit};
    auto left = std::min(block, keys_ - static_cast<std::uint64_t>(first - index_.begin()) * block);
    for (auto from = first->from; left > 0; --left) {
        const auto value = from + gaps.gap();
        if (value >= wanted) {
            return value == wanted;
        }
        from = value + 1;
    }
    return false;
}

double golomb_set::rate() const noexcept {
    return static_cast<double>(keys_) / static_cast<double>(range_);
}

std::uint64_t golomb_set::bytes() const noexcept {
    return words_.size() * sizeof words_[0] + index_.size() * sizeof index_[0];
}

std::vector<std::uint64_t> golomb_set::values() const {
    std::vector<std::uint64_t> all;
    all.reserve(keys_);
    decoder gaps{*this, 0};
    for (std::uint64_t from = 0; all.size() < keys_; from = all.back() + 1) {
        all.push_back(from + gaps.gap());
    }
    return all;
}

}  // namespace reprise::alternatives
