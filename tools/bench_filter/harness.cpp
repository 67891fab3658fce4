// See harness.hpp.

#include "tools/bench_filter/harness.hpp"

#include "tools/mix.hpp"

namespace reprise::bench {

namespace {

volatile std::uint64_t sunk = 0;
volatile std::uint64_t zero = 0;

using tools::mix;

}  // namespace

key_hash nth_key(std::uint64_t family, std::uint64_t i) noexcept {
    const auto low = mix(mix(family) ^ i);
    return {.low = low, .high = mix(low ^ 0x5bd1e995)};
}

workload::workload(std::uint64_t count, double wanted) : keys{count}, rate{wanted} {
    const auto ring = std::clamp<std::uint64_t>(count, 1 << 16, 1 << 21);
    known.reserve(ring);
    absent.reserve(ring);
    mixed.reserve(ring);
    for (std::uint64_t i = 0; i < ring; ++i) {
        known.push_back(nth_key(1, mix(i) % count));
        absent.push_back(nth_key(2, i));
        mixed.push_back(mix(~i) % 2 == 0 ? known.back() : absent.back());
    }
}

void sink(std::uint64_t value) noexcept {
    sunk = sunk + value;
}

std::uint64_t unknown_zero() noexcept {
    return zero;
}

double middle_mean(std::array<double, trials> taken) noexcept {
    std::sort(taken.begin(), taken.end());
    double sum = 0;
    for (std::size_t i = dropped; i < trials - dropped; ++i) {
        sum += taken[i];
    }
    return sum / (trials - 2 * dropped);
}

int build_trials(std::uint64_t keys) noexcept {
    return keys <= 1'000'000 ? 5 : keys <= 10'000'000 ? 2 : 1;
}

double bits_a_key(std::uint64_t bytes, std::uint64_t keys) noexcept {
    return static_cast<double>(bytes) * 8 / static_cast<double>(keys);
}

}  // namespace reprise::bench
