#pragma once
// When the next step of news may end: at a pace, and sooner for a few that a quieter time has saved up.
//
// What a pace bounds is messages: a step is one to each reader. So where few read, steps may be shorter:
// as many messages as sixteen readers are told in `every`, and these few hear sooner. A step that was not
// needed may be made up for later (a token bucket), and half of what may be saved is for what is urgent: of that a
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
    static constexpr int closest = 4;  ///< no two steps are closer than this part of the pace

    /// @param most_saved  steps, the next one among them; 1: what was not needed is not made up for
    /// @pre most_saved > 0
    news_pace(std::chrono::milliseconds every, unsigned most_saved) noexcept
        : every_{every},
          most_saved_{most_saved},
          saved_{static_cast<double>(most_saved)} {}

    /// The next step may end then, with so many readers now: never more than `every` behind the last one, and one
    /// that tells of something urgent no more than pace_for of these readers, or of those who were told a moment ago
    /// if they are more: they may be on their way to ask again.
    [[nodiscard]] steady_time next(urgency what, std::size_t readers) const noexcept {
        const std::chrono::duration<double> every{every_}, pace{of(readers)};
        const auto kept = what == urgency::urgent ? 0 : most_saved_ / 2;
        const auto wait = std::clamp((1.0 + kept - saved_) * pace, pace / closest, every);
        return last_ + std::chrono::duration_cast<steady_time::duration>(wait);
    }
    /// A step has ended, and so many were told.
    void stepped(steady_time now, std::size_t readers) noexcept {
        const std::chrono::duration<double> since{now - last_}, pace{of(readers)};
        const auto gained = pace.count() > 0 ? since / pace : most_saved_;
        saved_ = std::clamp(saved_ + gained - 1, 0.0, most_saved_ - 1.0);
        // They ask again a round trip later; one that was waited for in vain for `every` has left.
        const bool have_asked = readers != 0 || now - told_at_ >= every_;
        told_to_ = since >= almost_all * pace && have_asked ? readers : std::max(told_to_, readers);
        told_at_ = readers != 0 ? now : told_at_;
        last_ = now;
    }

private:
    static constexpr double almost_all = 0.9;  // of a pace, which may be short by a moment

    [[nodiscard]] std::chrono::milliseconds of(std::size_t readers) const noexcept {
        return pace_for(every_, std::max(told_to_, readers));
    }

    std::chrono::milliseconds every_;
    unsigned most_saved_;
    double saved_;  // right behind last_
    steady_time last_{};
    steady_time told_at_{};    // somebody
    std::size_t told_to_ = 0;  // of the steps of about a pace
};

}  // namespace reprise::proxy::peer
