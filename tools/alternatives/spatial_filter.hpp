#pragma once
// A spatial Bloom filter (Palmieri, Calderoni, Maio: "Spatial Bloom Filters: Enabling Privacy in
// Location-Aware Applications", Inscrypt 2014): which of several sets has a key, in one table whose
// cells hold a set's label instead of a bit.
//
// Where two sets meet in a cell the higher label stays; a key's answer is the least label of its
// cells, none if one is empty. So a key of a low set may be told to be of a higher one, and one of
// several sets is told of the highest alone. Nothing can be taken out: what the higher label
// covered is not known any more.

#include "filter/key_hash.hpp"
#include "filter/sizing.hpp"
#include "tools/alternatives/cells.hpp"

#include <cstdint>

namespace reprise::alternatives {

struct spatial_size {
    std::uint64_t cells = 0;
    unsigned probes = 0;
};

/// The fewest cells, with their best probes, in which `keys` of all sets together err with `rate`.
/// @pre keys > 0, 0 < rate < 1
[[nodiscard]] spatial_size spatial_size_for(std::uint64_t keys, double rate) noexcept;

/// The chance that a key is told to be of a higher set than its own, when `above` keys are in
/// those: (1 - e^(-probes * above / cells))^probes. With all keys of all sets, a stranger's rate.
[[nodiscard]] double spatial_rate(const spatial_size& size, double above) noexcept;

/// Memory    cells * ceil(log2(labels + 1)) / 8 bytes.
/// Threads   one; const members at once by any number.
/// Errs      upwards: the answer is never below the highest label that the key was inserted with.
class spatial_filter {
public:
    /// @pre size's members > 0, 0 < labels < 2^32 - 1 @throws std::bad_alloc
    spatial_filter(const spatial_size& size, unsigned labels);

    /// @pre 0 < label <= labels
    void insert(filter::key_hash key, unsigned label) noexcept;

    /// The label of the key's set, or of a higher one; 0 for none.
    [[nodiscard]] unsigned label_of(filter::key_hash key) const noexcept;

    void clear() noexcept { cells_.clear(); }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return cells_.bytes(); }
    bool operator==(const spatial_filter&) const = default;

private:
    unsigned probes_;
    cells cells_;
};

}  // namespace reprise::alternatives
