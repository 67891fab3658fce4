#pragma once
// Whether a sibling lives, as one thread knows it from asking. Many that wait for one sibling come to
// doubt it at the same moment: one of them asks, at most once in a while, and the others go by that.
//
// Threads   one worker's.

#include "proxy/base/clock.hpp"

#include <cstdint>
#include <string_view>

namespace reprise::proxy::peer {

/// In a question to a sibling, and in its Connection: whoever asks knows that 102 is no answer, and
/// waits behind it. Others (Traffic Server, nodes of a generation before) may take it for one.
inline constexpr std::string_view waits_field = "Reprise-Waits";

class pulse {
public:
    enum class word : std::uint8_t {
        lives,   ///< it has answered lately; or it is being asked, and that ends soon
        silent,  ///< it has lately not answered
        ask,     ///< nobody knows
    };
    /// What is known of it. `period` is after how long a silence its waiters ask: an answer counts for
    /// one, and none for two, so that each of them comes to hear of it.
    [[nodiscard]] word look(steady_time now, steady_time::duration period) const noexcept {
        if (asked_) {
            return word::lives;
        }
        if (!known_ || now - at_ >= (lives_ ? period : 2 * period)) {
            return word::ask;
        }
        return lives_ ? word::lives : word::silent;
    }

    /// While this lives it is being asked.
    class question {
    public:
        explicit question(pulse& of) noexcept : of_{of} { of_.asked_ = true; }
        question(const question&) = delete;
        question& operator=(const question&) = delete;
        ~question() { of_.asked_ = false; }
        void ended(bool lives, steady_time now) noexcept {
            of_.known_ = true;
            of_.lives_ = lives;
            of_.at_ = now;
        }

    private:
        pulse& of_;
    };

private:
    steady_time at_{};
    bool known_ = false;
    bool lives_ = false;
    bool asked_ = false;
};

}  // namespace reprise::proxy::peer
