#include "proxy/cache/admission/admission_sizing.hpp"

#include "filter/bloom.hpp"

#include <algorithm>
#include <bit>

namespace reprise::proxy::cache {

namespace {

// Where memory has the room it begins with so many: 8 MiB of filter. What comes between two looks,
// a second apart, is far less, so nothing that was seen is forgotten in a store that has room.
constexpr std::uint64_t begin_objects = 1u << 21;

std::uint64_t within(std::uint64_t objects, const admission_bounds& bounds) noexcept {
    return std::bit_ceil(std::clamp(objects, admission_bounds::least_objects, bounds.most_objects));
}

// What `age` should be so that `wanted` is remembered: the next power of two of seconds.
std::chrono::seconds age_for(std::chrono::seconds wanted) noexcept {
    const auto seconds = std::clamp(
        wanted, admission_bounds::least_age, admission_bounds::most_age);
    return std::min(
        std::chrono::seconds{std::bit_ceil(static_cast<std::uint64_t>(seconds.count()))},
        std::chrono::seconds{admission_bounds::most_age});
}

}  // namespace

admission_bounds bounds_within(std::uint64_t bytes,
                               const filter::admission_settings& settings) noexcept {
    admission_bounds bounds{.most_objects = admission_bounds::least_objects};
    auto next = settings;
    for (next.objects = 2 * admission_bounds::least_objects; next.objects <= 1u << 30;
         next.objects *= 2) {
        if (2 * settings.layers * filter::admission_blocks(next) * filter::block_bytes > bytes) {
            break;
        }
        bounds.most_objects = next.objects;
    }
    return bounds;
}

filter::admission_settings begin_remembering(filter::admission_settings settings,
                                             const admission_bounds& bounds) noexcept {
    settings.objects = within(begin_objects, bounds);
    settings.age = admission_bounds::most_age;
    return settings;
}

filter::admission_settings follow(const filter::admission_settings& is,
                                  const filter::admission_figures& figures,
                                  std::chrono::sys_seconds now,
                                  std::optional<std::chrono::seconds> eviction_age,
                                  const admission_bounds& bounds) noexcept {
    auto next = is;
    const auto nearly_full = [&is](const auto& generation) {
        return generation.keys >= is.objects / 4 * 3;
    };
    if (!eviction_age) {
        next.age = admission_bounds::most_age;
        // The old one was filled where a flow turned it between two looks.
        if (nearly_full(figures.young) || nearly_full(figures.old)) {
            next.objects = within(is.objects * 4, bounds);
        }
        return next;
    }
    const auto wanted = std::clamp(
        *eviction_age, admission_bounds::least_age, admission_bounds::most_age);
    if (wanted > is.age || wanted < is.age / 4) {
        next.age = age_for(wanted);
    }
    // How many come within that age, from how many came to the young generation. One just begun
    // says nothing.
    constexpr std::uint64_t enough_keys = 1'000;
    constexpr std::chrono::seconds enough_time{60};
    const auto span = now - figures.young.since;
    // What fills a generation before its time is outrun, however short that time was: it may turn
    // before any rate can be told from it.
    const auto soon = std::min(enough_time, next.age);
    if ((nearly_full(figures.young) && span < soon) ||
        (nearly_full(figures.old) && figures.young.since - figures.old.since < soon)) {
        next.objects = within(is.objects * 4, bounds);
        return next;
    }
    if (figures.young.keys < enough_keys || span < enough_time) {
        return next;
    }
    const auto expected = static_cast<double>(figures.young.keys) /
                          static_cast<double>(span.count()) * static_cast<double>(next.age.count());
    const auto needed = static_cast<std::uint64_t>(
        std::min(expected * 1.25, static_cast<double>(bounds.most_objects)));
    if (needed > is.objects || needed < is.objects / 4) {
        next.objects = within(needed, bounds);
    }
    return next;
}

}  // namespace reprise::proxy::cache
