// See aging.hpp.

#include "filter/aging.hpp"

#include <cassert>
#include <cmath>

namespace reprise::filter {

double two_active_rate(double rate) noexcept {
    assert(rate > 0 && rate < 1);
    // 1 - sqrt(1 - rate), without losing the digits of a small rate.
    return rate / (1 + std::sqrt(1 - rate));
}

aging_span double_buffer_span(bloom_size size, double rate) noexcept {
    const auto capacity = classic_capacity(size, rate);
    return {.least = capacity / 2, .most = capacity};
}

aging_span two_active_span(bloom_size size, double rate) noexcept {
    const auto capacity = classic_capacity(size, two_active_rate(rate));
    return {.least = capacity, .most = 2 * capacity};
}

}  // namespace reprise::filter
