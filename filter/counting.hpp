#pragma once
// A Bloom filter that keys can be taken out of again: a counter of four bits in each place (Fan,
// Cao, Almeida, Broder: "Summary Cache", IEEE/ACM ToN 8(3), 2000).
//
// What it publishes is a standard filter of the same parameters, a bit on where a counter is not
// zero. Whoever keeps such a bitmap beside it is told of each bit that goes on or off, and never
// has to look for them (bit_changes.hpp).
//
// A key whose places repeat counts in a place as often as it owns it. So it takes out exactly what
// it put in, and a filter folds into what its keys would have made in half the places; counting
// each place once would leave folded counters too high.

#include "filter/counters.hpp"
#include "filter/filter_errc.hpp"
#include "filter/indices.hpp"
#include "filter/key_hash.hpp"
#include "filter/standard.hpp"

#include <array>
#include <cassert>
#include <cstdint>
#include <memory_resource>
#include <span>

namespace reprise::filter {

/// A multiset: a key inserted twice is to be erased twice.
///
/// Memory    size.bits / 2 bytes; allocated and zeroed at construction, from the resource that is
///           given, which outlives this. Copies have the default one's.
/// Threads   one; const members may run at once.
/// Errs      may_contain may be true for a key not in it, at the rate of a standard filter of the
///           same size and as many distinct keys. It is false for no key that is in it, as long as
///           nothing was erased that had not been inserted. A counter that reached 15 stays there
///           (counter_odds.hpp says how many): its bit is on until clear().
class counting_bloom {
public:
    static constexpr unsigned most_probes = 64;

    /// @pre 0 < size.bits < 2^60, 0 < size.probes <= most_probes
    /// @throws std::bad_alloc
    explicit counting_bloom(bloom_size size,
                            std::pmr::memory_resource* memory = std::pmr::get_default_resource());

    /// Over counters that lie elsewhere, as counters has it.
    counting_bloom(bloom_size size, std::span<std::uint64_t> words) noexcept;
    using tally = counters::tally;
    [[nodiscard]] tally counted() const noexcept { return counters_.counted(); }
    void resume(tally counted) noexcept { counters_.resume(counted); }
    void recount() noexcept { counters_.recount(); }

    void insert(key_hash key) noexcept {
        insert(key, [](std::uint64_t) {});
    }

    /// Inserts, and calls `on_change(place)` for each place whose bit this turned on, once.
    /// `on_change` must not touch this filter.
    template <class OnChange>
    void insert(key_hash key, OnChange&& on_change);

    [[nodiscard]] bool erase(key_hash key) noexcept {
        return erase(key, [](std::uint64_t) {});
    }

    /// Takes one occurrence of `key` out, and calls `on_change(place)` for each place whose bit
    /// this turned off, once. False when the key was certainly not in it, a counter being too low:
    /// then nothing is changed nor reported. True is no proof that it was: erasing a false positive
    /// takes from other keys' counters, and one of those may be missed from then on. So erase only
    /// what was inserted.
    template <class OnChange>
    [[nodiscard]] bool erase(key_hash key, OnChange&& on_change);

    [[nodiscard]] bool may_contain(key_hash key) const noexcept;

    /// Makes this the filter of both multisets: counters are added. What they hold in common is
    /// then in it twice, as it must be if each filter's keys are to be erased later. There is no
    /// intersection: two counters tell how many keys a place has in each filter, not which, so the
    /// smaller one only bounds the number of common keys. Intersect snapshots instead.
    /// @returns sizes_differ or probes_differ, and nothing is changed
    [[nodiscard]] boost::system::result<void> merge(const counting_bloom& other) noexcept;

    /// The filter that the same keys make in half the places; a counter sticks when the sum does.
    /// @returns odd_size; too_small when fewer places than probes would be left
    /// @throws std::bad_alloc
    [[nodiscard]] boost::system::result<counting_bloom> folded() const;

    /// The standard filter of the keys in it (and of stuck counters). O(places).
    /// @throws std::bad_alloc
    [[nodiscard]] standard_bloom snapshot() const;

    void clear() noexcept { counters_.clear(); }

    [[nodiscard]] bloom_size size() const noexcept { return size_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return counters_.bytes(); }

    /// Places whose bit is on. O(1).
    [[nodiscard]] std::uint64_t bits_on() const noexcept { return counters_.places_on(); }
    /// Places whose counter sticks. O(1).
    [[nodiscard]] std::uint64_t stuck() const noexcept { return counters_.places_stuck(); }
    /// (bits on / bits)^probes. O(1).
    [[nodiscard]] double false_positive_rate() const noexcept;

    /// As counters::bits_on.
    [[nodiscard]] std::uint64_t bits_on(std::uint64_t index) const noexcept {
        return counters_.bits_on(index);
    }
    /// The counters, place by place.
    [[nodiscard]] const counters& places() const noexcept { return counters_; }

    bool operator==(const counting_bloom&) const = default;

private:
    counting_bloom(bloom_size size, counters&& places) noexcept;

    bloom_size size_;
    counters counters_;
};

template <class OnChange>
void counting_bloom::insert(key_hash key, OnChange&& on_change) {
    indices at{key, size_.bits};
    for (unsigned probe = 0; probe < size_.probes; ++probe) {
        const auto place = at.next();
        if (counters_.raise(place) == counter_step::turned_on) {
            on_change(place);
        }
    }
}

template <class OnChange>
bool counting_bloom::erase(key_hash key, OnChange&& on_change) {
    std::array<std::uint64_t, most_probes> turned_off;
    unsigned off = 0;
    indices at{key, size_.bits};
    for (unsigned probe = 0; probe < size_.probes; ++probe) {
        const auto place = at.next();
        const auto step = counters_.lower(place);
        if (step == counter_step::underflow) {
            // What was lowered is raised again: a counter that sticks did neither.
            indices back{key, size_.bits};
            for (unsigned undone = 0; undone < probe; ++undone) {
                counters_.raise(back.next());
            }
            return false;
        }
        if (step == counter_step::turned_off) {
            turned_off[off++] = place;
        }
    }
    for (unsigned i = 0; i < off; ++i) {
        on_change(turned_off[i]);
    }
    return true;
}

}  // namespace reprise::filter
