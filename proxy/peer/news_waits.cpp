#include "proxy/peer/news_waits.hpp"

#include "proxy/base/relaxed.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::peer {
namespace {

bool have_one_in_common(const news_waits::wanted& a, const news_waits::wanted& b) noexcept {
    for (std::size_t i = 0; i < waited_for_count; ++i) {
        if (a[i] && b[i]) {
            return true;
        }
    }
    return false;
}

}  // namespace

news_waits::wait::~wait() {
    if (of_ != nullptr) {
        const std::scoped_lock lock{of_->guard_};
        if (!at_->ended) {
            of_->count(*at_, false);
        }
        of_->waiters_.erase(at_);
    }
}

bool news_waits::wait::has_ended() const {
    const std::scoped_lock lock{of_->guard_};
    return at_->ended;
}

void news_waits::count(const waiter& one, bool comes) noexcept {
    for (std::size_t i = 0; i < waited_for_count; ++i) {
        if (one.what[i]) {
            of_[i].fetch_add(comes ? 1 : std::size_t{0} - 1, relaxed);
        }
    }
}

void news_waits::end(waiter& one) noexcept {
    if (!one.ended) {
        one.ended = true;
        count(one, false);
    }
    one.signal.notify();
}

news_waits::wait news_waits::enter(const wanted& what,
                                   std::string address,
                                   std::string name,
                                   net::wakeup::signal signal) {
    std::list<waiter> made;
    made.push_back({.what = what,
                    .address = std::move(address),
                    .name = std::move(name),
                    .signal = std::move(signal)});
    const std::scoped_lock lock{guard_};
    auto& its = made.front();
    its.ended = over_;
    std::size_t all = 0, of_address = 0;
    // Newest first, so that those beyond the bounds are the oldest.
    for (auto at = waiters_.rbegin(); at != waiters_.rend(); ++at) {
        if (at->ended) {
            continue;
        }
        const bool same_address = at->address == its.address;
        of_address += same_address ? 1 : 0;
        ++all;
        const bool is_asked_anew = same_address && at->name == its.name &&
                                   have_one_in_common(at->what, what);
        if (is_asked_anew || (same_address && of_address >= most_of_address) || all >= most) {
            end(*at);
        }
    }
    if (!its.ended) {
        count(its, true);
    }
    waiters_.splice(waiters_.end(), made);
    return {*this, std::prev(waiters_.end())};
}

void news_waits::wake_behind(const wanted& newest) noexcept {
    const std::scoped_lock lock{guard_};
    for (auto& one : waiters_) {
        bool is_behind = false;
        for (std::size_t i = 0; i < waited_for_count; ++i) {
            is_behind = is_behind || (newest[i] && one.what[i] && one.what[i] != newest[i]);
        }
        if (is_behind) {
            one.signal.notify();
        }
    }
}

void news_waits::end_all(bool for_good) noexcept {
    const std::scoped_lock lock{guard_};
    over_ = over_ || for_good;
    for (auto& one : waiters_) {
        end(one);
    }
}

std::size_t news_waits::waiting() const {
    const std::scoped_lock lock{guard_};
    return waiters_.size();
}

}  // namespace reprise::proxy::peer
