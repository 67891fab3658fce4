// See stable.hpp. Cells lie in words of 64 bits, place i in word i / (64 / d) from the lowest bits.

#include "filter/stable.hpp"

#include "filter/indices.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace reprise::filter {

namespace {

__extension__ typedef unsigned __int128 uint128;  // not ISO C++, and on every platform we build for

/// SplitMix64 (Steele, Lea, Flood 2014): one word of chance, and the state moves on.
std::uint64_t next_random(std::uint64_t& state) noexcept {
    auto word = state += 0x9e3779b97f4a7c15;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    return word ^ (word >> 31);
}

double full_cell(unsigned cell_bits) noexcept {
    return std::exp2(cell_bits) - 1;
}

/// 1/K - 1/m, which both of the paper's formulas are made of.
double probe_term(std::uint64_t cells, unsigned probes) noexcept {
    return 1.0 / probes - 1.0 / static_cast<double>(cells);
}

}  // namespace

double stable_zeroes(stable_size size) noexcept {
    assert(size.probes > 0 && size.decrements > 0 && size.probes < size.cells);
    const double pull = static_cast<double>(size.decrements) * probe_term(size.cells, size.probes);
    return std::pow(pull / (pull + 1), full_cell(size.cell_bits));
}

double stable_rate(stable_size size) noexcept {
    return std::pow(1 - stable_zeroes(size), size.probes);
}

double stable_memory(stable_size size, std::uint64_t gap) {
    assert(size.probes > 0 && size.decrements > 0 && size.probes < size.cells);
    const auto cells = static_cast<double>(size.cells);
    const double down = static_cast<double>(size.decrements) / cells;
    const double up = -std::expm1(size.probes * std::log1p(-1 / cells));
    std::vector<double> chance(std::size_t{1} << size.cell_bits);  // of a cell being at each count
    chance.back() = 1;
    for (std::uint64_t i = 0; i < gap; ++i) {
        for (std::size_t count = 0; count + 1 < chance.size(); ++count) {
            chance[count] =
                (chance[count] * (count == 0 ? 1 : 1 - down) + chance[count + 1] * down) * (1 - up);
        }
        chance.back() = chance.back() * (1 - down) * (1 - up) + up;
    }
    return std::pow(1 - chance.front(), size.probes);
}

stable_size stable_size_for(std::uint64_t cells,
                            unsigned cell_bits,
                            unsigned probes,
                            double rate) noexcept {
    assert(probes > 0 && probes < cells && rate > 0 && rate < 1);
    // stable_rate from the outside in: first the share of zeroes that the rate asks for.
    const double zeroes = 1 - std::pow(rate, 1.0 / probes);
    const double odds = std::pow(zeroes, -1 / full_cell(cell_bits)) - 1;
    const double pace = std::ceil(1 / (odds * probe_term(cells, probes)));
    return {.cells = cells,
            .cell_bits = cell_bits,
            .probes = probes,
            .decrements = static_cast<std::uint64_t>(
                std::clamp(pace, 1.0, static_cast<double>(cells)))};
}

stable_bloom::stable_bloom(stable_size size, std::uint64_t seed)
    : size_{size},
      state_{seed},
      full_{(std::uint64_t{1} << size.cell_bits) - 1},
      shift_{static_cast<unsigned>(std::countr_zero(64 / size.cell_bits))},
      words_(((size.cells - 1) >> shift_) + 1) {
    assert(std::has_single_bit(size.cell_bits) && size.cell_bits <= 8);
    assert(size.cells > 0 && size.cells < std::uint64_t{1} << 48);
    assert(size.probes > 0 && size.probes <= size.cells);
    assert(size.decrements > 0 && size.decrements <= size.cells);
}

unsigned stable_bloom::offset_of(std::uint64_t place) const noexcept {
    return static_cast<unsigned>(place & ((std::uint64_t{1} << shift_) - 1)) * size_.cell_bits;
}

std::uint64_t stable_bloom::cell(std::uint64_t place) const noexcept {
    return words_[place >> shift_] >> offset_of(place) & full_;
}

void stable_bloom::decay() noexcept {
    auto place = static_cast<std::uint64_t>((uint128{next_random(state_)} * size_.cells) >> 64);
    for (std::uint64_t i = 0; i < size_.decrements; ++i) {
        if (cell(place) != 0) {
            words_[place >> shift_] -= std::uint64_t{1} << offset_of(place);
        }
        place = place + 1 == size_.cells ? 0 : place + 1;
    }
}

bool stable_bloom::insert_and_test(key_hash key) noexcept {
    const bool before = may_contain(key);
    decay();
    indices places{key, size_.cells};
    for (unsigned i = 0; i < size_.probes; ++i) {
        const auto place = places.next();
        words_[place >> shift_] |= full_ << offset_of(place);
    }
    return before;
}

bool stable_bloom::may_contain(key_hash key) const noexcept {
    indices places{key, size_.cells};
    for (unsigned i = 0; i < size_.probes; ++i) {
        if (cell(places.next()) == 0) {
            return false;
        }
    }
    return true;
}

void stable_bloom::clear() noexcept {
    std::fill(words_.begin(), words_.end(), 0);
}

std::uint64_t stable_bloom::zeroes() const noexcept {
    std::uint64_t count = 0;
    for (std::uint64_t place = 0; place < size_.cells; ++place) {
        count += cell(place) == 0 ? 1 : 0;
    }
    return count;
}

}  // namespace reprise::filter
