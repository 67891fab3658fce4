#include "tools/replay/one_tier.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace reprise::replay {

using proxy::cache::standing;

one_tier::one_tier(std::unique_ptr<proxy::cache::eviction_policy> policy,
                   std::unique_ptr<admission_rule> admission,
                   std::uint64_t capacity_bytes,
                   double probation,
                   one_tier_parts with)
    : requests_{std::move(with.requests)},
      requests_grow_{with.requests_grow},
      largest_{std::min(with.largest, capacity_bytes)},
      residents_{std::move(policy), capacity_bytes, probation},
      admission_{std::move(admission)},
      capacity_{capacity_bytes},
      has_probation_{probation > 0} {
    if (requests_) {
        admission_->count_by(*requests_);
    }
}

void one_tier::feed(std::span<const request> requests, std::size_t objects) {
    entries_.make_room(objects);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        entries_.prefetch(requests, i);
        ask(requests[i]);
    }
}

void one_tier::count_write(std::uint64_t bytes) noexcept {
    ++tally_.written;
    tally_.written_bytes += bytes;
}

void one_tier::ask(const request& wanted) {
    tally_.note(wanted);
    if (requests_) {
        requests_->note(wanted.key);
    }
    admission_->asked(wanted);
    if (const auto next = admission_->tune(wanted)) {
        has_probation_ = next->probation > 0;
        residents_.set_probation(next->probation);
        residents_.set_exponent(next->exponent);
    }
    if (auto* const kept = entries_.find(wanted.object)) {
        kept->last_used = wanted.seconds;
        ++tally_.hits;
        tally_.hit_bytes += wanted.bytes;
        admission_->hit(wanted);
        if (residents_.use(*kept)) {
            count_write(kept->charge);
        }
        return;
    }
    tally_.waited += wanted.wait().seconds();
    residents_.missed(wanted.key);
    const bool admitted = admission_->admits(wanted);
    if (wanted.bytes > largest_) {
        ++tally_.too_large;
    } else if (admitted) {
        store(wanted, standing::admitted);
        count_write(wanted.bytes);
    } else {
        ++tally_.refused;
        tally_.refused_bytes += wanted.bytes;
        if (has_probation_) {
            store(wanted, standing::probation);
        }
    }
}

void one_tier::store(const request& wanted, standing as) {
    auto& fresh = entries_.add(wanted.object);
    fresh.key = wanted.key;
    fresh.charge = wanted.bytes;
    fresh.set_wait(wanted.wait());
    fresh.object = wanted.object;
    fresh.last_used = wanted.seconds;
    residents_.enter(fresh, as, as == standing::admitted ? 1 : admission_->uses_to_admit());
    while (residents_.bytes() > capacity_) {
        evict(wanted);
    }
    if (requests_ && requests_grow_) {
        requests_->grow_to(sketch_keys_an_object * residents_.count());
    }
}

void one_tier::evict(const request& now) {
    const auto& gone = *static_cast<entry*>(residents_.evict());
    if (proxy::cache::residents::standing_of(gone) == standing::admitted) {
        admission_->evicted(gone.key, std::chrono::seconds{now.seconds - gone.last_used});
    }
    entries_.remove(gone.object);
}

tally one_tier::figures() const {
    auto out = tally_;
    out.memory_bytes = admission_->memory() + residents_.overhead() +
                       (requests_ ? requests_->memory() : 0);
    return out;
}

}  // namespace reprise::replay
