#include "proxy/fetch/sibling_query.hpp"

#include "proxy/thread/worker.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace reprise::proxy::fetch {

using peer::asking_end;

namespace {

/// One that was refused may go out then. Where many are, each waits by a timer.
constexpr std::chrono::milliseconds until_next_hedge{25};

}  // namespace

sibling_query::sibling_query(thread::worker& w,
                             std::shared_ptr<const peer::peer_book> book,
                             const peer::candidates& whom,
                             sibling_question question,
                             std::function<void(const sibling_query&)> told)
    : w_{w},
      book_{std::move(book)},
      whom_{whom},
      question_{std::make_shared<const sibling_question>(std::move(question))},
      told_{std::move(told)},
      timer_{w.io} {
    asked_.reserve(most_at_once);
}

sibling_query::~sibling_query() = default;

void sibling_query::begin() {
    try_to_go_on();
}

std::unique_ptr<sibling_reply> sibling_query::take() noexcept {
    return std::exchange(answered_, nullptr)->take();
}

void sibling_query::abandon(reason why) {
    if (const auto unused = std::exchange(answered_, nullptr)) {
        unused->count(why == reason::outrun ? asking_end::timed_out : asking_end::true_hit,
                      peer::said_so_far::an_answer);
    }
    leave_others(why);
    over_ = true;
}

// Asks the next, where nobody is asked, or all that are have been silent for too long.
void sibling_query::go_on() {
    while (next_ < whom_.count && !book_->siblings[whom_.slots[next_]]) {
        ++next_;
    }
    const bool waits = !asked_.empty();
    if (over_ || next_ == whom_.count || w_.timer.stopped()) {
        if (!over_ && !waits) {
            end();
        }
        return;
    }
    if (asked_.size() == most_at_once || is_anybody_at_work()) {
        return;  // until one of them ends
    }
    const auto now = steady_now();
    auto until = patient_until();
    if (now >= until && waits && !w_.peers->hedges.take()) {
        until = now + until_next_hedge;
    }
    if (now < until) {
        go_on_at(until);
    } else {
        ask_next();
        go_on_at(patient_until());
    }
}

void sibling_query::ask_next() {
    if (asked_.empty()) {
        w_.peers->hedges.note_first();
    } else {
        w_.counts.siblings_asked_beside.add();
    }
    const auto slot = whom_.slots[next_++];
    auto one = std::make_shared<asked_sibling>(w_, question_, book_->siblings[slot], slot);
    one->begin([self = weak_from_this()](asked_sibling& it) {
        if (const auto here = self.lock()) {
            here->note_ended(it);
        }
    });
    asked_.push_back(std::move(one));  // there is room
}

bool sibling_query::is_anybody_at_work() const noexcept {
    return std::any_of(
        asked_.begin(), asked_.end(), [](const auto& one) { return one->is_at_work(); });
}

// With all of them.
steady_time sibling_query::patient_until() const noexcept {
    steady_time out{};
    for (const auto& one : asked_) {
        out = std::max(out, one->patient_until());
    }
    return out;
}

void sibling_query::go_on_at(steady_time then) {
    timer_.expires_at(then);
    auto on_time = [self = weak_from_this()](const error_code& cancelled) {
        if (const auto here = self.lock(); here && !cancelled) {
            here->try_to_go_on();
        }
    };
    timer_.async_wait(std::move(on_time));
}

// Without memory it is over when those that are asked have ended.
void sibling_query::try_to_go_on() {
    try {
        go_on();
    } catch (const std::bad_alloc&) {
        next_ = whom_.count;
        if (asked_.empty()) {
            end();
        }
    }
}

void sibling_query::note_ended(asked_sibling& one) {
    const auto at = std::find_if(
        asked_.begin(), asked_.end(), [&one](const auto& it) { return it.get() == &one; });
    if (at == asked_.end()) {
        return;  // it was left
    }
    const auto it = std::move(*at);
    asked_.erase(at);
    const auto how = it->end();
    if (how == asking_end::true_hit) {
        answered_ = it;
        leave_others(reason::outrun);
        end();
        return;
    }
    if (how == asking_end::timed_out && it->is_at_work()) {
        it->count_late_at_work();
    } else if (how) {
        it->count(*how);
    }
    try_to_go_on();
}

// Those that were asked a moment ago were not waited for in vain. And only half of the budget is silence: less may be a
// disk that is slow once.
void sibling_query::leave_others(reason why) {
    timer_.cancel();
    const auto now = steady_now();
    const auto silence = question_->settings->options.peering.budget / 2;
    for (const auto& one : std::exchange(asked_, {})) {
        const bool is_counted = why == reason::outrun && !one->is_in_line() &&
                                now >= one->patient_until();
        one->leave();
        if (is_counted && one->is_at_work()) {
            one->count_late_at_work();
        } else if (is_counted) {
            one->count(asking_end::timed_out,
                       now - one->begun() < silence ? peer::said_so_far::unclear
                                                    : peer::said_so_far::nothing);
        }
    }
}

void sibling_query::end() {
    over_ = true;
    told_(*this);
}

}  // namespace reprise::proxy::fetch
