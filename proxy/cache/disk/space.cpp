#include "proxy/cache/disk/space.hpp"

#include "proxy/base/relaxed.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace reprise::proxy::cache::disk {

namespace {

// The threshold is a mean over about so many reclaimed segments.
constexpr double segments_remembered = 32;

constexpr bool many_free(segment_number free, segment_number all) noexcept {
    return free > all / 16;
}

}  // namespace

space::space(const space_settings& settings)
    : settings_{settings},
      segments_(std::max(settings.segments, settings.numbers)),
      exponent_{settings.exponent},
      filling_{many_free(settings.segments, settings.segments)} {
    figures_.free = settings.segments;
}

// The writer's thread changes it, and whoever first hears that the sketch has aged.
template <class Change>
void space::change_threshold(const Change& change) noexcept {
    auto before = threshold();
    while (!threshold_.compare_exchange_weak(before, change(before), relaxed)) {
    }
}

void space::left_free() noexcept {
    figures_.free -= figures_.free != 0 ? 1 : 0;
    filling_.store(many_free(figures_.free, settings_.segments), relaxed);
}

void space::no_more_room() noexcept {
    filling_.store(false, relaxed);
}

void space::found(segment_number segment, std::uint64_t sequence, std::uint64_t live) {
    auto& it = segments_[segment];
    if (it.is == state::free) {
        left_free();
    }
    live_ += live - it.live;
    it.live = live;
    it.sequence = sequence;
    it.is = state::closed;
}

std::optional<segment_number> space::next() const noexcept {
    std::optional<segment_number> best;
    for (segment_number i = 0; i < settings_.segments; ++i) {
        const auto& it = segments_[i];
        if (it.is == state::free) {
            return i;
        }
        if (it.is == state::closed && (!best || it.sequence < segments_[*best].sequence)) {
            best = i;
        }
    }
    return best;
}

std::vector<std::uint32_t> space::choose(std::span<const occupant> live) {
    if (live.empty()) {
        return {};  // nothing is let go, which says nothing of what others are worth
    }
    std::vector<double> densities(live.size());
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < live.size(); ++i) {
        densities[i] = density(live[i].frequency, live[i].length, live[i].wait);
        bytes += live[i].bytes;
    }
    std::vector<std::uint32_t> order(live.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return densities[a] != densities[b] ? densities[a] > densities[b] : a < b;
    });

    const auto room = static_cast<std::uint64_t>(settings_.carry * static_cast<double>(bytes));
    std::uint64_t carried = 0;
    std::size_t kept = 0;
    while (kept < order.size() && densities[order[kept]] > 0 &&
           carried + live[order[kept]].bytes <= room) {
        carried += live[order[kept]].bytes;
        ++kept;
    }
    const double cut = kept < order.size() ? densities[order[kept]] : 0;
    if (kept < order.size()) {
        const auto length = static_cast<double>(live[order[kept]].length);
        const auto before = mean_length_.load(relaxed);
        mean_length_.store(before == 0 ? length : before + (length - before) / segments_remembered,
                           relaxed);
    }
    change_threshold(
        [cut](double before) { return before + (cut - before) / segments_remembered; });

    figures_.let_go += order.size() - kept;
    figures_.let_go_bytes += bytes - carried;
    order.resize(kept);
    std::sort(order.begin(), order.end());
    return order;
}

void space::open(segment_number segment, std::uint64_t sequence) noexcept {
    auto& it = segments_[segment];
    if (it.is == state::free) {
        left_free();
    } else if (it.is == state::closed) {
        ++figures_.reclaimed;
    }
    live_ -= it.live;
    it.live = 0;
    it.sequence = sequence;
    it.is = state::open;
}

void space::gave_back(segment_number segment) noexcept {
    auto& it = segments_[segment];
    live_ -= it.live;
    it = {};
    ++figures_.reclaimed;
}

void space::close(segment_number segment) noexcept {
    segments_[segment].is = state::closed;
}

void space::wrote(segment_number segment, const occupant& record, bool carried) noexcept {
    auto& it = segments_[segment];
    it.live += record.bytes;
    live_ += record.bytes;
    figures_.written_bytes += record.bytes;
    if (carried) {
        ++figures_.carried;
        figures_.carried_bytes += record.bytes;
    }
}

void space::died(segment_number segment, const occupant& record) noexcept {
    auto& it = segments_[segment];
    const auto bytes = std::min(it.live, record.bytes);
    it.live -= bytes;
    live_ -= bytes;
}

void space::aged_to(std::uint64_t agings) noexcept {
    // Whoever moves the count on halves, once; an older count that comes late moves nothing.
    auto before = agings_.load(relaxed);
    while (before < agings) {
        if (agings_.compare_exchange_weak(before, agings, relaxed)) {
            const auto halvings = std::min<std::uint64_t>(agings - before, 64);
            change_threshold([halvings](double threshold) {
                return std::ldexp(threshold, -static_cast<int>(halvings));
            });
            return;
        }
    }
}

void space::set_exponent(double exponent) noexcept {
    const auto before = exponent_.exchange(exponent, relaxed);
    const auto factor = std::pow(std::max(1.0, mean_length_.load(relaxed)), before - exponent);
    change_threshold([factor](double threshold) { return threshold * factor; });
}

double space::density(unsigned frequency, std::uint64_t length, packed_wait wait) const noexcept {
    const double spared = settings_.by_wait ? frequency * waits_.seconds_of(wait) : frequency;
    return spared / std::pow(static_cast<double>(std::max<std::uint64_t>(1, length)),
                             exponent_.load(relaxed));
}

std::uint64_t space::live_bytes(segment_number segment) const noexcept {
    return segments_[segment].live;
}

space_figures space::figures() const noexcept {
    return figures_;
}

}  // namespace reprise::proxy::cache::disk
