#include "proxy/peer/source_filters.hpp"

#include "proxy/peer/digest_source.hpp"

#include <algorithm>
#include <cstddef>

namespace reprise::proxy::peer {

namespace {

/// Room for as many more keys as there are when a filter is made, at least: see capacity_for.
constexpr double head_room = 1.6;

/// Places and names that the journal of a filter holds: an eighth of the bits that a full filter has
/// on at 1 %, since beyond that the whole is not much longer.
std::size_t journal_for(std::uint64_t bits) {
    return static_cast<std::size_t>(std::max<std::uint64_t>(bits / 256, 1 << 12));
}

// By the capacity alone, whatever it began with.
filter::bloom_size bloom_for(std::uint64_t capacity, double rate) {
    constexpr std::uint64_t undivided = 2048;  // below it the rounding to words would count
    unsigned doublings = 0;
    while (capacity >= undivided && capacity % 2 == 0) {
        capacity /= 2;
        ++doublings;
    }
    auto size = filter::digest_size(capacity, rate);
    size.bits <<= doublings;
    return size;
}

filter::squid_size squid_for(std::uint64_t capacity, unsigned bits_per_entry) {
    return {filter::squid_capacity(capacity, 0, bits_per_entry), bits_per_entry};
}

}  // namespace

// Capacities double, and so do bits exactly. Then digests of a fleet with one rate have few sizes:
// a look-up asks those of one size together (filter/sibling_index), and of two sizes the larger
// folds to the smaller, so that what two caches have in common can be told from their bits.
std::uint64_t capacity_for(std::uint64_t listed, std::uint64_t least) {
    const auto wanted = static_cast<double>(listed) * head_room;
    auto capacity = least;
    while (static_cast<double>(capacity) < wanted) {
        capacity *= 2;
    }
    return capacity;
}

source_filters::source_filters(std::uint64_t keys, const source_plan& plan)
    : capacity{keys},
      counts{bloom_for(keys * plan.site_nodes, plan.false_positive_rate)},
      bits{counts.size()} {
    if (plan.squid) {
        squid.emplace(squid_for(keys, plan.squid_bits_per_entry));
    }
    if (plan.news.count() > 0) {
        journal.emplace(journal_for(counts.size().bits));
    }
}

void source_filters::turn(std::uint64_t place, bool is_on) noexcept {
    bits.turn(place);
    if (journal) {
        journal->turned(place, is_on);
    }
}

void source_filters::insert(const filter::key_hash& key,
                            const filter::squid_key& squid_key) noexcept {
    counts.insert(key, [this](std::uint64_t place) { turn(place, true); });
    if (squid && squid_key != filter::squid_key{}) {
        squid->insert(squid_key);
    }
}

void source_filters::erase(const filter::key_hash& key,
                           const filter::squid_key& squid_key) noexcept {
    // Only what was inserted is erased, so this can't fail.
    (void)counts.erase(key, [this](std::uint64_t place) { turn(place, false); });
    if (squid && squid_key != filter::squid_key{}) {
        (void)squid->erase(squid_key);
    }
}

std::uint64_t source_filters::bytes() const noexcept {
    return counts.bytes() + bits.bytes() + (squid ? squid->bytes() : 0) +
           (journal ? journal->bytes() : 0);
}

}  // namespace reprise::proxy::peer
