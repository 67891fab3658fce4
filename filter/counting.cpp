#include "filter/counting.hpp"

#include <cmath>
#include <utility>
#include <vector>

namespace reprise::filter {

counting_bloom::counting_bloom(bloom_size size, std::pmr::memory_resource* memory)
    : counting_bloom{size, counters{size.bits, memory}} {}

counting_bloom::counting_bloom(bloom_size size, std::span<std::uint64_t> words) noexcept
    : counting_bloom{size, counters{size.bits, words}} {}

counting_bloom::counting_bloom(bloom_size size, counters&& places) noexcept
    : size_{size},
      counters_{std::move(places)} {
    assert(size.probes > 0 && size.probes <= most_probes);
}

bool counting_bloom::may_contain(key_hash key) const noexcept {
    indices at{key, size_.bits};
    for (unsigned probe = 0; probe < size_.probes; ++probe) {
        if (!counters_.is_on(at.next())) {
            return false;
        }
    }
    return true;
}

boost::system::result<void> counting_bloom::merge(const counting_bloom& other) noexcept {
    if (auto checked = combinable(size_, other.size_); !checked) {
        return checked;
    }
    counters_.add(other.counters_);
    return {};
}

boost::system::result<counting_bloom> counting_bloom::folded() const {
    if (size_.bits % 2 != 0) {
        return filter_errc::odd_size;
    }
    if (size_.bits / 2 < size_.probes) {
        return filter_errc::too_small;
    }
    return counting_bloom{{size_.bits / 2, size_.probes}, counters_.folded()};
}

standard_bloom counting_bloom::snapshot() const {
    std::vector<std::uint64_t> words(counters_.bit_words());
    for (std::uint64_t i = 0; i < words.size(); ++i) {
        words[i] = counters_.bits_on(i);
    }
    return {size_, std::move(words)};
}

double counting_bloom::false_positive_rate() const noexcept {
    return std::pow(static_cast<double>(bits_on()) / static_cast<double>(size_.bits), size_.probes);
}

}  // namespace reprise::filter
