#include "proxy/net/deadlines.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::net {

deadline::deadline(deadlines& all, action on_expiry)
    : all_(all),
      on_expiry_(std::move(on_expiry)) {}

void deadline::expire_at(steady_time when) {
    when_ = when;
    expired_ = false;
    if (!armed_) {
        all_.note(*this);
    }
    all_.earliest_ = std::min(all_.earliest_, when);
}

void deadline::clear() noexcept {
    // It stays in the list until the next scan: the usual case is to be armed again soon.
    if (armed_) {
        armed_ = false;
        --all_.armed_count_;
    }
}

void deadline::guard_rate(std::uint64_t bytes_per_second, std::chrono::milliseconds timeout) {
    const auto milliseconds = static_cast<std::uint64_t>(
        std::max<std::int64_t>(timeout.count(), 0));
    enough_ = std::max<std::uint64_t>(1, bytes_per_second * milliseconds / 1000);
    push_by_ = timeout;
    moved_ = 0;
    expire_after(timeout);
}

void deadline::progress(std::uint64_t bytes) {
    moved_ += bytes;
    if (moved_ >= enough_ && armed_) {  // one that passed meanwhile is not brought back
        moved_ = 0;
        expire_after(push_by_);
    }
}

deadlines::deadlines(asio::io_context& io, std::chrono::milliseconds tick)
    : io_(io),
      timer_(io),
      tick_(tick) {}

deadlines::~deadlines() {
    stop();
    // An action may have armed another. Those that outlive us (in coroutines that the io_context
    // destroys after us) must find nothing to do.
    while (!armed_.alone()) {
        auto& left = static_cast<deadline&>(*armed_.next);
        left.unlink();
        left.armed_ = false;
    }
}

void deadlines::stop() {
    stopped_ = true;
    ticking_ = false;
    timer_.cancel();
    tick(steady_time::max());
}

void deadlines::note(deadline& armed) {
    armed.armed_ = true;
    ++armed_count_;
    if (armed.alone()) {
        armed.insert_before(armed_);
    }
    if (!ticking_) {
        start_ticking();
    }
}

void deadlines::start_ticking() {
    ticking_ = true;
    timer_.expires_after(stopped_ ? std::chrono::milliseconds{0} : tick_);
    timer_.async_wait([this](const error_code& error) {
        if (error) {
            return;  // cancelled by stop() or destruction: `this` may be gone
        }
        ticking_ = false;
        tick(stopped_ ? steady_time::max() : steady_now());
        if (armed_count_ > 0 && !ticking_) {
            start_ticking();
        }
    });
}

void deadlines::tick(steady_time now) {
    if (now < earliest_) {
        return;
    }
    // Those due move to a list of their own before the first action runs, since an action may arm,
    // clear or destroy any of them, and each of these works on whatever list the deadline is in.
    list_link due;
    auto earliest = steady_time::max();
    for (auto* link = armed_.next; link != &armed_;) {
        auto& each = static_cast<deadline&>(*link);
        link = link->next;
        if (!each.armed_) {
            each.unlink();
        } else if (each.when_ <= now) {
            each.unlink();
            each.insert_before(due);
        } else {
            earliest = std::min(earliest, each.when_);
        }
    }
    earliest_ = earliest;

    while (!due.alone()) {
        auto& each = static_cast<deadline&>(*due.next);
        each.unlink();
        if (!each.armed_) {
            continue;
        }
        if (each.when_ > now) {  // moved on by an action before its turn came
            each.insert_before(armed_);
            continue;
        }
        each.clear();
        each.expired_ = true;
        const auto action = each.on_expiry_;  // the deadline may die in it
        action();
    }
}

}  // namespace reprise::proxy::net
