#pragma once
// One small exchange after another with one sibling: its resource asked for, signed, within a time.

#include "proxy/peer/digest_fetch.hpp"

#include <cstdint>
#include <functional>
#include <string_view>

namespace reprise::proxy::peer {

/// Connections of their own in the pool, so that nothing waits for what is asked for another reason:
/// what takes no longer than an object, each kind of news, the fleet's figures, whether it lives.
enum class exchange_lane : std::uint8_t {
    short_question,
    digest_news,
    seen_news,
    members_news,
    figures,
    pulse
};

/// Threads   the loop's of `timer`.
class sibling_exchange {
public:
    sibling_exchange(net::deadlines& timer, const std::function<std::uint64_t()>& random)
        : patience_{timer, [this] { close(); }},
          nonces_{random} {}

    struct question {
        std::string_view path;
        const digest_follower::question& asked;
        exchange_lane lane = exchange_lane::short_question;
        steady_time until;
        std::uint64_t most_bytes = 0;  ///< of the answer's body
    };
    /// What the sibling says, on a connection that is open or, where that turns out to be dead, or leads
    /// where its name does no more, a new one. One at a time. @pre all of it outlives the call
    [[nodiscard]] awaitable<got_response> get(follow_context& by,
                                              const followed& of,
                                              question what);
    /// The asked sibling's name leads there now: what is under way elsewhere is asked anew.
    void leave_unless_at(const whereabouts& where);
    /// Ends the one under way, and those to come.
    void end() {
        ended_ = true;
        close();
    }

private:
    void close();

    net::deadline patience_;
    net::origin_lease lease_;
    nonces nonces_;
    bool is_elsewhere_ = false;  // the one under way
    bool ended_ = false;
};

}  // namespace reprise::proxy::peer
