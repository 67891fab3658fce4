#include "proxy/base/relaxed.hpp"
#include "proxy/cache/memory/memory_stripes.hpp"
#include "proxy/cache/memory/memory_tier.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <new>

// The budget over all stripes: what is charged is counted once, in atomics, and what must leave leaves the
// fullest stripe, one response at a time, each in a visit of its own. Who hears of what has left hears
// of it under no lock. Beside that, what changes the budget, or the shares within it, while the tier is in use.

namespace reprise::proxy::cache {

bool memory_tier::takes(const filter::key_hash& key, std::string_view url, std::uint64_t bytes) {
    if (bytes <= room()) {
        return true;
    }
    locked_stripe home{*this, key};
    return !home.settled(key, url).empty() || home->takes(key, bytes, outlook(bytes));
}

// For a stripe to which `more` bytes are promised beside its part of all promises.
stripe_outlook memory_tier::outlook(std::uint64_t more) const noexcept {
    const auto taken = this->taken() + more;
    const auto excess = taken - std::min(taken, capacity_.load(relaxed));
    const auto for_more = std::min(excess, more);
    return {.expected = reserved_.load(relaxed) / stripes_->count + more,
            .excess = excess,
            .own = for_more + (excess - for_more) / stripes_->count};
}

std::uint64_t memory_tier::taken() const noexcept {
    return used_.load(relaxed) + reserved_.load(relaxed) + overhead_.load(relaxed);
}

bool memory_tier::is_over() const noexcept {
    return taken() > capacity_.load(relaxed);
}

// For `needed` bytes that have just come.
void memory_tier::make_room(std::uint64_t needed) {
    // Ends: each turn takes something out or finds nothing to take, but for what another thread
    // takes before us.
    std::size_t in_vain = 0;
    for (std::uint64_t evicted = 0; is_over() && in_vain < stripes::most;) {
        if (evicted >= 2 * needed && lowering_.load(relaxed) != 0) {
            return;  // the rest is set_capacity's
        }
        const auto bytes = evict_one(evicted_to_);
        evicted += bytes;
        in_vain = bytes != 0 ? 0 : in_vain + 1;
    }
}

// How many bytes that was; 0: nothing was there.
std::uint64_t memory_tier::evict_one(std::span<const eviction_listener> told) {
    const bool probation_first = static_cast<double>(line_bytes_.load(relaxed)) >
                                 probation_.load(relaxed) *
                                     static_cast<double>(capacity_.load(relaxed));
    auto at = probation_first ? stripes_->fullest(stripes_->waiting) : stripes_->count;
    if (at == stripes_->count) {
        at = stripes_->fullest(stripes_->objects);
    }
    if (at == stripes_->count) {
        return 0;
    }
    const bool for_room = told.data() == evicted_to_.data();
    bool hands_on = outrun_to_ && for_room;
    memory_stripe::evicted out;
    invalidation_mark asked;
    handing on;
    {
        locked_stripe home{*this, at};
        if (hands_on && !home->can_hand_on()) {
            told = {};  // it leaves all the same, as what is not worth writing
            hands_on = false;
        }
        out = home->evict(probation_first, outlook(0));
        home.note_overhead();
        if (!out.one) {
            return 0;
        }
        asked = {invalidated_keys_.count(out.one->key), purges_.epoch_of(out.one->checked())};
        if (hands_on) {
            begin(on, *home, out.one->key, &out.one->response());
        }
    }
    const auto& gone = *out.one;
    evicted_.fetch_add(1, relaxed);
    evicted_bytes_.fetch_add(gone.charge, relaxed);
    if (out.was_admitted) {
        note_eviction_age(gone.last_used);
    }
    const auto left = gone.held_response();
    const evicted_response how{.key = gone.key,
                               .url = gone.url(),
                               .response = left,
                               .was_found = gone.was_found(),
                               .was_admitted = out.was_admitted,
                               .asked = asked};
    for (const auto& tell : told) {
        try {
            tell(how);
        } catch (const std::bad_alloc&) {
            if (!for_room) {
                throw;
            }
            // Whoever made room for something has it: that this was not worth writing is all that follows.
        }
    }
    if (on.end() && how.was_given_on) {
        outrun_to_(how);
    }
    return gone.charge;
}

void memory_tier::empty_into(const eviction_listener& told) {
    while (evict_one({&told, 1}) != 0) {
    }
}

void memory_tier::tick(steady_time now) noexcept {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count();
    tick_.store(static_cast<std::uint32_t>(seconds), relaxed);
}

void memory_tier::note_eviction_age(std::uint32_t last_used) noexcept {
    const auto now = tick_.load(relaxed);
    if (now == 0 || last_used == 0) {
        return;
    }
    const auto age = static_cast<double>(now - std::min(last_used, now));
    const auto before = eviction_age_at(now);
    // Threads that meet here lose one sample of 64.
    eviction_age_.store(before < 0 ? age : before + (age - before) / 64, relaxed);
    evicted_at_.store(now, relaxed);
}

// Only what leaves moves the mean. But what stayed at the last eviction, and was not asked for since, has been
// there for as long: so the age grows while nothing leaves, after the capacity was raised say.
double memory_tier::eviction_age_at(std::uint32_t now) const noexcept {
    const auto mean = eviction_age_.load(relaxed);
    const auto since_last = now - std::min(evicted_at_.load(relaxed), now);
    return mean < 0 ? mean : std::max(mean, static_cast<double>(since_last));
}

void memory_tier::set_capacity(std::uint64_t bytes) {
    lowering_.fetch_add(1, relaxed);
    capacity_.store(bytes, relaxed);
    try {
        for (std::size_t i = 0; i < stripes_->count; ++i) {
            locked_stripe home{*this, i};
            home->held.set_capacity(bytes / stripes_->count);
            home.note_overhead();
        }
        // Before, as far as can be told what will stay: or what is taken for keys that are to go would push
        // out the others too. And after, for what was put meanwhile had it grow again.
        const auto held = std::max<std::uint64_t>(used_.load(relaxed), 1);
        trim_policies(std::min(1.0, static_cast<double>(bytes) / static_cast<double>(held)));
        make_room(std::numeric_limits<std::uint64_t>::max() / 2);
        trim_policies(1);
    } catch (...) {
        lowering_.fetch_sub(1, relaxed);
        throw;
    }
    lowering_.fetch_sub(1, relaxed);
}

// For a share of what each holds.
void memory_tier::trim_policies(double share) {
    for (std::size_t i = 0; i < stripes_->count; ++i) {
        locked_stripe home{*this, i};
        try {
            home->held.trim(
                static_cast<std::uint64_t>(static_cast<double>(home->held.count()) * share));
        } catch (const std::bad_alloc&) {
            // It stays as large as it is.
        }
        home.note_overhead();
    }
}

void memory_tier::set_probation(double share) {
    probation_.store(share, relaxed);
    for (std::size_t i = 0; i < stripes_->count; ++i) {
        locked_stripe home{*this, i};
        home->held.set_probation(share);
    }
}

void memory_tier::set_exponent(double exponent) {
    for (std::size_t i = 0; stripes_->by_size && i < stripes_->count; ++i) {
        locked_stripe home{*this, i};
        home->held.set_exponent(exponent);
    }
}

std::uint64_t memory_tier::room() const noexcept {
    const auto taken = this->taken();
    const auto capacity = capacity_.load(relaxed);
    return capacity > taken ? capacity - taken : 0;
}

memory_figures memory_tier::figures() const noexcept {
    memory_figures f;
    f.objects = objects_.load(relaxed);
    f.bytes = used_.load(relaxed);
    f.reserved = reserved_.load(relaxed);
    f.capacity = capacity_.load(relaxed);
    f.overhead = overhead_.load(relaxed);
    f.probation_objects = waiting_.load(relaxed);
    f.probation_bytes = waiting_bytes_.load(relaxed);
    f.inserted = inserted_.load(relaxed);
    f.replaced = replaced_.load(relaxed);
    f.freshened = freshened_.load(relaxed);
    f.evicted = evicted_.load(relaxed);
    f.evicted_bytes = evicted_bytes_.load(relaxed);
    f.invalidated = invalidated_.load(relaxed);
    f.refused = refused_.load(relaxed);
    f.purged = purged_.load(relaxed);
    f.promoted = promoted_.load(relaxed);
    f.promoted_bytes = promoted_bytes_.load(relaxed);
    if (const auto age = eviction_age_at(tick_.load(relaxed)); age >= 0) {
        f.eviction_age = std::chrono::seconds{static_cast<std::int64_t>(age)};
    }
    return f;
}

}  // namespace reprise::proxy::cache
