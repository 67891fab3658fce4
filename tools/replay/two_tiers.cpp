#include "tools/replay/two_tiers.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

namespace reprise::replay {

using proxy::cache::residents;
using proxy::cache::standing;

namespace {

constexpr std::uint64_t misses_to_know_sizes = 512;

}  // namespace

two_tiers::two_tiers(const setup& wanted,
                     std::unique_ptr<admission_rule> admission,
                     parts made,
                     std::uint64_t unit)
    : choice_{wanted.disk.value()},
      made_{std::move(made)},
      has_probation_{wanted.probation > 0},
      unit_{unit},
      admission_{std::move(admission)},
      requests_{*made_.requests},
      own_of_disk_{
          made_.disk_keys != 0
              ? std::optional<proxy::cache::frequency_sketch>{std::in_place, made_.disk_keys}
              : std::nullopt},
      disk_requests_{own_of_disk_ ? *own_of_disk_ : requests_} {
    residents_.emplace(
        make_policy(wanted, made_.memory_bytes, &requests_), made_.memory_bytes, wanted.probation);
    admission_->count_by(requests_);
    auto space = made_.disk;
    space.carry = choice_.carry;
    space.exponent = choice_.exponent.value_or(exponent_of(wanted.wanted));
    space.by_wait = goes_by_wait(wanted.wanted);
    if (choice_.by_object) {
        disk_ = std::make_unique<object_disk>(
            made_.disk_bytes, space.exponent, disk_requests_, space.by_wait);
    } else {
        disk_ = std::make_unique<segmented_disk>(space, made_.extents, disk_requests_);
    }
    if (!wanted.scaled) {
        admission_->follow([this] { return disk_->eviction_age(); });
    }
}

void two_tiers::feed(std::span<const request> requests, std::size_t objects) {
    in_memory_.make_room(objects);
    disk_->make_room(objects);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        in_memory_.prefetch(requests, i);
        disk_->prefetch(requests, i);
        ask(requests[i]);
    }
}

void two_tiers::ask(const request& wanted) {
    tally_.note(wanted);
    requests_.note(wanted.key);
    admission_->asked(wanted);
    if (const auto next = admission_->tune(wanted)) {
        has_probation_ = next->probation > 0;
        residents_->set_probation(next->probation);
        residents_->set_exponent(next->exponent);
        disk_->set_exponent(next->exponent);
    }
    if (own_of_disk_) {
        own_of_disk_->note(wanted.key);
    }
    disk_->aged_to(disk_requests_.agings());
    disk_->at(wanted.seconds);
    if (auto* const found = in_memory_.find(wanted.object)) {
        ++tally_.hits;
        tally_.hit_bytes += wanted.bytes;
        asked_in_memory(wanted, *found);
    } else if (disk_->holds(wanted.object)) {
        ++tally_.hits;
        ++tally_.disk_hits;
        tally_.hit_bytes += wanted.bytes;
        admission_->hit(wanted);
        const auto uses = disk_->hit(wanted.object);
        const auto bytes = wanted.bytes * unit_;
        if (uses > 1 && promotes() && bytes <= made_.largest_in_memory) {
            enter_memory(wanted, bytes, standing::admitted);
        }
    } else {
        missed(wanted);
    }
}

void two_tiers::asked_in_memory(const request& wanted, kept& found) {
    admission_->hit(wanted);
    found.last_used = wanted.seconds;
    found.was_found = true;
    const bool just_admitted = residents_->use(found);
    if (choice_.write == write_when::admission && (just_admitted || !made_.copies) &&
        residents::standing_of(found) == standing::admitted && !disk_->holds(found.object) &&
        goes_to_disk(found.key, found.charge, found.wait())) {
        const auto key = found.key;
        const auto wait = found.wait();
        const auto bytes = found.charge;
        if (!made_.copies) {
            residents_->leave(found);
            in_memory_.remove(wanted.object);
        }
        write(wanted.object, key, bytes, wait);
    }
}

void two_tiers::missed(const request& wanted) {
    tally_.waited += wanted.wait().seconds();
    residents_->missed(wanted.key);
    const auto bytes = wanted.bytes * unit_;
    ++misses_;
    missed_bytes_ += bytes;
    if (made_.requests_grow && misses_ >= misses_to_know_sizes && std::has_single_bit(misses_)) {
        const auto objects = static_cast<double>(made_.memory_bytes + made_.disk_bytes) *
                             static_cast<double>(misses_) / static_cast<double>(missed_bytes_ + 1);
        requests_.grow_to(sketch_keys_an_object * static_cast<std::uint64_t>(objects));
    }
    const bool admitted = admission_->admits(wanted);
    if (!admitted) {
        ++tally_.refused;
        tally_.refused_bytes += wanted.bytes;
    }
    const bool to_disk = admitted && goes_to_disk(wanted.key, bytes, wanted.wait());
    const bool is_large = bytes > made_.largest_in_memory;
    if (to_disk && (is_large || choice_.write == write_when::admission)) {
        write(wanted.object, wanted.key, bytes, wanted.wait());
        if (is_large || !made_.copies) {
            return;
        }
    }
    if (is_large) {
        tally_.too_large += to_disk ? 0 : 1;
    } else if (admitted || has_probation_) {
        enter_memory(wanted, bytes, admitted ? standing::admitted : standing::probation);
    }
}

void two_tiers::enter_memory(const request& wanted, std::uint64_t bytes, standing as) {
    auto& fresh = in_memory_.add(wanted.object);
    fresh.key = wanted.key;
    fresh.charge = bytes;
    fresh.set_wait(wanted.wait());
    fresh.object = wanted.object;
    fresh.last_used = wanted.seconds;
    residents_->enter(fresh, as, as == standing::admitted ? 1 : admission_->uses_to_admit());
    // A sketch that grows with what is stored takes its room from memory; never more than half.
    const auto taken = made_.counts_overhead ? std::min(requests_.memory() + admission_->memory(),
                                                        made_.memory_bytes / 2)
                                             : 0;
    if (made_.memory_bytes - taken != planned_for_) {
        planned_for_ = made_.memory_bytes - taken;
        residents_->set_capacity(planned_for_);
    }
    while (residents_->bytes() > planned_for_) {
        evict_from_memory(wanted);
    }
}

void two_tiers::evict_from_memory(const request& now) {
    const auto gone = *static_cast<kept*>(residents_->evict());
    in_memory_.remove(gone.object);
    if (residents::standing_of(gone) == standing::admitted) {
        admission_->evicted(gone.key, std::chrono::seconds{now.seconds - gone.last_used});
    }
    if (choice_.write == write_when::eviction && is_for_disk(gone) && !disk_->holds(gone.object) &&
        goes_to_disk(gone.key, gone.charge, gone.wait())) {
        write(gone.object, gone.key, gone.charge, gone.wait());
    }
}

// As cache::store has it: where each tier has objects of its own, a copy would push one out.
bool two_tiers::promotes() const noexcept {
    return made_.copies || (choice_.write == write_when::eviction && !choice_.selective);
}

// As cache::store decides which of those that leave memory are offered to the disk.
bool two_tiers::is_for_disk(const kept& leaving) const noexcept {
    const bool admitted = residents::standing_of(leaving) == standing::admitted;
    if (!choice_.selective) {
        return admitted && leaving.was_found;
    }
    return admitted || disk_->filling();
}

bool two_tiers::goes_to_disk(const filter::key_hash& key,
                             std::uint64_t bytes,
                             proxy::cache::packed_wait wait) noexcept {
    if (bytes > made_.largest_on_disk) {
        return false;
    }
    return choice_.selective ? disk_->is_worth_writing(key, bytes, wait)
                             : disk_->has_room_for(bytes);
}

void two_tiers::write(object_number object,
                      const filter::key_hash& key,
                      std::uint64_t bytes,
                      proxy::cache::packed_wait wait) {
    disk_->write(object, key, bytes, wait);
    ++tally_.written;
    tally_.written_bytes += bytes / unit_;
}

tally two_tiers::figures() const {
    auto out = tally_;
    out.carried_bytes = disk_->carried_bytes() / unit_;
    out.written_bytes += out.carried_bytes;
    out.memory_bytes = requests_.memory() + (own_of_disk_ ? own_of_disk_->memory() : 0) +
                       admission_->memory() + residents_->overhead();
    return out;
}

}  // namespace reprise::replay
