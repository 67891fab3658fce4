#include "proxy/fetch/upload_watch.hpp"

#include "proxy/net/io.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::fetch {

upload_watch::upload_watch(net::deadlines& timer,
                           std::shared_ptr<upload> body,
                           const config::timeout_options& timeouts,
                           net::origin_lease& lease,
                           told calls)
    : timer_{timer},
      body_{std::move(body)},
      timeouts_{timeouts},
      lease_{lease},
      told_{std::move(calls)},
      look_again_{timer, [this] { look(); }} {}

// A wait for the origin is seen to end so much late.
std::chrono::milliseconds upload_watch::look_every() const noexcept {
    constexpr std::chrono::milliseconds most{1'000};
    return std::min({most, timeouts_.origin_upload / 4, timeouts_.origin_head / 4});
}

void upload_watch::begin() {
    passed_on_ = unacknowledged_ = 0;
    taken_at_ = steady_now();
    look_again_.expire_after(look_every());
}

void upload_watch::look() {
    const auto now = steady_now();
    const auto unacknowledged = lease_ ? net::not_acknowledged(lease_.socket()) : 0;
    const bool moved = passed_on_ != body_->passed_on() || unacknowledged_ != unacknowledged;
    if (moved || unacknowledged == 0) {
        taken_at_ = now;
    }
    passed_on_ = body_->passed_on();
    unacknowledged_ = unacknowledged;
    if (timer_.stopped() || now - taken_at_ >= timeouts_.origin_upload) {
        stalled_ = true;
        body_->stop();
        told_.stalled();
        return;
    }
    const auto state = body_->state();
    const bool going_out = state == upload::phase::untouched || state == upload::phase::running ||
                           (state == upload::phase::done && unacknowledged > 0);
    if (going_out) {
        look_again_.expire_after(look_every());
    } else {
        told_.over();
    }
}

}  // namespace reprise::proxy::fetch
