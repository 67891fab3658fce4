#include "tools/replay/disk_model.hpp"

#include "proxy/cache/disk/index.hpp"

#include <algorithm>

namespace reprise::replay {

using proxy::cache::disk::occupant;
using proxy::cache::disk::space_settings;

namespace {

constexpr auto largest = proxy::cache::disk_ghost::largest_part;
constexpr unsigned most_uses = proxy::cache::disk::record_index::most_uses;

}  // namespace

segmented_disk::segmented_disk(const space_settings& settings,
                               unsigned extents,
                               const proxy::cache::frequency_sketch& sketch)
    : sketch_{sketch},
      bytes_{settings.segments * settings.segment_bytes},
      segment_bytes_{settings.segment_bytes},
      extent_bytes_{std::max<std::uint64_t>(1, segment_bytes_ / extents)},
      space_{settings},
      footers_(settings.segments),
      filled_(settings.segments),
      begun_(settings.segments) {}

bool segmented_disk::is_worth_writing(const filter::key_hash& key,
                                      std::uint64_t bytes,
                                      packed_wait wait) noexcept {
    return has_room_for(bytes) && space_.worth_writing(sketch_.estimate(key), bytes, wait);
}

std::optional<std::chrono::seconds> segmented_disk::eviction_age() const {
    if (!has_evicted_) {
        return std::nullopt;
    }
    // Once something had to leave, all of them have begun.
    const auto oldest = *std::min_element(begun_.begin(), begun_.end());
    return std::chrono::seconds{now_ - std::min(oldest, now_)};
}

bool segmented_disk::has_room_for(std::uint64_t bytes) const noexcept {
    return bytes <= bytes_ / largest;
}

void segmented_disk::write(object_number object,
                           const filter::key_hash& key,
                           std::uint64_t bytes,
                           packed_wait wait) {
    space_.note_wait(wait);
    const auto extents = std::max<std::uint64_t>(1, (bytes + extent_bytes_ - 1) / extent_bytes_);
    auto& fresh = stored_.add(object);
    fresh.key = key;
    fresh.bytes = bytes;
    fresh.wait = wait;
    fresh.places.assign(extents, nowhere);
    for (std::uint32_t i = 0; i < extents; ++i) {
        append({object, i, std::min(extent_bytes_, bytes - i * extent_bytes_)}, false);
        // Making room may have reclaimed a segment that its first extents lie in.
        if (stored_.find(object) == nullptr) {
            return;
        }
    }
}

void segmented_disk::append(const record& what, bool carried) {
    while (open_ == nowhere || filled_[open_] + what.bytes > segment_bytes_) {
        begin_segment();
    }
    auto* const owner = stored_.find(what.object);
    if (owner == nullptr) {
        return;
    }
    owner->places[what.extent] = open_;
    footers_[open_].push_back(what);
    filled_[open_] += what.bytes;
    owner->uses = carried ? 0 : owner->uses;
    space_.wrote(open_, occupant_of(what), carried);
}

occupant segmented_disk::occupant_of(const record& what) const {
    const auto& owner = *stored_.find(what.object);
    return {.bytes = what.bytes,
            .length = owner.bytes,
            .frequency = sketch_.estimate(owner.key),
            .wait = owner.wait};
}

void segmented_disk::begin_segment() {
    if (open_ != nowhere) {
        space_.close(open_);
    }
    const auto next = space_.next().value();
    std::vector<record> live;
    std::vector<occupant> occupants;
    for (const auto& one : footers_[next]) {
        const auto* const owner = stored_.find(one.object);
        if (owner != nullptr && one.extent < owner->places.size() &&
            owner->places[one.extent] == next) {
            live.push_back(one);
            occupants.push_back(occupant_of(one));
            auto& frequency = occupants.back().frequency;
            frequency = std::max(frequency, std::min(owner->uses, most_uses));
        }
    }
    const auto chosen = space_.choose(occupants);
    // The rest goes; an object that loses one extent goes as a whole.
    std::vector<bool> is_chosen(live.size());
    for (const auto index : chosen) {
        is_chosen[index] = true;
    }
    for (std::size_t i = 0; i < live.size(); ++i) {
        if (auto* const owner = stored_.find(live[i].object); owner != nullptr && !is_chosen[i]) {
            owner->places[live[i].extent] = nowhere;
            drop(live[i].object);
            has_evicted_ = true;
        }
    }
    footers_[next].clear();
    filled_[next] = 0;
    begun_[next] = now_;
    space_.open(next, ++sequence_);
    open_ = next;
    for (const auto index : chosen) {
        const auto* const owner = stored_.find(live[index].object);
        if (owner != nullptr && owner->places[live[index].extent] == next) {
            append(live[index], true);
        }
    }
}

void segmented_disk::drop(object_number object) {
    const auto& gone = *stored_.find(object);
    for (std::uint32_t i = 0; i < gone.places.size(); ++i) {
        if (gone.places[i] != nowhere) {
            const auto bytes = std::min(extent_bytes_, gone.bytes - i * extent_bytes_);
            space_.died(gone.places[i], occupant_of({object, i, bytes}));
        }
    }
    stored_.remove(object);
}

void object_disk::write(object_number object,
                        const filter::key_hash& key,
                        std::uint64_t bytes,
                        packed_wait wait) {
    auto& fresh = stored_.add(object);
    fresh.key = key;
    fresh.charge = bytes;
    fresh.set_wait(wait);
    fresh.object = object;
    held_.enter(fresh);
    while (auto* const gone = held_.evict()) {
        stored_.remove(static_cast<entry*>(gone)->object);
    }
}

}  // namespace reprise::replay
