#include "tools/replay/two_tiers.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

namespace reprise::replay {

using proxy::cache::standing;
using proxy::cache::disk::occupant;
using proxy::cache::disk::space_settings;

namespace {

// Keys of the sketch for each object that would fit, by the mean size of what is missed: its
// counters are then halved about every 20 requests an object, half as often as TinyLFU's would,
// which keeps what a large store holds apart. Until so many misses are known, by a usual size.
constexpr std::uint64_t sketch_keys_an_object = 2;
constexpr std::uint64_t misses_to_know_sizes = 512;
constexpr std::uint64_t usual_object = 64u << 10;
constexpr std::uint64_t smallest_sketch = 16;
constexpr std::uint64_t extents_a_segment = 8;  // FORMAT.md, inline limit
constexpr std::uint64_t largest_on_disk = 4;    // a quarter of the disk

std::uint64_t part(std::uint64_t whole, double share) noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(whole) * share);
}

}  // namespace

two_tiers::two_tiers(const setup& wanted,
                     std::unique_ptr<admission_rule> admission,
                     std::uint64_t capacity,
                     std::uint64_t unit)
    : disk_{wanted.disk.value()},
      all_enter_memory_{wanted.probation >= 1},
      unit_{unit},
      admission_{std::move(admission)},
      sketch_{std::max(smallest_sketch, capacity * unit / usual_object)},
      memory_bytes_{part(capacity * unit, disk_.memory)},
      disk_bytes_{capacity * unit - memory_bytes_},
      segment_bytes_{std::max<std::uint64_t>(16, disk_bytes_ / disk_.segments)},
      extent_bytes_{std::max<std::uint64_t>(1, segment_bytes_ / extents_a_segment)},
      footers_(disk_.segments),
      filled_(disk_.segments) {
    residents_.emplace(make_policy(wanted, memory_bytes_, &sketch_),
                       memory_bytes_,
                       all_enter_memory_ ? 0 : wanted.probation);
    admission_->count_by(sketch_);
    space_.emplace(space_settings{.segments = disk_.segments,
                                  .segment_bytes = segment_bytes_,
                                  .carry = disk_.carry,
                                  .exponent = disk_.exponent.value_or(exponent_of(wanted.wanted))});
}

void two_tiers::feed(std::span<const request> requests, std::size_t objects) {
    in_memory_.make_room(objects);
    stored_.make_room(objects);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        in_memory_.prefetch(requests, i);
        stored_.prefetch(requests, i);
        ask(requests[i]);
    }
}

void two_tiers::ask(const request& wanted) {
    ++tally_.requests;
    tally_.bytes += wanted.bytes;
    sketch_.note(wanted.key);
    space_->aged_to(sketch_.agings());
    if (auto* const found = in_memory_.find(wanted.object)) {
        ++tally_.hits;
        tally_.hit_bytes += wanted.bytes;
        asked_in_memory(wanted, *found);
    } else if (stored_.find(wanted.object) != nullptr) {
        ++tally_.hits;
        ++tally_.disk_hits;
        tally_.hit_bytes += wanted.bytes;
        admission_->hit(wanted);
    } else {
        missed(wanted);
    }
}

void two_tiers::asked_in_memory(const request& wanted, kept& found) {
    // A further sight of what waits is a sight for admission; of what was admitted, a hit.
    if (found.admitted) {
        admission_->hit(wanted);
    } else {
        found.admitted = admission_->admits(wanted);
    }
    found.last_used = wanted.seconds;
    (void)residents_->use(found);
    if (disk_.write == write_when::admission && found.admitted &&
        stored_.find(found.object) == nullptr && is_worth_writing(found.key, found.charge)) {
        const auto key = found.key;
        const auto bytes = found.charge;
        if (!disk_.copies) {
            residents_->leave(found);
            in_memory_.remove(wanted.object);
        }
        write(wanted.object, key, bytes);
    }
}

void two_tiers::missed(const request& wanted) {
    residents_->missed(wanted.key);
    const auto bytes = wanted.bytes * unit_;
    ++misses_;
    missed_bytes_ += bytes;
    if (misses_ >= misses_to_know_sizes && std::has_single_bit(misses_)) {
        const auto objects = static_cast<double>(memory_bytes_ + disk_bytes_) *
                             static_cast<double>(misses_) / static_cast<double>(missed_bytes_ + 1);
        sketch_.grow_to(sketch_keys_an_object * static_cast<std::uint64_t>(objects));
    }
    const bool admitted = admission_->admits(wanted);
    if (!admitted) {
        ++tally_.refused;
        tally_.refused_bytes += wanted.bytes;
    }
    const bool to_disk = admitted && is_worth_writing(wanted.key, bytes);
    const bool is_large = bytes > part(memory_bytes_, disk_.max_in_memory);
    if (to_disk && (is_large || disk_.write == write_when::admission)) {
        write(wanted.object, wanted.key, bytes);
        if (is_large || !disk_.copies) {
            return;
        }
    }
    if (is_large) {
        tally_.too_large += to_disk ? 0 : 1;
    } else {
        enter_memory(wanted, bytes, admitted);
    }
}

void two_tiers::enter_memory(const request& wanted, std::uint64_t bytes, bool admitted) {
    auto& fresh = in_memory_.add(wanted.object);
    fresh.key = wanted.key;
    fresh.charge = bytes;
    fresh.object = wanted.object;
    fresh.admitted = admitted;
    fresh.last_used = wanted.seconds;
    residents_->enter(fresh,
                      admitted || all_enter_memory_ ? standing::admitted : standing::probation);
    // The sketch grows with what is stored, and takes its room from memory; never more than half.
    const auto taken = std::min(sketch_.memory() + admission_->memory(), memory_bytes_ / 2);
    if (memory_bytes_ - taken != planned_for_) {
        planned_for_ = memory_bytes_ - taken;
        residents_->set_capacity(planned_for_);
    }
    while (residents_->bytes() > planned_for_) {
        evict_from_memory(wanted);
    }
}

void two_tiers::evict_from_memory(const request& now) {
    const auto gone = *static_cast<kept*>(residents_->evict());
    in_memory_.remove(gone.object);
    if (gone.admitted) {
        admission_->evicted(gone.key, std::chrono::seconds{now.seconds - gone.last_used});
    }
    if (disk_.write == write_when::eviction && gone.admitted &&
        stored_.find(gone.object) == nullptr && is_worth_writing(gone.key, gone.charge)) {
        write(gone.object, gone.key, gone.charge);
    }
}

bool two_tiers::is_worth_writing(const filter::key_hash& key, std::uint64_t bytes) const {
    return bytes <= disk_bytes_ / largest_on_disk &&
           space_->worth_writing(sketch_.estimate(key), bytes);
}

void two_tiers::write(object_number object, const filter::key_hash& key, std::uint64_t bytes) {
    const auto extents = std::max<std::uint64_t>(1, (bytes + extent_bytes_ - 1) / extent_bytes_);
    auto& fresh = stored_.add(object);
    fresh.key = key;
    fresh.bytes = bytes;
    fresh.places.assign(extents, nowhere);
    ++tally_.written;
    tally_.written_bytes += bytes / unit_;
    for (std::uint32_t i = 0; i < extents; ++i) {
        append({object, i, std::min(extent_bytes_, bytes - i * extent_bytes_)}, false);
        // Making room may have reclaimed a segment that its first extents lie in.
        if (stored_.find(object) == nullptr) {
            return;
        }
    }
}

void two_tiers::append(const record& what, bool carried) {
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
    space_->wrote(open_, occupant_of(what), carried);
    if (carried) {
        tally_.carried_bytes += what.bytes / unit_;
        tally_.written_bytes += what.bytes / unit_;
    }
}

occupant two_tiers::occupant_of(const record& what) const {
    const auto& owner = *stored_.find(what.object);
    return {.bytes = what.bytes, .length = owner.bytes, .frequency = sketch_.estimate(owner.key)};
}

void two_tiers::begin_segment() {
    if (open_ != nowhere) {
        space_->close(open_);
    }
    const auto next = space_->next().value();
    std::vector<record> live;
    std::vector<occupant> occupants;
    for (const auto& one : footers_[next]) {
        const auto* const owner = stored_.find(one.object);
        if (owner != nullptr && one.extent < owner->places.size() &&
            owner->places[one.extent] == next) {
            live.push_back(one);
            occupants.push_back(occupant_of(one));
        }
    }
    const auto chosen = space_->choose(occupants);
    // The rest goes; an object that loses one extent goes as a whole.
    std::vector<bool> is_chosen(live.size());
    for (const auto index : chosen) {
        is_chosen[index] = true;
    }
    for (std::size_t i = 0; i < live.size(); ++i) {
        if (auto* const owner = stored_.find(live[i].object); owner != nullptr && !is_chosen[i]) {
            owner->places[live[i].extent] = nowhere;
            drop_from_disk(live[i].object);
        }
    }
    footers_[next].clear();
    filled_[next] = 0;
    space_->open(next, ++sequence_);
    open_ = next;
    for (const auto index : chosen) {
        const auto* const owner = stored_.find(live[index].object);
        if (owner != nullptr && owner->places[live[index].extent] == next) {
            append(live[index], true);
        }
    }
}

void two_tiers::drop_from_disk(object_number object) {
    const auto& gone = *stored_.find(object);
    for (std::uint32_t i = 0; i < gone.places.size(); ++i) {
        if (gone.places[i] != nowhere) {
            const auto bytes = std::min(extent_bytes_, gone.bytes - i * extent_bytes_);
            space_->died(gone.places[i], occupant_of({object, i, bytes}));
        }
    }
    stored_.remove(object);
}

tally two_tiers::figures() const {
    auto out = tally_;
    out.memory_bytes = sketch_.memory() + admission_->memory() + residents_->overhead();
    return out;
}

}  // namespace reprise::replay
