// exact_rate, declared in sizing.hpp.
//
// Let e of the places that a query looks at be off. Each ball thrown (a key throws as many as it
// has probes) turns one of them on with chance e/m, so e walks down a chain of at most k + 1
// states, and the rate is the chance that it is at 0 after all balls, the query's d distinct places
// being the state it began in. The chain's matrix is raised to the number of balls by squaring. All
// entries are chances and only products and sums of them are made, so that no digit is lost to
// cancellation, as the alternating sums lose them all at thirty probes; and as the diagonal is
// known in closed form and put in after each step, rounding errors grow with the logarithm of the
// number of balls and not with the number.

#include "filter/sizing.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>

namespace reprise::filter {

namespace {

constexpr unsigned most_probes = 64;

/// The chances to go from e places that are off to f <= e of them.
struct chain {
    std::array<std::array<long double, most_probes + 1>, most_probes + 1> to{};
};

/// The chain after `balls` balls, from the chains that `earlier` and `later` of them make.
chain after(const chain& earlier, const chain& later, unsigned states, double balls, double bits) {
    chain both;
    for (unsigned e = 0; e < states; ++e) {
        for (unsigned f = 0; f < e; ++f) {
            long double sum = 0;
            for (unsigned between = f; between <= e; ++between) {
                sum += earlier.to[e][between] * later.to[between][f];
            }
            both.to[e][f] = sum;
        }
        both.to[e][e] = e == 0 ? 1
                               : std::exp(static_cast<long double>(balls) *
                                          std::log1p(-static_cast<long double>(e) / bits));
    }
    return both;
}

/// The chances that a query's `probes` independent places are 1, 2, ... different ones.
std::array<long double, most_probes + 1> distinct(unsigned probes, double bits) {
    std::array<long double, most_probes + 1> chance{};
    chance[0] = 1;
    for (unsigned thrown = 0; thrown < probes; ++thrown) {
        for (unsigned d = thrown + 1; d > 0; --d) {
            const auto known = static_cast<long double>(d) / bits;
            const auto fresh = std::max(0.0L, 1 - static_cast<long double>(d - 1) / bits);
            chance[d] = chance[d] * known + chance[d - 1] * fresh;
        }
        chance[0] = 0;
    }
    return chance;
}

}  // namespace

double exact_rate(bloom_size size, std::uint64_t keys) noexcept {
    assert(size.bits > 0 && size.bits < std::uint64_t{1} << 53);
    assert(size.probes > 0 && size.probes <= most_probes);
    assert(keys < (std::uint64_t{1} << 63) / size.probes);
    if (keys == 0) {
        return 0;
    }
    const auto bits = static_cast<double>(size.bits);
    const auto states = static_cast<unsigned>(std::min<std::uint64_t>(size.probes, size.bits)) + 1;
    chain one;
    for (unsigned e = 0; e < states; ++e) {
        one.to[e][e] = 1 - static_cast<long double>(e) / bits;
        if (e > 0) {
            one.to[e][e - 1] = static_cast<long double>(e) / bits;
        }
    }

    const auto balls = keys * size.probes;
    auto walked = one;
    for (auto bit = std::bit_floor(balls) >> 1; bit != 0; bit >>= 1) {
        // The balls' leading bits, down to this one, have been walked.
        auto count = balls / (bit << 1) * 2;
        walked = after(walked, walked, states, static_cast<double>(count), bits);
        if ((balls & bit) != 0) {
            walked = after(walked, one, states, static_cast<double>(++count), bits);
        }
    }

    const auto places = distinct(size.probes, bits);
    long double rate = 0;
    for (unsigned d = 1; d < states; ++d) {
        rate += places[d] * walked.to[d][0];
    }
    return static_cast<double>(rate);
}

}  // namespace reprise::filter
