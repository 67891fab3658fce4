#include "proxy/peer/news_waits.hpp"

#include "proxy/base/relaxed.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::peer {

news_waits::wait::~wait() {
    if (of_ != nullptr) {
        const std::scoped_lock lock{of_->guard_};
        if (!at_->ended) {
            of_->count_of(*at_).fetch_sub(1, relaxed);
        }
        of_->waiters_.erase(at_);
    }
}

bool news_waits::wait::has_ended() const {
    const std::scoped_lock lock{of_->guard_};
    return at_->ended;
}

void news_waits::end(waiter& one) {
    if (!one.ended) {
        one.ended = true;
        count_of(one).fetch_sub(1, relaxed);
    }
    one.signal.notify();
}

news_waits::wait news_waits::enter(waited_for what,
                                   std::string address,
                                   std::string name,
                                   std::optional<filter::digest_generation> since,
                                   net::wakeup::signal signal) {
    std::list<waiter> made;
    made.push_back({.what = what,
                    .address = std::move(address),
                    .name = std::move(name),
                    .signal = std::move(signal),
                    .since = since});
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
        const bool is_asked_anew = same_address && at->what == what && at->name == its.name;
        if (is_asked_anew || (same_address && of_address >= most_of_address) || all >= most) {
            end(*at);
        }
    }
    if (!its.ended) {
        count_of(its).fetch_add(1, relaxed);
    }
    waiters_.splice(waiters_.end(), made);
    return {*this, std::prev(waiters_.end())};
}

void news_waits::wake_behind(waited_for what, const filter::digest_generation& newest) {
    const std::scoped_lock lock{guard_};
    for (const auto& one : waiters_) {
        if (one.what == what && one.since != newest) {
            one.signal.notify();
        }
    }
}

void news_waits::end_all(bool for_good) {
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
