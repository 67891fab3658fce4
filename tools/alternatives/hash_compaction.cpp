// See hash_compaction.hpp.

#include "tools/alternatives/hash_compaction.hpp"

#include "filter/indices.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

namespace reprise::alternatives {

namespace {

double different(unsigned bits) {  // compacted keys: zero is none
    return std::ldexp(1.0, static_cast<int>(bits)) - 1;
}

}  // namespace

double compaction_rate(const compaction_size& size, std::uint64_t keys) noexcept {
    const auto load = static_cast<double>(keys) / static_cast<double>(size.slots);
    const auto meets = 1 / different(size.bits);
    return load * meets / (1 - load * (1 - meets));
}

compaction_size compaction_size_for(std::uint64_t keys, double rate) noexcept {
    const auto wanted = static_cast<double>(keys);
    compaction_size best;
    double least = std::numeric_limits<double>::infinity();
    for (unsigned bits = 2; bits <= 32; ++bits) {
        // The rate solved for the load.
        const auto meets = 1 / different(bits);
        const auto load = std::min(0.95, rate / (meets + rate * (1 - meets)));
        if (load >= 0.5 && bits / load < least) {
            least = bits / load;
            best = {.slots = static_cast<std::uint64_t>(std::ceil(wanted / load)) + 1,
                    .bits = bits};
        }
    }
    return best;
}

hash_compaction::hash_compaction(const compaction_size& size) : slots_{size.slots, size.bits} {
    assert(size.slots > 0 && size.bits >= 2);
}

std::uint32_t hash_compaction::compacted(filter::key_hash key) const noexcept {
    const auto word = mix(key.high ^ std::rotl(key.low, 32));
    return 1 + static_cast<std::uint32_t>(scaled(word, slots_.max()));
}

bool hash_compaction::insert(filter::key_hash key) noexcept {
    const auto wanted = compacted(key);
    filter::indices places{key, slots_.count()};
    for (unsigned probe = 0; probe < most_probes; ++probe) {
        const auto place = places.next();
        const auto found = slots_.get(place);
        if (found == wanted) {
            return true;
        }
        if (found == 0) {
            slots_.set(place, wanted);
            ++keys_;
            return true;
        }
    }
    return false;
}

bool hash_compaction::may_contain(filter::key_hash key) const noexcept {
    const auto wanted = compacted(key);
    filter::indices places{key, slots_.count()};
    for (unsigned probe = 0; probe < most_probes; ++probe) {
        const auto found = slots_.get(places.next());
        if (found == wanted || found == 0) {
            return found == wanted;
        }
    }
    return false;
}

void hash_compaction::clear() noexcept {
    slots_.clear();
    keys_ = 0;
}

double hash_compaction::rate() const noexcept {
    return compaction_rate({.slots = slots_.count(), .bits = slots_.bits()}, keys_);
}

}  // namespace reprise::alternatives
