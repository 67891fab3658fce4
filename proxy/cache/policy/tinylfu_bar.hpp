#pragma once
// How often a newcomer must have been asked for before "tinylfu" admits it: more often than what
// leaves for it nowadays had been. The proxy's gate (admission/admission_gate.hpp) has one of these,
// and each ghost of what_if has its own.
//
// The bar is held against the estimates of a frequency_sketch. It is
//
//     lowered     to what leaves, at once, where that was asked for less often; and by one for every
//                 refusals_a_step newcomers that are refused, but then not below 1
//     raised      by one where what leaves was asked for more often, but not above `highest`
//     halved      as often as the sketch halves its counters
//
// Refusals must lower it, because nothing leaves while nothing is admitted. If only what leaves moved
// it, one popular object that left would shut the store for good: no estimate is above
// frequency_sketch::most, and what is in the store would stay long after anybody asked for it.
// What leaves raises the bar by one only, and refusals_a_step refusals lower it by one: so it comes to
// rest, at the latest, where one newcomer in refusals_a_step + 1 is admitted. Refusals alone never
// admit what was asked for once.
//
// With fewer refusals for a step the store forgets sooner what nobody asks for any more, and admits
// more of what is seldom asked for beside what is popular. Hits in percent of requests, of an LRU of
// 1 % of each trace's unique bytes (under gdsf 16 is better than the last column for all seven):
//
//     refusals a step     8     16     32     64     second-hit     if what left last were the bar
//     bu1998           23.6   23.8   23.6   23.3           24.8                              21.3
//     blog2016         44.9   47.0   48.3   49.0           32.9                              45.2
//     recs             37.8   38.0   38.1   38.1           34.7                              35.2
//     shopdec          34.8   33.8   33.1   32.7           39.2                              28.1
//     cdnweb           66.4   67.1   67.9   68.9           60.9                              70.6
//     cdnsocial        33.4   28.6   24.8   22.3           38.7                               0.5
//     synth1m          47.7   47.7   47.8   47.8           45.7                              23.3
//
//     reprise-replay TRACE.csv.zst --scaled --size 1% --policy lru --admission second-hit,tinylfu
//
// Header only: arithmetic.

#include "proxy/cache/policy/frequency_sketch.hpp"

#include <algorithm>
#include <cstdint>

namespace reprise::proxy::cache {

/// A value of eight bytes, so that threads can share one in a std::atomic. `asked` is always what the
/// sketch estimates for a key, and `agings` how often the sketch has aged: a thread that comes late
/// with an older number changes nothing by it.
class tinylfu_bar {
public:
    /// A key with the largest estimate there is passes it.
    static constexpr unsigned highest = frequency_sketch::most - 1;
    static constexpr unsigned refusals_a_step = 16;

    /// While nothing has left, everything that was asked for is admitted.
    [[nodiscard]] bool admits(unsigned asked, std::uint64_t agings) const noexcept {
        auto now = *this;
        now.age_to(agings);
        return asked > now.height_;
    }

    /// An object that had been admitted has left for room.
    void note_left(unsigned asked, std::uint64_t agings) noexcept {
        age_to(agings);
        height_ = static_cast<std::uint16_t>(std::min({asked, height_ + 1u, highest}));
    }

    /// A newcomer was not admitted.
    void note_refused(std::uint64_t agings) noexcept {
        age_to(agings);
        if (++refusals_ >= refusals_a_step) {
            refusals_ = 0;
            height_ = static_cast<std::uint16_t>(height_ - (height_ > 1 ? 1 : 0));
        }
    }

    bool operator==(const tinylfu_bar&) const = default;

private:
    void age_to(std::uint64_t agings) noexcept {
        const auto since = static_cast<std::int32_t>(static_cast<std::uint32_t>(agings) - agings_);
        if (since > 0) {
            height_ = static_cast<std::uint16_t>(height_ >> std::min(since, 15));
            agings_ = static_cast<std::uint32_t>(agings);
        }
    }

    std::uint32_t agings_ = 0;    // that height_ was halved for, modulo 2^32
    std::uint16_t height_ = 0;    // newcomers must have been asked for more often
    std::uint16_t refusals_ = 0;  // since they lowered it last
};

}  // namespace reprise::proxy::cache
