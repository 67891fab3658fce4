// See variable_counting.hpp.

#include "tools/alternatives/variable_counting.hpp"

#include "filter/indices.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace reprise::alternatives {

namespace {

constexpr unsigned amount_bits = 4;  // of the hash, for each probe
static_assert(variable_counting::most_probes * amount_bits <= 64);

}  // namespace

double variable_counting_rate(variable_counting_size size, double keys) noexcept {
    const auto counters = static_cast<double>(size.counters);
    const auto increments = keys * size.probes;
    const auto least = static_cast<double>(size.least);
    const auto missed = 1 - 1 / counters;
    const auto none = std::pow(missed, increments);
    const auto one = increments / counters * std::pow(missed, increments - 1);
    const auto two = increments * (increments - 1) / 2 / (counters * counters) *
                     std::pow(missed, increments - 2);
    const auto says_no = none + one * (least - 1) / least +
                         two * (least - 1) * (least + 1) / (6 * least * least);
    return std::pow(1 - says_no, size.probes);
}

variable_counting_size variable_counting_size_for(std::uint64_t keys,
                                                  double rate,
                                                  unsigned least,
                                                  unsigned bits) noexcept {
    variable_counting_size best{};
    for (unsigned probes = 1; probes <= variable_counting::most_probes; ++probes) {
        variable_counting_size size{.counters = 2, .probes = probes, .least = least, .bits = bits};
        const auto errs = [&](std::uint64_t counters) {
            size.counters = counters;
            return variable_counting_rate(size, static_cast<double>(keys)) > rate;
        };
        std::uint64_t high = 2;
        while (errs(high)) {
            high *= 2;
        }
        std::uint64_t low = high / 2;
        while (high - low > 1) {
            const auto middle = low + (high - low) / 2;
            (errs(middle) ? low : high) = middle;
        }
        size.counters = high;
        if (best.counters == 0 || size.counters < best.counters) {
            best = size;
        }
    }
    return best;
}

variable_counting::variable_counting(variable_counting_size size)
    : size_{size},
      counters_{size.counters, size.bits} {
    assert(size.counters > 0 && size.probes >= 1 && size.probes <= most_probes);
    assert(std::has_single_bit(size.least) && size.least <= 1U << amount_bits);
    assert(size.bits <= 16 && 2 * (2 * size.least - 1) <= counters_.max());
}

variable_counting::increments variable_counting::increments_of(
    filter::key_hash key) const noexcept {
    filter::indices places{key, size_.counters};
    const auto amounts = mix(key.low ^ std::rotl(key.high, 32));
    increments all{};
    for (unsigned probe = 0; probe < size_.probes; ++probe) {
        const auto place = places.next();
        const auto end = all.each.begin() + all.count;
        if (std::any_of(all.each.begin(), end, [&](increment one) { return one.place == place; })) {
            continue;
        }
        const auto excess = amounts >> (probe * amount_bits) & (size_.least - 1);
        all.each[all.count++] = {place, static_cast<std::uint32_t>(size_.least + excess)};
    }
    return all;
}

bool variable_counting::may_hold(increment one) const noexcept {
    const auto counter = counters_.get(one.place);
    return counter == counters_.max() || counter == one.amount ||
           counter >= one.amount + size_.least;
}

void variable_counting::insert(filter::key_hash key) noexcept {
    const auto all = increments_of(key);
    for (unsigned i = 0; i < all.count; ++i) {
        const auto [place, amount] = all.each[i];
        counters_.set(place, std::min(counters_.get(place) + amount, counters_.max()));
    }
}

bool variable_counting::erase(filter::key_hash key) noexcept {
    if (!may_contain(key)) {
        return false;
    }
    const auto all = increments_of(key);
    for (unsigned i = 0; i < all.count; ++i) {
        const auto [place, amount] = all.each[i];
        if (const auto counter = counters_.get(place); counter != counters_.max()) {
            counters_.set(place, counter - amount);
        }
    }
    return true;
}

bool variable_counting::may_contain(filter::key_hash key) const noexcept {
    const auto all = increments_of(key);
    return std::all_of(all.each.begin(), all.each.begin() + all.count, [&](increment one) {
        return may_hold(one);
    });
}

std::uint64_t variable_counting::stuck() const noexcept {
    std::uint64_t stuck = 0;
    for (std::uint64_t counter = 0; counter < counters_.count(); ++counter) {
        stuck += counters_.get(counter) == counters_.max() ? 1 : 0;
    }
    return stuck;
}

}  // namespace reprise::alternatives
