#include "proxy/serve/fetched_reply.hpp"

#include "proxy/fetch/admit.hpp"
#include "proxy/serve/look_up.hpp"
#include "proxy/serve/orders.hpp"
#include "proxy/serve/relay.hpp"

#include <algorithm>
#include <utility>

// Requests for one key share a fetch where the answer may be shared, which cannot be known before
// its head is there. A follower is judged then, and fetches for itself if need be.
//
// Where no head comes, what one client says in its request decides for nobody who would say something else. A server, or
// what stands in front of it, may close the connection over a field, or never answer: so a fetch that fails, or is silent,
// once it has asked is the matter of its leader and of those who would send the same (fetch::would_send). All others leave it
// for the next leader's, and where that fails too each asks alone: whoever leads one may have had the next one
// prepared. What fails before anything is sent is shared by all. So an origin that is down is not dialled by a crowd, one that
// ends every connection is asked twice, and then once, in its line, for each who is unlike both leaders.
//
// A silent fetch is left only as one to rely on: it may be slow and nothing else, and its answer is taken if it comes before
// that of the next, and where the next fails. If it proves to be for its own client alone, nobody waits for the next ones
// either. Behind the second silence each asks alone, for who leads may have had the next leaders prepared; but all of a thread who
// do take half of the connections that an origin may have, so that its other URLs have the rest. Whoever finds none of those free
// goes on to the next leader's, and follows others no longer in all than a fetch of its own would have taken.

namespace reprise::proxy::serve {

namespace {

/// One more while it lives.
class counted {
public:
    explicit counted(unsigned& many) noexcept : many_{many} { ++many_; }
    ~counted() { --many_; }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;

private:
    unsigned& many_;
};

}  // namespace

awaitable<ended_or_next> fetched_reply::give(const answers::fetched& what) {
    return x_.out.version == 11 && x_.is_handed_on() ? give_handed_on(what) : give_as_asked(what);
}

awaitable<ended_or_next> fetched_reply::give_handed_on(answers::fetched what) {
    // The sibling that handed it on waits for the origin as long as it knows that this instance does.
    const auto said = co_await say_at_work(x_);
    if (said != ended::keep) {
        co_return said;
    }
    auto out = co_await give_as_asked(what);
    co_return std::move(out);
}

awaitable<ended_or_next> fetched_reply::give_as_asked(const answers::fetched& what) {
    const auto& facts = x_.asked.facts;
    order_ = make_order(x_);
    prepare_storing(x_, *order_);
    order_->replaces = order_->replaces || what.replaces;
    if (what.anew) {
        order_->validate_nothing();
        ask_as_the_client_does(x_, *order_);
        x_.sending = nullptr;
        return give_alone();
    }
    const bool of_parts = x_.stored.what == cache::lookup::present && x_.stored.response->parts();
    if (of_parts && x_.verdict.what != cache::ruling::validate) {
        order_->validate_nothing();  // a 304 would leave nothing to serve
    }
    order_->own_range = facts.has_range && (of_parts || !order_->validating());
    order_->own_conditions = facts.has_conditions && !order_->validating() && !wants_whole();
    order_->may_ask_siblings = order_->may_use_peers && facts.is_get && !order_->replaces &&
                               !facts.has_authorization && !facts.has_cookie &&
                               !facts.asked.no_cache;
    return must_be_alone() ? give_alone() : give_together();
}

// A client whose copy still holds gets a 304, and of that nothing can be stored. So where the
// answer would be stored, had it come whole, it is asked for without the client's conditions, and
// those are judged here when its head is there. Not at a first sight: one that is never asked for
// again costs the origin no more than without us.
bool fetched_reply::wants_whole() const {
    const auto& facts = x_.asked.facts;
    if (!order_->may_store || facts.has_origin_conditions || facts.has_range ||
        facts.has_authorization || x_.stored.what == cache::lookup::present ||
        x_.w.common.uncacheable.has(x_.asked.key, x_.started)) {
        return false;
    }
    const fetch::admission_question asked{x_.asked.key, x_.asked.url, order_->admission};
    const auto ruling = fetch::rule_on(x_.w, asked);
    return ruling.admitted && ruling.seen_before > 0;
}

bool fetched_reply::must_be_alone() const {
    const auto& facts = x_.asked.facts;
    return !facts.is_get || facts.has_authorization || facts.asked.no_cache ||
           facts.asked.no_store || order_->own_range || order_->own_conditions ||
           x_.w.common.uncacheable.has(x_.asked.key, x_.started);
}

awaitable<ended_or_next> fetched_reply::give_alone() {
    const auto reader = fetch_alone(x_, order_);
    fetch_relay relay{x_, *order_, fetch_role::leads};
    auto out = co_await give_first(*reader, relay);
    co_return std::move(*out);  // only followers are sent away
}

// What says something first: the fetch in hand, or one of those that were silent. None: the one in hand is not to answer
// this request, or is silent too.
awaitable<std::optional<ended_or_next>> fetched_reply::give_first(cache::fetch_reader& in_hand,
                                                                  fetch_relay& relay) {
    using event = cache::fetch_reader::event;
    std::optional<failure> failed;  // the one in hand
    for (;;) {
        if (!failed && has_next(x_, in_hand)) {
            if (x_.memory.report.what == event::interim) {
                const auto passed = co_await relay.pass_interim();
                if (passed != ended::keep) {
                    co_return passed;
                }
                continue;
            }
            if (!relay.accepts(in_hand)) {
                co_return std::nullopt;
            }
            if (x_.memory.report.what == event::failed && !silent_.empty()) {
                failed = std::move(x_.memory.report.why);
                continue;
            }
            silent_.clear();
            auto out = co_await relay.take(in_hand);
            co_return std::move(out);
        }
        const auto spoke = take_silent_that_spoke();
        if (spoke) {
            in_hand.leave();
            silent_.clear();
            fetch_relay other{x_, *order_, fetch_role::awaits};
            auto out = co_await other.take(*spoke);
            co_return std::move(out);
        }
        if (leaves_ == leaving::unshared && relay.follows()) {
            co_return std::nullopt;
        }
        const auto now = steady_now();
        const auto in_all = failed || relay.follows() || x_.is_handed_on() ? waits_in_all_until()
                                                                           : steady_time::max();
        if (in_all <= now || (failed && silent_.empty())) {
            in_hand.leave();
            silent_.clear();
            auto why = failed
                           ? std::move(*failed)
                           : failure{failure_code::origin_head_timeout, "no response head in time"};
            co_return answer_to_failed_fetch(x_, std::move(why));
        }
        const auto until = relay.follows() && !failed ? waited_for_until(*in_hand.source())
                                                      : steady_time::max();
        if (until <= now) {
            leaves_ = leaving::silent;
            co_return std::nullopt;
        }
        const auto waited = co_await x_.out.wait(std::min(until, in_all));
        if (waited != ended::keep) {
            co_return x_.out.leave();
        }
    }
}

// What answers this request stands in x.memory.report then; null: none does. Those that have failed, or are not for it,
// are waited for no more.
std::unique_ptr<cache::fetch_reader> fetched_reply::take_silent_that_spoke() {
    using event = cache::fetch_reader::event;
    const auto& came = x_.memory.report;
    for (auto one = silent_.begin(); one != silent_.end();) {
        while (has_next(x_, **one) && came.what == event::interim) {
        }
        if (came.what == event::nothing) {
            ++one;
            continue;
        }
        fetch_relay relay{x_, *order_, fetch_role::awaits};
        const bool answers = came.what != event::failed && relay.accepts(**one);
        if (came.what == event::head && !answers && !cache::is_passing(came.head->status)) {
            leaves_ = leaving::unshared;
        }
        auto spoke = std::move(*one);
        one = silent_.erase(one);
        if (answers) {
            return spoke;
        }
    }
    return nullptr;
}

// By a follower, for its head. As long as nothing is sent it waits for a connection, which no other request has sooner.
steady_time fetched_reply::waited_for_until(const cache::fetch& source) const {
    const auto patience = patience_with_another(x_);
    const auto sent = source.asked();
    if (!sent) {
        return steady_now() + patience;
    }
    return fetch::would_send(*order_, *sent) ? steady_time::max() : sent->at + patience;
}

// Whoever has left a silent fetch follows others as long as for one that was begun when it came. Its own has a time of its
// own, but where another node has handed its request on, which waits no longer for this one (fetch/upstream.cpp).
steady_time fetched_reply::waits_in_all_until() const {
    if (silent_.empty()) {
        return steady_time::max();
    }
    const auto& times = x_.settings->options.timeouts;
    return x_.started + times.origin_connect + times.origin_head;
}

// A follower of an error that may pass waits once more, for the next leader: a recovering origin is
// not asked by all at once. So does one whom another's fields have left without a head, and one for which the answer
// was too old: what is asked with its own demands may be younger, and all that make them share that. Whoever comes then
// joins the second fetch, and siblings too, though the first goes on and may be stored: it is the more recent.
awaitable<ended_or_next> fetched_reply::give_together() {
    auto& fetches = x_.w.common.fetches;
    const auto& asked = x_.asked;
    unsigned silences = 0;
    for (bool is_second = false;;) {
        auto place = fetches.join_or_lead(
            asked.key, asked.url, x_.out.wakeup().handle(), x_.settings->fetches);
        if (place.leads && came_meanwhile(x_, *place.reader)) {
            place.reader.reset();
            auto now = look_up_in_memory(x_, resident_now());
            if (auto* stored = std::get_if<answers::stored>(&now)) {
                stored->collapsed = true;
                co_return now;
            }
            break;
        }
        if (place.leads) {
            lead(place.reader->source(), place.pending_sights);
        } else {
            x_.w.counts.collapsed_joined.add();
            if (place.head_known) {
                note_late_sight(place.reader->source());
            }
        }
        const auto role = place.leads        ? fetch_role::leads
                          : place.head_known ? fetch_role::joins_late
                                             : fetch_role::awaits;
        fetch_relay relay{x_, *order_, role};
        auto out = co_await give_first(*place.reader, relay);
        if (out) {
            co_return std::move(*out);
        }
        x_.w.counts.collapsed_released.add();
        const auto from = place.reader->source();
        const auto head = from->head();
        if (leaves_ == leaving::silent) {
            leaves_ = leaving::no;
            silent_.push_back(std::move(place.reader));
            fetches.remove(asked.key, from);
            auto& lone = x_.w.lone_fetches;
            if (++silences > 1 && lone < x_.settings->options.origins.connections / 2) {
                const counted one{lone};
                auto alone = co_await give_alone();
                co_return std::move(alone);
            }
            continue;
        }
        if (leaves_ == leaving::unshared) {
            order_->validate_nothing();
            ask_as_the_client_does(x_, *order_);
            break;
        }
        if (relay.was_anothers_alone()) {
            order_->may_store = false;
        }
        const bool is_others = relay.was_others_failure();
        const bool may_pass = is_others || relay.was_too_old() ||
                              (head && cache::is_passing(head->status));
        if (const auto& held = relay.held_before()) {
            x_.stored = {.what = cache::lookup::present, .response = held};
            order_->validate_nothing();
            prepare_storing(x_, *order_);
            order_->may_ask_siblings = false;
        } else if (!may_pass || (is_second && !is_others && !relay.was_too_old())) {
            order_->validate_nothing();
            ask_as_the_client_does(x_, *order_);
        }
        if (is_second || !may_pass) {
            break;
        }
        is_second = true;
        fetches.remove(asked.key, from);
    }
    co_return co_await give_alone();
}

void fetched_reply::lead(const std::shared_ptr<cache::fetch>& into, std::size_t pending_sights) {
    leadership leads{x_, into};
    order_->into = into;
    order_->listed = !has_used_its_share();
    if (!order_->listed) {
        x_.w.common.fetches.remove(x_.asked.key, into);
    }
    order_->pending_sights = pending_sights;
    fetch::start_producer(x_.w, order_);
    leads.is_over();
}

// This client's share is used up: it waits for its own requests to end, and nobody else waits with
// it.
bool fetched_reply::has_used_its_share() const {
    const auto& o = *order_;
    const auto& origins = x_.w.origins;
    if (!o.charged_to || !origins.any_used_up()) {
        return false;
    }
    const auto is_used_up = [&](const net::origin_address& to) {
        return origins.is_used_up(to, o.charged_to);
    };
    if (is_used_up(o.origin())) {
        return true;
    }
    if (!o.may_use_parents()) {
        return false;
    }
    const auto& parents = x_.w.peers->book->parents;
    return std::any_of(parents.begin(), parents.end(), [&](const peer::known_peer& one) {
        if (o.secure) {
            auto to = o.origin();
            to.through = one.way;
            return is_used_up(to);
        }
        return is_used_up({one.host, one.port, true, one.https});
    });
}

// A follower that came after the head was known is a sight of its own, and may be the one that
// admits.
void fetched_reply::note_late_sight(const std::shared_ptr<cache::fetch>& source) const {
    auto& joined = *source;
    const auto head = joined.head();
    if (!head || !head->may_be_kept || !x_.asked.facts.is_get) {
        return;
    }
    const fetch::admission_question asked{
        x_.asked.key, x_.asked.url, order_->admission, order_->may_use_peers};
    const auto ruling = fetch::rule_on(x_.w, asked, joined.add_sights(1));
    const bool fits = !head->length || *head->length <= x_.settings->options.memory.largest();
    if (ruling.admitted && fits && (joined.kept_whole() || joined.keep_whole()) && joined.admit()) {
        note_admission(x_.w.counts, ruling.policy, ruling.rule, true);
        x_.w.common.fetches.promise_stored(
            x_.asked.key, source, cache::useful_until(head->freshness, head->directives));
    }
}

}  // namespace reprise::proxy::serve
