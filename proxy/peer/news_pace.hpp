#pragma once
// When the next step of news may end: at a pace, and sooner for a few that a quieter time has saved up.
//
// What a pace bounds is messages: a step is one to each reader. So where few read, steps may be shorter:
// as many messages as sixteen readers are told in `every`, and these few hear sooner. A step that was not
// needed may be made up for later (a token bucket), and half of what is saved is for what is urgent: of that a
// busy node has little, and tells it at once.
//
// Threads   its owner's.

#include "proxy/base/clock.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace reprise::proxy::peer {

/// So many readers are told in `every` in any case.
inline constexpr std::size_t readers_at_full_pace = 16;

/// From one step's end to the next's where something always changes: `every` by as many sixteenths as there are
/// readers, all of it for more; and for none, to whom nothing is late.
[[nodiscard]] constexpr std::chrono::milliseconds pace_for(std::chrono::milliseconds every,
                                                           std::size_t readers) noexcept {
    if (readers == 0 || readers >= readers_at_full_pace) {
        return every;
    }
    constexpr std::chrono::milliseconds least{1};
    const auto share = every * static_cast<std::int64_t>(readers) /
                       static_cast<std::int64_t>(readers_at_full_pace);
    return std::max(share, std::min(least, every));
}

enum class urgency : std::uint8_t {
    ordinary,  ///< what a node has or saw, and others may have as well
    urgent,    ///< what it has begun to fetch: until others know, they fetch it too
};

class news_pace {
public:
    static constexpr double most_saved = 8;  ///< steps
    static constexpr int closest = 4;        ///< no two are closer than this part of the pace

    explicit news_pace(std::chrono::milliseconds every) noexcept : every_{every} {}

    /// The next step may end then, with so many readers now: never more than `every` behind the last one, and one
    /// that tells of something urgent no more than pace_for(every, readers). Those who were told of the last one
    /// count, since they may be on their way to ask again.
    [[nodiscard]] steady_time next(urgency what, std::size_t readers) const noexcept {
        const std::chrono::duration<double> every{every_}, pace{of(readers)};
        const double needed = what == urgency::urgent ? 1 : 1 + most_saved / 2;
        const auto wait = std::clamp((needed - saved_) * pace, pace / closest, every);
        return last_ + std::chrono::duration_cast<steady_time::duration>(wait);
    }
    /// A step has ended, and so many were told.
    void stepped(steady_time now, std::size_t readers) noexcept {
        const std::chrono::duration<double> since{now - last_}, pace{of(readers)};
        const auto gained = pace.count() > 0 ? since / pace : most_saved;
        saved_ = std::clamp(saved_ + gained - 1, 0.0, most_saved - 1);
        last_ = now;
        told_to_ = readers;
    }

private:
    [[nodiscard]] std::chrono::milliseconds of(std::size_t readers) const noexcept {
        return pace_for(every_, std::max(told_to_, readers));
    }

    std::chrono::milliseconds every_;
    steady_time last_{};
    std::size_t told_to_ = 0;
    double saved_ = most_saved;  // right behind last_
};

}  // namespace reprise::proxy::peer
