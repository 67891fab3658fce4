#include "proxy/cache/uncacheable.hpp"

#include <algorithm>

namespace reprise::proxy::cache {

namespace {

constexpr unsigned time_bits = 32;
constexpr std::uint64_t time_mask = (std::uint64_t{1} << time_bits) - 1;
constexpr unsigned why_bits = 4;
constexpr std::uint64_t why_mask = (std::uint64_t{1} << why_bits) - 1;
constexpr std::uint64_t below_tag = (std::uint64_t{1} << (why_bits + time_bits)) - 1;
constexpr std::uint64_t too_large = why_mask;
static_assert(static_cast<std::uint64_t>(http::storability::useless) < too_large);

// Since the machine began. They must not wrap: nothing takes out what is over, and a word that nobody asked for in
// between would come alive again.
std::uint64_t second_of(steady_time at) noexcept {
    const auto since = std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch());
    return std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(since.count(), 0)),
                    time_mask);
}

std::uint64_t tag_of(const filter::key_hash& key) noexcept {
    return key.high & ~below_tag;
}

}  // namespace

bool is_passing(unsigned status) noexcept {
    return status >= 500 || status == 408 || status == 425 || status == 429;
}

bool speaks_for_next(http::storability verdict, unsigned status) noexcept {
    using http::storability;
    if (is_passing(status)) {
        return false;
    }
    switch (verdict) {
    case storability::no_store:
    case storability::private_response:
    case storability::vary_any:
    case storability::set_cookie:
    case storability::useless: return true;
    case storability::must_understand:
    case storability::no_lifetime: return status < 400;
    case storability::storable:
    case storability::method:
    case storability::no_store_request:
    case storability::partial:
    case storability::status:
    case storability::authorization:
    case storability::cookie: break;
    }
    return false;
}

uncacheable_keys::uncacheable_keys()
    : slots_{std::make_unique<std::atomic<std::uint64_t>[]>(slot_count)} {}

void uncacheable_keys::note(const filter::key_hash& key,
                            http::storability why,
                            steady_time now,
                            std::chrono::seconds for_long) noexcept {
    put(key, static_cast<std::uint64_t>(why), now, for_long);
}

void uncacheable_keys::note_too_large(const filter::key_hash& key,
                                      steady_time now,
                                      std::chrono::seconds for_long) noexcept {
    put(key, too_large, now, for_long);
}

void uncacheable_keys::put(const filter::key_hash& key,
                           std::uint64_t why,
                           steady_time now,
                           std::chrono::seconds for_long) noexcept {
    slots_[key.low % slot_count].store(tag_of(key) | why << time_bits | second_of(now + for_long),
                                       std::memory_order_relaxed);
}

void uncacheable_keys::forget(const filter::key_hash& key) noexcept {
    auto& slot = slots_[key.low % slot_count];
    if ((slot.load(std::memory_order_relaxed) & ~below_tag) == tag_of(key)) {
        slot.store(0, std::memory_order_relaxed);
    }
}

std::optional<http::storability> uncacheable_keys::why(const filter::key_hash& key,
                                                       steady_time now) const noexcept {
    const auto why = noted(key, now);
    if (!why || *why == too_large) {
        return std::nullopt;
    }
    return static_cast<http::storability>(*why);
}

bool uncacheable_keys::was_too_large(const filter::key_hash& key, steady_time now) const noexcept {
    return noted(key, now) == too_large;
}

std::optional<std::uint64_t> uncacheable_keys::noted(const filter::key_hash& key,
                                                     steady_time now) const noexcept {
    const auto word = slots_[key.low % slot_count].load(std::memory_order_relaxed);
    if (word == 0 || (word & ~below_tag) != tag_of(key)) {
        return std::nullopt;
    }
    if ((word & time_mask) <= second_of(now)) {
        return std::nullopt;
    }
    return word >> time_bits & why_mask;
}

}  // namespace reprise::proxy::cache
