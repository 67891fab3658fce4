#include "proxy/base/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace reprise::proxy {

std::uint64_t count_of(const histogram_totals& histogram) noexcept {
    return std::accumulate(histogram.buckets.begin(), histogram.buckets.end(), std::uint64_t{0});
}

double quantile_of(const histogram_totals& histogram, double quantile) noexcept {
    const auto all = count_of(histogram);
    if (all == 0) {
        return 0;
    }
    const auto wanted = std::ceil(std::clamp(quantile, 0.0, 1.0) * static_cast<double>(all));
    const auto rank = std::max<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1);
    std::uint64_t passed = 0;
    for (std::size_t i = 0; i < latency_buckets::count; ++i) {
        passed += histogram.buckets[i];
        if (passed >= rank) {
            const auto low = static_cast<double>(latency_buckets::lower_bound_of(i));
            const auto high = static_cast<double>(latency_buckets::lower_bound_of(i + 1));
            return (low + high) / 2;
        }
    }
    return 0;  // not reached: the buckets sum to `all`
}

std::uint64_t count_below(const histogram_totals& histogram, unsigned power) noexcept {
    const auto end = std::min<std::size_t>(
        power <= latency_buckets::top_bit ? latency_buckets::index_of(std::uint64_t{1} << power)
                                          : latency_buckets::count,
        latency_buckets::count);
    return std::accumulate(histogram.buckets.begin(),
                           histogram.buckets.begin() + static_cast<std::ptrdiff_t>(end),
                           std::uint64_t{0});
}

}  // namespace reprise::proxy
