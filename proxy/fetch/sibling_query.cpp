#include "proxy/fetch/sibling_query.hpp"

#include "proxy/thread/worker.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::fetch {

using peer::asking_end;

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
      timer_{w.io} {}

sibling_query::~sibling_query() = default;

void sibling_query::begin() {
    go_on();
}

std::unique_ptr<sibling_reply> sibling_query::take() noexcept {
    return std::exchange(answered_, nullptr)->take();
}

void sibling_query::abandon(reason why) {
    if (const auto unused = std::exchange(answered_, nullptr)) {
        unused->count(why == reason::outrun ? asking_end::timed_out : asking_end::true_hit, true);
    }
    leave_others(why);
    over_ = true;
}

// Asks the next, where nobody is asked, or all that are have been silent for too long.
void sibling_query::go_on() {
    if (over_) {
        return;
    }
    const bool waits = !asked_.empty();
    if (waits && (is_anybody_heard() || asked_.size() == most_at_once)) {
        return;
    }
    const bool is_patient = waits && steady_now() < asked_.back()->patient_until();
    if (is_patient || ask_next(waits)) {
        wait_for_word();
    } else if (!waits) {
        end();
    }
}

// False: nobody is left, or too many questions went out `beside` others.
bool sibling_query::ask_next(bool beside) {
    while (next_ < whom_.count && !book_->siblings[whom_.slots[next_]]) {
        ++next_;
    }
    if (next_ == whom_.count || w_.timer.stopped() || (beside && !w_.peers->hedges.take())) {
        return false;
    }
    if (beside) {
        w_.counts.siblings_asked_beside.add();
    } else {
        w_.peers->hedges.note_first();
    }
    const auto slot = whom_.slots[next_++];
    asked_.push_back(std::make_shared<asked_sibling>(w_, question_, book_->siblings[slot], slot));
    asked_.back()->begin([self = shared_from_this()](asked_sibling& it) { self->note_ended(it); });
    return true;
}

bool sibling_query::is_anybody_heard() const noexcept {
    return std::any_of(
        asked_.begin(), asked_.end(), [](const auto& one) { return one->is_heard(); });
}

// Of those that are asked, for as long as the last of them may take.
void sibling_query::wait_for_word() {
    if (next_ == whom_.count || asked_.size() == most_at_once) {
        return;  // nobody could be asked then
    }
    timer_.expires_at(asked_.back()->patient_until());
    auto on_time = [self = weak_from_this()](const error_code& cancelled) {
        if (const auto here = self.lock(); here && !cancelled) {
            here->go_on();
        }
    };
    timer_.async_wait(std::move(on_time));
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
    const bool is_origins = it->is_at_work() && how == asking_end::timed_out;
    if (how && !is_origins) {
        it->count(*how, false);
    }
    go_on();
}

// Those that were asked a moment ago were not waited for in vain.
void sibling_query::leave_others(reason why) {
    timer_.cancel();
    const auto now = steady_now();
    for (const auto& one : std::exchange(asked_, {})) {
        one->leave();
        if (why == reason::outrun && !one->is_at_work() && now >= one->patient_until()) {
            one->count(asking_end::timed_out, one->is_heard());
        }
    }
}

void sibling_query::end() {
    over_ = true;
    told_(*this);
}

}  // namespace reprise::proxy::fetch
