#include "proxy/cache/memory/invalidation_times.hpp"

#include "proxy/base/relaxed.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

namespace reprise::proxy::cache {

invalidation_times::invalidation_times()
    : seconds_{std::make_unique<std::atomic<std::uint32_t>[]>(slots)} {}

std::atomic<std::uint32_t>& invalidation_times::slot_of(
    const filter::key_hash& key) const noexcept {
    return seconds_[key.low % slots];
}

void invalidation_times::raise(std::atomic<std::uint32_t>& slot, steady_time when) noexcept {
    const auto whole = std::chrono::ceil<std::chrono::seconds>(when).time_since_epoch().count();
    const auto next = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(whole, 0, std::numeric_limits<std::uint32_t>::max()));
    auto held = slot.load(relaxed);
    while (held < next && !slot.compare_exchange_weak(held, next, relaxed)) {
    }
}

void invalidation_times::note(const filter::key_hash& key, steady_time when) noexcept {
    raise(slot_of(key), when);
}

void invalidation_times::note_all(steady_time when) noexcept {
    for (std::size_t i = 0; i < slots; ++i) {
        raise(seconds_[i], when);
    }
}

bool invalidation_times::since(const filter::key_hash& key, steady_time moment) const noexcept {
    const auto held = slot_of(key).load(relaxed);
    return held != 0 && steady_time{std::chrono::seconds{held}} >= moment;
}

}  // namespace reprise::proxy::cache
