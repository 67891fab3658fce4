// Siblings as sources: who of them is asked, how long they are waited for, and what came of it.

#include "proxy/cache/recency.hpp"
#include "proxy/fetch/outdated.hpp"
#include "proxy/fetch/sources.hpp"
#include "proxy/http/cache_status.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/peer/icp_cost.hpp"

#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <utility>

namespace reprise::proxy::fetch {

// None of the siblings that may be asked is known to have it; but what they hold is not known as it is now, and will
// be in a moment.
bool sources::is_behind() {
    const auto& o = order_;
    const auto how_far = peer::reach_of(o.asked_by);
    const auto now = steady_now();
    const auto budget = o.now_settings->options.peering.budget;
    if (!w_.peers || !o.may_ask_siblings || !how_far.beyond ||
        !w_.common.peers->is_catching_up(now, budget) || !way_.may_leave_to_peers() ||
        (o.secure && !w_.common.peers->secret().has_file())) {
        return false;
    }
    const auto& book = *w_.peers->book;
    if (o.may_go_home && book.homes && book.homes->of(way_.peer_key(), o.secure, now)) {
        return false;
    }
    const auto among = book.asked_for(o.secure, how_far);
    const auto named = w_.peers->siblings.named(o.url, way_.peer_key()) & among;
    w_.peers->siblings.rest();
    return !among.empty() && named.empty();
}

awaitable<void> sources::catch_up() {
    auto& word = w_.common.peers->catching_up();
    const auto now = steady_now();
    if (!word.enter(at_.ready.handle(), now)) {
        co_return;
    }
    w_.counts.caught_up_first.add();
    const auto budget = std::min(order_.now_settings->options.peering.budget, word.most());
    std::function<bool()> met = [&word] { return !word.is_on(steady_now()); };
    co_await wait_until(std::min(now + budget, word.ends_at()), std::move(met));
    word.leave();
}

// Begins to ask those whose digests have it, if there are any.
void sources::ask_siblings() {
    auto& o = order_;
    const auto among = way_.book()->asked_for(o.secure, peer::reach_of(o.asked_by));
    const auto whom = w_.peers->siblings.find(o.url, way_.peer_key(), steady_now(), among);
    w_.peers->siblings.rest();
    const auto spared = peer::icp_cost_of(way_.book()->instances_of(among), o.url.size());
    w_.counts.peering_misses.add();
    w_.counts.icp_messages.add(spared.messages);
    w_.counts.icp_bytes.add(spared.bytes);
    if (whom.empty()) {
        return;
    }
    here_.came.requested = wall_now();
    const bool asks_site = std::any_of(whom.begin(), whom.end(), [this](auto slot) {
        return way_.book()->siblings[slot] && way_.book()->siblings[slot]->members;
    });
    const auto wire_to = [&](next_hop to) {
        return *wire_of(o, to, false, w_.common.pseudonym, here_.came.requested);
    };
    sibling_question question{.wire = wire_to(next_hop::sibling),
                              .site_wire = asks_site ? wire_to(next_hop::site) : std::string{},
                              .key = o.key,
                              .url = o.url,
                              .charged_to = o.charged_to,
                              .settings = o.now_settings,
                              .rules = &o.freshness(),
                              .asked = o.asked,
                              .held = held_for(w_.common.store, o)};
    // An answer ends the reading of a slower source.
    auto told = [signal = at_.ready.handle(), reader = at_.control](const sibling_query& one) {
        signal.notify();
        if (one.has_answer()) {
            reader->interrupt();
        }
    };
    at_.rivals = std::make_shared<sibling_query>(
        w_, way_.book(), whom, std::move(question), std::move(told));
    at_.rivals->begin();
}

// Until `met`, or so long, or nobody wants it any more. To the millisecond, which a deadline is not.
awaitable<void> sources::wait_until(steady_time until, std::function<bool()> met) {
    asio::steady_timer timer{w_.io};
    if (until != steady_time::max()) {
        timer.expires_at(until);
        auto wake = [signal = at_.ready.handle()](const error_code&) { signal.notify(); };
        timer.async_wait(std::move(wake));
    }
    while (!met() && steady_now() < until && !into_.abandoned()) {
        const bool signalled = co_await at_.ready.wait(steady_time::max());
        if (!signalled) {
            break;
        }
    }
}

// True when one has answered in time.
awaitable<bool> sources::wait_for_siblings(steady_time until) {
    std::function<bool()> over = [this] { return at_.rivals->is_over(); };
    co_await wait_until(until, std::move(over));
    co_return at_.rivals->has_answer();
}

void sources::adopt_sibling() {
    auto won = at_.rivals->take();
    at_.rivals = nullptr;
    at_.patience.clear();
    here_.lease = std::move(won->lease);
    at_.begin_reading();
    here_.came.head = std::move(won->head);
    here_.came.requested = won->asked_at;
    here_.came.sent = won->sent_at;
    here_.came.resident_requested = resident_at(here_.came.requested, here_.came.sent);
    here_.came.turn = won->turn;
    here_.sibling = std::move(won->from);
    here_.sibling_slot = won->slot;
    note_whose_word();
    here_.waits_too = http::was_collapsed(here_.came.head.fields) ? here_.sibling : nullptr;
    here_.waits_too_slot = won->slot;
    here_.sibling_took = won->took;
    here_.sibling_bytes = won->bytes - (here_.lease.buffer().size() - here_.came.head.bytes);
}

// What the sibling in hand was worth is known. That clients left is no failure of the sibling: it
// had what they asked for. One that breaks off has cost the time since it was asked, body and all.
void sources::end_asking(peer::asking_end how) {
    if (!here_.sibling) {
        return;
    }
    const auto now = steady_now();
    if (into_.abandoned()) {
        how = peer::asking_end::true_hit;
    }
    const bool hit = how == peer::asking_end::true_hit;
    if (hit) {
        w_.counts.body_bytes_from_siblings.add(into_.received());
    }
    const auto took = hit ? here_.sibling_took
                          : std::chrono::duration_cast<std::chrono::microseconds>(now -
                                                                                  here_.came.sent);
    auto& table = w_.common.peers->siblings();
    table.benefit_of(here_.sibling_slot)
        .ended(how,
               took,
               table.hit_gives(),
               hit ? into_.received() : here_.sibling_bytes + into_.received(),
               now);
    here_.sibling = nullptr;
}

}  // namespace reprise::proxy::fetch
