#pragma once
// Whether an origin takes the request's body.
//
// The body's way out is not the origin's time to answer: that begins when the origin has all of it.
// Until then it has timeouts.origin_upload to take something of what is there for it, which the
// kernel says: what was given to the socket and is not acknowledged. A client that sends nothing is
// the upload's to judge.
//
// Threads   its fetch's.

#include "config/options.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/fetch/upload.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/net/origin_pool.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace reprise::proxy::fetch {

class upload_watch {
public:
    struct told {
        std::function<void()> stalled;  ///< the origin took nothing in time; the upload is stopped
        std::function<void()> over;     ///< nothing more is to be waited for
    };
    /// All outlive it. `body` null: there is none, and begin() is not called.
    upload_watch(net::deadlines& timer,
                 std::shared_ptr<upload> body,
                 const config::timeout_options& timeouts,
                 net::origin_lease& lease,
                 told calls);

    /// The upload begins, to the lease in hand.
    void begin();
    void end() { look_again_.clear(); }

    [[nodiscard]] bool stalled() const noexcept { return stalled_; }
    /// A part of the body is still to come, or to be taken by the origin, and the client does not
    /// wait for the origin's word.
    [[nodiscard]] bool body_is_going_out() const noexcept {
        return look_again_.armed() && !body_->awaits_word();
    }

private:
    void look();
    [[nodiscard]] std::chrono::milliseconds look_every() const noexcept;

    net::deadlines& timer_;
    const std::shared_ptr<upload> body_;
    const config::timeout_options& timeouts_;
    net::origin_lease& lease_;
    const told told_;
    net::deadline look_again_;
    bool stalled_ = false;
    std::uint64_t passed_on_ = 0;       // when last looked at: given to the origin's socket,
    std::uint64_t unacknowledged_ = 0;  // and of that not taken by the other side
    steady_time taken_at_{};            // it took something, or had nothing to take
};

}  // namespace reprise::proxy::fetch
