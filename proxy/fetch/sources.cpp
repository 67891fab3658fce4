#include "proxy/fetch/sources.hpp"

#include "proxy/base/log.hpp"
#include "proxy/cache/recency.hpp"
#include "proxy/fetch/home_answer.hpp"
#include "proxy/fetch/outdated.hpp"
#include "proxy/http/cache_status.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/net/coroutine.hpp"

#include <boost/asio/cancellation_signal.hpp>

#include <algorithm>
#include <string>
#include <utility>

// One after another, and siblings beside the others once their budget is over.

namespace reprise::proxy::fetch {

namespace {

/// What a parent may take to say that it lives. peers[].timeout is for siblings.
constexpr std::chrono::seconds parent_says_within{5};

/// A connection that is being made, or waited for in its origin's line.
struct dialling {
    std::optional<attempt<net::origin_lease>> result;
    bool unwanted = false;
    cache::unattended_permit permit{};  // while nobody waits for it
    asio::cancellation_signal give_up;
};

failure everybody_left() {
    return {failure_code::origin_closed, "every client has left"};
}

awaitable<attempt<net::origin_lease>> dial_for(thread::worker& w,
                                               std::string host,
                                               net::origin_address to,
                                               bool fresh_only,
                                               steady_time until,
                                               net::share_holder holder) {
    to.host = host;
    co_return co_await w.origins.acquire(to, fresh_only, until, holder);
}

}  // namespace

// The parent in hand has let a request wait: perhaps for an origin that hangs, which is no fault of the parent's. One
// that has answered nobody since is asked itself, and the connection in hand is used no more.
awaitable<bool> sources::waits_for_origin(failure_code why) {
    if (why != failure_code::origin_head_timeout || home() != nullptr || parent() == nullptr ||
        way_.leads_through()) {
        co_return false;
    }
    if (way_.has_answered_since(here_.came.sent)) {
        co_return true;
    }
    using silence = peer::parent_choice::silence;
    const auto told = way_.judge_silence(here_.came.sent);
    if (told != silence::unclear) {
        co_return told == silence::asked;
    }
    at_.let_go();
    const auto in_so_long = std::min<steady_time::duration>(
        parent_says_within, order_.now_settings->options.timeouts.origin_connect);
    std::shared_ptr<const peer::known_peer> one{way_.book(), parent()};
    const bool lives = co_await answers(w_, std::move(one), in_so_long);
    co_return lives;
}

// What a home says of itself does not stand between a client and an origin that can be reached from here. What of its
// origin is as if this node had asked, so that the same follows: what is stored may stand in for
// that, and for some of it not. None: it is the answer.
std::optional<head_end> sources::judge_home() {
    using kind = home_answer::kind;
    auto said = judge_home_answer(here_.came.head, way_.name_of_home());
    std::optional<head_end> not_it;
    switch (said.what) {
    case kind::passed_on:
        if (home_is_outdated()) {
            way_.note_answered();
            way_.leave_home();
            not_it.emplace(head_end{.what = head_end::kind::retry});
        }
        break;
    case kind::unfit:
        way_.blame(here_.came.sent, said.why);
        way_.pass_home_by();
        not_it.emplace(head_end{.what = head_end::kind::retry});
        break;
    case kind::declined:
        way_.note_answered();
        way_.pass_home_by();
        not_it.emplace(head_end{.what = head_end::kind::retry});
        break;
    case kind::origin_failed:
        way_.note_answered();
        not_it.emplace(head_end{head_end::kind::failed, std::move(said.why)});
        break;
    }
    if (not_it) {
        at_.let_go();
    }
    return not_it;
}

// Of the answer in hand. A home is believed as the sibling that it is.
void sources::note_whose_word() {
    const auto* const sibling = here_.sibling ? here_.sibling.get() : home();
    auto& came = here_.came;
    came.by = word_of::origin;
    came.at_most.reset();
    came.fetched_now = home() != nullptr && home_has_fetched();
    if (sibling != nullptr) {
        came.by = sibling->proxy_only ? word_of::unkept_sibling : word_of::sibling;
        came.at_most = sibling->max_age;
    }
}

// For this request alone: its age is the time that this took.
bool sources::home_has_fetched() const {
    constexpr std::chrono::seconds rounding{1};
    const auto& fields = here_.came.head.fields;
    const auto age = http::stated_age(fields).value_or(http::seconds{0});
    return http::was_forwarded(fields, here_.came.head.status) &&
           age <= steady_now() - here_.came.sent + rounding;
}

// What it has from its store, from another cache, or from a fetch that was under way, may be older than what
// a client did through this node, of which it knows nothing, and than what this node holds.
bool sources::home_is_outdated() const {
    if (home_has_fetched()) {
        return false;
    }
    const auto& fields = here_.came.head.fields;
    const auto held = held_for(w_.common.store, order_);
    if (held && cache::is_dated_before(fields, wall_now(), *held)) {
        return true;
    }
    const auto age = http::stated_age(fields).value_or(http::seconds{0});
    return may_be_outdated(w_.common.store,
                           order_.key,
                           order_.url,
                           here_.lease.buffer().data().substr(0, here_.came.head.bytes),
                           here_.came.sent,
                           age);
}

// False: there is none to whoever is asked next.
bool sources::take_idle(bool fresh_only) {
    if (!fresh_only) {
        here_.lease = w_.origins.try_acquire(way_.address(), order_.charged_to);
    }
    return !fresh_only && here_.lease;
}

// Neither a sibling's answer nor the clients' leaving waits for a connection. Their leaving ends the dial, or the place in
// line: each takes a socket or a share of the client's, and one that leaves at once, and comes again for another port,
// would else leave a new one behind each time for as long as an origin may be silent. A peer's dial goes on where there is a
// permit: if clients are less patient than a dial nobody else would find out that it is gone.
awaitable<attempt<net::origin_lease>> sources::acquire(bool fresh_only, steady_time until) {
    auto& o = order_;
    const auto begun = steady_now();
    const auto to = way_.address();
    const auto made = std::make_shared<dialling>();
    auto on_end = [made, signal = at_.ready.handle()](std::exception_ptr broken,
                                                      attempt<net::origin_lease> result) {
        if (broken) {
            made->result.emplace(failure{failure_code::out_of_memory, ""});
        } else if (made->unwanted && result) {
            result->give_back();
        } else {
            made->result.emplace(std::move(result));
        }
        signal.notify();
    };
    auto work = dial_for(w_, std::string{to.host}, to, fresh_only, until, o.charged_to);
    net::begin_coroutine(w_.io, std::move(work), std::move(on_end), made->give_up.slot());
    const auto go_on_unattended = [&] {
        if (!made->permit) {
            made->permit = w_.common.unattended.enter(o.charged_to,
                                                      o.now_settings->fetches.unattended);
        }
        return static_cast<bool>(made->permit);
    };
    const auto is_given_up = [&] {
        return into_.abandoned() && !(way_.asks_a_peer() && go_on_unattended());
    };
    bool program_ends = false;
    while (!made->result && !at_.is_overtaken() && !is_given_up() && !program_ends) {
        const bool signalled = co_await at_.ready.wait(steady_time::max());
        program_ends = !signalled;
    }
    if (!made->result) {
        made->unwanted = true;
        // Where a sibling has answered the next miss is to find a connection that is made already; but its client asks
        // for the next meanwhile, and so it needs a permit.
        if (into_.abandoned() || program_ends || !go_on_unattended()) {
            made->give_up.emit(asio::cancellation_type::terminal);
        }
        failure gave_up{program_ends ? failure_code::draining : failure_code::origin_closed,
                        "not waited for"};
        co_return gave_up;
    }
    auto result = std::move(*made->result);
    if (!result && into_.abandoned() && way_.asks_a_peer() && !at_.is_overtaken()) {
        way_.blame(begun, result.error());  // for those to come
    }
    co_return result;
}

// To the parent in hand, the next that can be reached, or the origin itself.
awaitable<trouble> sources::connect(bool fresh_only) {
    for (;;) {
        const auto begun = steady_now();
        const auto until = here_.home_by.value_or(
            begun + order_.now_settings->options.timeouts.origin_connect);
        if (take_idle(fresh_only)) {
            co_return std::nullopt;
        }
        auto leased = co_await acquire(fresh_only, until);
        if (leased && !way_.leads_back(*leased)) {
            here_.lease = std::move(*leased);
            co_return std::nullopt;
        }
        failure why = leased ? failure{failure_code::loop_detected,
                                       leased->endpoint() + " is a listener of this instance"}
                             : std::move(leased.error());
        if (leased) {
            leased->close();
        }
        if (into_.abandoned()) {
            co_return everybody_left();
        }
        if (at_.is_overtaken() || !way_.try_next(begun, why)) {
            co_return way_.told_of_parent(std::move(why));
        }
        way_.settle();
    }
}

awaitable<trouble> sources::connect_and_send(bool fresh_only) {
    if (into_.abandoned()) {
        co_return everybody_left();
    }
    way_.settle();
    if (auto nowhere = way_.lacks_any()) {
        co_return nowhere;
    }
    if (!take_idle(fresh_only)) {
        auto wrong = co_await connect(fresh_only);
        if (wrong) {
            co_return wrong;
        }
    }
    if (here_.lease.reused()) {
        w_.counts.origin_reused.add();
    }
    if (into_.abandoned() || at_.is_overtaken()) {
        here_.lease.give_back();
        co_return everybody_left();
    }
    const auto to = way_.hop();
    if (to == next_hop::origin && (order_.inside || order_.handed_on) &&
        here_.lease.socket().was_asked_for_certificate()) {
        // Who the client is may be what its answer hangs on.
        here_.lease.close();
        co_return failure{failure_code::tls_client_certificate, ""};
    }
    if (!at_.rivals && to == next_hop::origin) {
        expected_.begin();
    }
    at_.begin_reading();
    here_.came.requested = wall_now();
    here_.came.resident_requested = resident_now();
    here_.came.turn = cache::next_turn();
    here_.came.sent = steady_now();
    into_.producer_asks(as_sent(order_, here_.came.sent));
    const auto wire = wire_of(
        order_, to, validate_, w_.common.pseudonym, here_.came.requested, way_.named());
    const auto left = at_.send_now(*wire);
    if (!left.empty()) {
        co_await at_.send(left);
    }
    co_return std::nullopt;
}

// A final response's head, from whoever has it; the lease is the connection that it came on.
awaitable<trouble> sources::find(bool validate) {
    validate_ = validate;
    here_.sibling = nullptr;
    if (is_behind()) {
        co_await catch_up();
    }
    if (into_.abandoned()) {
        co_return everybody_left();
    }
    if (way_.choose()) {
        ask_siblings();
    }
    const bool goes_on = peer::reach_of(order_.asked_by).beyond;
    if (at_.rivals) {
        // All that a site waits for is what its members say: no longer than an origin.
        const auto& options = order_.now_settings->options;
        const auto until = steady_now() + (goes_on ? steady_time::duration{options.peering.budget}
                                                   : options.timeouts.origin_head);
        const bool answered = co_await wait_for_siblings(until);
        if (answered) {
            adopt_sibling();
            co_return std::nullopt;
        }
        if (at_.rivals->is_over()) {
            at_.rivals = nullptr;
        }
    }
    if (!goes_on) {
        stop_asking();
        co_return failure{failure_code::only_if_cached_miss, ""};
    }
    auto end = co_await ask_origins();
    if (end.what == head_end::kind::got) {
        way_.note_answered();
    }
    way_.end_trial();
    note_certificate_request(end);
    if (end.what == head_end::kind::got) {
        if (at_.rivals) {
            std::exchange(at_.rivals, nullptr)->abandon(sibling_query::reason::outrun);
        }
        note_whose_word();
        co_return std::nullopt;
    }
    if (at_.rivals) {
        // The origin has failed: what siblings say is all there is.
        at_.let_go();
        at_.patience.clear();
        const bool answered = co_await wait_for_siblings(steady_time::max());
        if (answered) {
            adopt_sibling();
            co_return std::nullopt;
        }
        std::exchange(at_.rivals, nullptr)->abandon(sibling_query::reason::unwanted);
    }
    co_return std::move(end.why);
}

awaitable<trouble> sources::find_another() {
    end_asking(peer::asking_end::failed);
    if (home() != nullptr) {
        way_.blame(here_.came.sent, failure{failure_code::response_cut_short, ""});
        way_.pass_home_by();
    }
    order_.may_ask_siblings = order_.may_go_home = false;
    at_.let_go();
    at_.patience.clear();
    return find(validate_);
}

void sources::stop_asking() {
    if (at_.rivals) {
        std::exchange(at_.rivals, nullptr)->abandon(sibling_query::reason::unwanted);
    }
    end_asking(peer::asking_end::failed);
}

// A host that would know its clients is not asked in their place: they are left to it.
void sources::note_certificate_request(const head_end& end) const {
    if (!order_.inside || home() != nullptr || end.what != head_end::kind::failed ||
        end.why.code != failure_code::tls_client_certificate) {
        return;
    }
    if (w_.common.refusals.note_host(order_.connect_host, order_.connect_port, steady_now())) {
        log::info("intercept: ",
                  order_.connect_host,
                  " asks its clients for a certificate; its tunnels are passed on for an hour, and "
                  "always if intercept.except names it");
    }
}

// The parents in their order, and then the origin, until one answers.
awaitable<head_end> sources::ask_origins() {
    using kind = head_end::kind;
    const auto& o = order_;
    // What can't be sent twice is sent on a new connection, which nobody closes just then; but where one is logged in.
    bool fresh_only = !o.retryable && o.owner == 0;
    for (;;) {
        auto unsent = co_await connect_and_send(fresh_only);
        if (unsent) {
            co_return head_end{kind::failed, std::move(*unsent)};
        }
        auto end = co_await at_.read_head();
        if (end.what == kind::retry) {
            into_.producer_asked_nobody();  // it had ended before
            at_.let_go();
            fresh_only = true;  // so the next turn on this connection is the last
            continue;
        }
        if (end.what == kind::got && home() != nullptr) {
            if (auto not_it = judge_home()) {
                // Where the home asked an origin, it is as if this node had.
                if (origin_trouble_of(not_it->why.code) != origin_trouble::ill_answered) {
                    into_.producer_asked_nobody();
                }
                if (not_it->what == kind::retry) {
                    continue;
                }
                co_return std::move(*not_it);
            }
        }
        const bool silent = end.what == kind::failed && (!here_.any_byte || home() != nullptr) &&
                            o.retryable && !into_.abandoned() && !at_.is_overtaken();
        const auto trouble = end.what == kind::got ? way_.trouble_with_parent() : std::nullopt;
        if (trouble) {
            end.why = trouble->why;
            end.what = end.why.code == failure_code::parent_refused ? kind::failed : kind::got;
        }
        // What reached no origin may be sent again, whatever its method, but for a body on its way. What may have
        // reached one is carried out twice by that (RFC 9110 9.2.2).
        const bool again = silent || (trouble && !order_.body() &&
                                      (o.retryable || trouble->reached_no_origin));
        if (trouble && !again) {
            way_.blame(here_.came.sent, trouble->why);  // for those to come
        }
        // A home's lines may make of an origin's head more than we take of one: no fault of its.
        bool spares = end.why.code == failure_code::response_head_too_large;
        if (silent && !spares) {
            spares = co_await waits_for_origin(end.why.code);
        }
        const bool asked_home = home() != nullptr;
        if (!again || !way_.try_next(here_.came.sent, end.why, !spares)) {
            if (silent && !spares) {
                end.why = way_.told_of_parent(std::move(end.why));
            }
            co_return end;
        }
        if (asked_home) {
            into_.producer_asked_nobody();  // one of us is silent to all alike
        }
        at_.let_go();
    }
}

}  // namespace reprise::proxy::fetch
