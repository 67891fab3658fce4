#include "proxy/cache/policy/disk_ghost.hpp"

#include <algorithm>
#include <cmath>

namespace reprise::proxy::cache {

disk_ghost::disk_ghost(std::uint64_t bytes,
                       double exponent,
                       const frequency_sketch& sketch,
                       bool by_wait)
    : sketch_{sketch},
      bytes_{bytes},
      exponent_{exponent},
      by_wait_{by_wait},
      order_{exponent, &sketch, by_wait},
      agings_{sketch.agings()} {}

void disk_ghost::set_exponent(double exponent) noexcept {
    // What left last is worth by the new one what an object of a mean size among those here is.
    if (exponent != exponent_ && threshold_ > 0 && mean_bytes_ > 1) {
        threshold_ *= std::pow(mean_bytes_, exponent_ - exponent);
    }
    exponent_ = exponent;
    order_.set_exponent(exponent);
}

double disk_ghost::density(const filter::key_hash& key,
                           std::uint64_t bytes,
                           packed_wait wait) const noexcept {
    const double requests = sketch_.estimate(key);
    return (by_wait_ ? requests * waits_.seconds_of(wait) : requests) /
           std::pow(static_cast<double>(std::max<std::uint64_t>(1, bytes)), exponent_);
}

void disk_ghost::age() noexcept {
    for (; agings_ < sketch_.agings(); ++agings_) {
        threshold_ /= 2;
    }
}

bool disk_ghost::has_room_for(std::uint64_t bytes) const noexcept {
    return bytes <= bytes_ / largest_part;
}

bool disk_ghost::is_worth_writing(const filter::key_hash& key,
                                  std::uint64_t bytes,
                                  packed_wait wait) noexcept {
    age();
    return has_room_for(bytes) &&
           (used_ + bytes <= bytes_ || density(key, bytes, wait) > threshold_);
}

void disk_ghost::enter(evictable& entry) {
    waits_.note(entry.wait());
    order_.inserted(entry);
    used_ += entry.charge;
    const auto bytes = static_cast<double>(entry.charge);
    mean_bytes_ += (bytes - mean_bytes_) / (mean_bytes_ == 0 ? 1 : 256);
}

void disk_ghost::leave(evictable& entry) noexcept {
    order_.removed(entry);
    used_ -= entry.charge;
}

evictable* disk_ghost::evict() noexcept {
    if (used_ <= bytes_) {
        return nullptr;
    }
    auto* const gone = order_.evict();
    if (gone != nullptr) {
        used_ -= gone->charge;
        age();
        threshold_ = density(gone->key, gone->charge, gone->wait());
    }
    return gone;
}

}  // namespace reprise::proxy::cache
