// See scalable.hpp.

#include "filter/scalable.hpp"

#include <algorithm>
#include <cmath>

namespace reprise::filter {

std::uint64_t scalable_keys(const scalable_growth& growth, std::size_t i) noexcept {
    // Capped where a double no longer holds every integer, and no memory the keys.
    const double keys = static_cast<double>(growth.first_keys) *
                        std::pow(growth.growth, static_cast<double>(i));
    return static_cast<std::uint64_t>(std::min(std::ceil(keys), std::exp2(52)));
}

double scalable_rate(const scalable_growth& growth, std::size_t i) noexcept {
    return growth.rate * (1 - growth.tightening) *
           std::pow(growth.tightening, static_cast<double>(i));
}

double scalable_compound_rate(const scalable_growth& growth, std::size_t filters) noexcept {
    double right = 0;  // the logarithm of the chance that no filter errs
    for (std::size_t i = 0; i < filters; ++i) {
        right += std::log1p(-scalable_rate(growth, i));
    }
    return -std::expm1(right);
}

}  // namespace reprise::filter
