// See cuckoo_filter.hpp.

#include "tools/alternatives/cuckoo_filter.hpp"

#include <array>
#include <bit>
#include <cassert>
#include <cmath>

namespace reprise::alternatives {

namespace {

constexpr unsigned most_moves = 500;  // the paper's
constexpr std::uint32_t nothing = 0;  // in a slot
constexpr double full_load = 0.95;

}  // namespace

cuckoo_size cuckoo_size_for(std::uint64_t keys, double rate) noexcept {
    const auto slots = static_cast<double>(keys) / full_load;
    const auto buckets = static_cast<std::uint64_t>(std::ceil(slots / cuckoo_filter::slots));
    cuckoo_size size{.buckets = std::bit_ceil(buckets), .fingerprint_bits = 2};
    while (size.fingerprint_bits < 32 && cuckoo_rate(size, static_cast<double>(keys)) > rate) {
        ++size.fingerprint_bits;
    }
    return size;
}

double cuckoo_rate(cuckoo_size size, double keys) noexcept {
    const auto load = keys / static_cast<double>(size.buckets * cuckoo_filter::slots);
    const auto fingerprints = std::ldexp(1.0, static_cast<int>(size.fingerprint_bits)) - 1;
    return -std::expm1(2 * cuckoo_filter::slots * std::log1p(-load / fingerprints));
}

cuckoo_filter::cuckoo_filter(cuckoo_size size)
    : buckets_{size.buckets},
      slots_{size.buckets * slots, size.fingerprint_bits} {
    assert(std::has_single_bit(size.buckets) && size.buckets <= std::uint64_t{1} << 32);
    assert(size.fingerprint_bits >= 2);
}

cuckoo_filter::place cuckoo_filter::place_of(filter::key_hash key) const noexcept {
    const auto fingerprint = 1 + scaled(key.high, slots_.max());
    return {key.low & (buckets_ - 1), static_cast<std::uint32_t>(fingerprint)};
}

std::uint64_t cuckoo_filter::other(place at) const noexcept {
    return at.bucket ^ (mix(at.fingerprint) & (buckets_ - 1));
}

bool cuckoo_filter::replace_in(std::uint64_t bucket,
                               std::uint32_t from,
                               std::uint32_t to) noexcept {
    for (unsigned slot = 0; slot < slots; ++slot) {
        if (slots_.get(bucket * slots + slot) == from) {
            slots_.set(bucket * slots + slot, to);
            return true;
        }
    }
    return false;
}

bool cuckoo_filter::holds(place at) const noexcept {
    bool found = false;
    for (unsigned slot = 0; slot < slots; ++slot) {
        found |= slots_.get(at.bucket * slots + slot) == at.fingerprint;
    }
    return found;
}

bool cuckoo_filter::insert(filter::key_hash key) noexcept {
    auto in_hand = place_of(key);
    if (replace_in(in_hand.bucket, nothing, in_hand.fingerprint)) {
        ++keys_;
        return true;
    }
    in_hand.bucket = other(in_hand);
    // A random walk: put what is in hand in place of some fingerprint, and that one into its other
    // bucket. The way back is kept, so that a full filter is left as it was.
    std::array<std::uint64_t, most_moves> way{};
    for (unsigned move = 0; move < most_moves; ++move) {
        if (replace_in(in_hand.bucket, nothing, in_hand.fingerprint)) {
            ++keys_;
            return true;
        }
        const auto slot = in_hand.bucket * slots + mix(key.low + move) % slots;
        const auto moved = slots_.get(slot);
        slots_.set(slot, in_hand.fingerprint);
        way[move] = slot;
        in_hand.fingerprint = moved;
        in_hand.bucket = other(in_hand);
    }
    for (unsigned move = most_moves; move-- > 0;) {
        const auto put = slots_.get(way[move]);
        slots_.set(way[move], in_hand.fingerprint);
        in_hand.fingerprint = put;
    }
    return false;
}

bool cuckoo_filter::erase(filter::key_hash key) noexcept {
    const auto at = place_of(key);
    if (!replace_in(at.bucket, at.fingerprint, nothing) &&
        !replace_in(other(at), at.fingerprint, nothing)) {
        return false;
    }
    --keys_;
    return true;
}

bool cuckoo_filter::may_contain(filter::key_hash key) const noexcept {
    const auto at = place_of(key);
    // Both buckets at once: a branch between them would mispredict for half of what is in.
    return holds(at) | holds({other(at), at.fingerprint});
}

void cuckoo_filter::clear() noexcept {
    slots_.clear();
    keys_ = 0;
}

}  // namespace reprise::alternatives
