// See layered.hpp.

#include "filter/layered.hpp"

namespace reprise::filter {

double overcount_rate(std::span<const double> rates, std::size_t sights) noexcept {
    return sights < rates.size() ? rates[sights] : 0;
}

}  // namespace reprise::filter
