#pragma once
// What a sibling saw, told along with its digest (resource.hpp): which of its two coroutines asks
// for it, and which part of an answer is whose.
//
// What a sibling saw has a coroutine of its own, which asks until it follows by news. If the sibling's answers show that it can tell
// both in one, the digest's coroutine asks for both, and the other rests. It is invited once: the sibling ends the older of two
// questions for one thing, so that the other hears 304 and comes to rest. Should that take longer, the digest's coroutine asks for
// the digest alone until the other asks anew.
//
// While the other rests, its follower is the digest's coroutine's. Else nobody but itself, or the side thread for it, touches
// that.
//
// Threads   the loop's. Pure: no socket, no clock.

#include "filter/digest.hpp"
#include "proxy/peer/bounded_get.hpp"

#include <optional>

namespace reprise::proxy::peer {

class seen_along {
public:
    /// From where news goes on; none: the digest is not followed by it, or that can't be known now.
    using generation = std::optional<filter::digest_generation>;

    /// A question for the digest is to be asked, and answers to `digest` and `seen` go on from there. From where it asks for what was
    /// seen as well; none: it does not.
    [[nodiscard]] generation ask(const generation& digest, const generation& seen) noexcept;
    /// The other coroutine asks for itself.
    void asks_itself() noexcept { is_invited_ = false; }

    /// The digest's coroutine asks for both, or will at its next turn: the other is to rest.
    [[nodiscard]] bool asks_for_both() const noexcept { return from_.has_value(); }
    /// The other rests, until asks_for_both() is false.
    void rest() noexcept {
        rests_ = true;
        is_invited_ = false;
    }
    void rest_is_over() noexcept { rests_ = false; }
    [[nodiscard]] bool rests() const noexcept { return rests_; }

    /// An answer to the digest's question. What is of what was seen is taken out of it: 200 with news, or 304. None: it
    /// told nothing of that, or `seen` is no longer where it leads from. A part that can't be is the answer's trouble.
    /// @throws std::bad_alloc
    [[nodiscard]] std::optional<got_response> take(got_response& answer, const generation& seen);
    /// All of the answer was taken. True: the other's rest is over, for it must ask for itself.
    [[nodiscard]] bool ends(const generation& digest, const generation& seen) noexcept;

private:
    [[nodiscard]] generation may_ask(const generation& digest,
                                     const generation& seen) const noexcept;

    bool can_be_ = false;  // the sibling's last answer shows that it can tell both in one
    bool rests_ = false;   // the other coroutine
    bool is_invited_ =
        false;         // that was to come to rest, and still has a question of its own under way
    generation from_;  // of the digest's question that is under way, or was answered last
    generation led_nowhere_;  // the whole is to be asked for from there
};

}  // namespace reprise::proxy::peer
