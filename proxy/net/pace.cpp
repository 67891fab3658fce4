#include "proxy/net/pace.hpp"

#include <algorithm>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <utility>

namespace reprise::proxy::net {

namespace {
constexpr unsigned looks = 8;  // in a period
}  // namespace

void keep_little_unsent(int descriptor, int most_bytes) noexcept {
    static_cast<void>(
        ::setsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most_bytes, sizeof most_bytes));
}

pace_guard::pace_guard(deadlines& all, gauge moved, deadline::action too_slow)
    : all_(all),
      moved_(std::move(moved)),
      too_slow_(std::move(too_slow)),
      next_look_(all, [this] { look(); }) {}

void pace_guard::begin(std::uint64_t bytes_per_second, std::chrono::milliseconds timeout) {
    const auto milliseconds = static_cast<std::uint64_t>(
        std::max<std::int64_t>(timeout.count(), 0));
    const auto enough = std::max<std::uint64_t>(1, bytes_per_second * milliseconds / 1000);
    if (enough != enough_ || timeout != timeout_) {
        enough_ = enough;
        timeout_ = timeout;
        looks_left_ = 0;
        look_in_ = steady_time::duration{timeout_} / looks;
    }
    look_at_ = steady_now() + look_in_;
    next_look_.expire_at(look_at_);
}

void pace_guard::end() noexcept {
    look_in_ = std::max(look_at_ - steady_now(), steady_time::duration{0});
    next_look_.clear();
}

void pace_guard::look() {
    if (!all_.stopped()) {
        const auto moved = moved_();
        const bool first = looks_left_ == 0;
        // A step back is none forwards: what TLS keeps to send of its own counts as not taken yet.
        const auto since = static_cast<std::int64_t>(moved - moved_before_);
        if (first || (since > 0 && static_cast<std::uint64_t>(since) >= enough_)) {
            moved_before_ = moved;
            looks_left_ = looks + 1;
        }
        if (--looks_left_ > 0) {
            look_at_ = steady_now() + steady_time::duration{timeout_} / looks;
            next_look_.expire_at(look_at_);
            return;
        }
    }
    too_slow_();
}

}  // namespace reprise::proxy::net
