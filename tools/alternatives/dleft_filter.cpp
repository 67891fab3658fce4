// See dleft_filter.hpp.

#include "tools/alternatives/dleft_filter.hpp"

#include <cassert>
#include <cmath>

namespace reprise::alternatives {

namespace {

constexpr unsigned count_bits = 2;
constexpr std::uint32_t count_of(std::uint32_t cell) noexcept {
    return cell & ((1U << count_bits) - 1);
}
constexpr std::uint64_t full_load = 6;  // of eight cells a bucket, the paper's

}  // namespace

dleft_size dleft_size_for(std::uint64_t keys, double rate) noexcept {
    constexpr auto keys_a_row = full_load * dleft_filter::tables;
    dleft_size size{.buckets = (keys + keys_a_row - 1) / keys_a_row, .remainder_bits = 1};
    while (size.remainder_bits < 30 && dleft_rate(size, static_cast<double>(keys)) > rate) {
        ++size.remainder_bits;
    }
    return size;
}

double dleft_rate(dleft_size size, double keys) noexcept {
    const auto values = std::ldexp(static_cast<double>(size.buckets),
                                   static_cast<int>(size.remainder_bits));
    return -std::expm1(keys * std::log1p(-1 / values));
}

dleft_filter::dleft_filter(dleft_size size)
    : buckets_{size.buckets},
      remainder_bits_{size.remainder_bits},
      cells_{tables * size.buckets * depth, size.remainder_bits + count_bits} {
    assert(size.buckets > 0 && size.buckets <= std::uint64_t{1} << 32);
    assert(size.remainder_bits >= 1 && size.remainder_bits <= 30);
}

dleft_filter::places dleft_filter::places_of(filter::key_hash key) const noexcept {
    const auto value = scaled(key.low, buckets_ << remainder_bits_);
    const auto bucket = value >> remainder_bits_;
    const auto remainder = value & ((std::uint64_t{1} << remainder_bits_) - 1);
    places at{.first = {}, .remainder = static_cast<std::uint32_t>(remainder)};
    for (unsigned table = 0; table < tables; ++table) {
        // A rotation by what the remainder says: one to one for each remainder, and so for pairs.
        auto there = bucket + scaled(mix(remainder * tables + table), buckets_);
        there -= there >= buckets_ ? buckets_ : 0;
        at.first[table] = (table * buckets_ + there) * depth;
    }
    return at;
}

std::uint64_t dleft_filter::find(const places& at) const noexcept {
    for (const auto first : at.first) {
        for (auto cell = first; cell < first + depth; ++cell) {
            const auto held = cells_.get(cell);
            if (held >> count_bits == at.remainder && count_of(held) != 0) {
                return cell;
            }
        }
    }
    return cells_.count();
}

bool dleft_filter::insert(filter::key_hash key) noexcept {
    const auto at = places_of(key);
    if (const auto cell = find(at); cell != cells_.count()) {
        const auto held = cells_.get(cell);
        if (count_of(held) != stuck) {
            cells_.set(cell, held + 1);
        }
        return true;
    }
    // The least loaded of the buckets, the leftmost of equals ("d-left"): its first empty cell.
    auto empty = cells_.count();
    auto least = depth;
    for (const auto first : at.first) {
        auto hole = cells_.count();
        unsigned load = 0;
        for (auto cell = first; cell < first + depth; ++cell) {
            if (count_of(cells_.get(cell)) != 0) {
                ++load;
            } else if (hole == cells_.count()) {
                hole = cell;
            }
        }
        if (load < least) {
            least = load;
            empty = hole;
        }
    }
    if (empty == cells_.count()) {
        return false;
    }
    cells_.set(empty, at.remainder << count_bits | 1);
    ++used_;
    return true;
}

bool dleft_filter::erase(filter::key_hash key) noexcept {
    const auto cell = find(places_of(key));
    if (cell == cells_.count()) {
        return false;
    }
    const auto held = cells_.get(cell);
    switch (count_of(held)) {
    case stuck: break;  // nobody knows how many there were
    case 1:
        cells_.set(cell, 0);
        --used_;
        break;
    default: cells_.set(cell, held - 1);
    }
    return true;
}

bool dleft_filter::may_contain(filter::key_hash key) const noexcept {
    return find(places_of(key)) != cells_.count();
}

void dleft_filter::clear() noexcept {
    cells_.clear();
    used_ = 0;
}

}  // namespace reprise::alternatives
