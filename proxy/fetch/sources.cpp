#include "proxy/fetch/sources.hpp"

#include "proxy/base/log.hpp"
#include "proxy/cache/recency.hpp"
#include "proxy/fetch/outdated.hpp"
#include "proxy/http/cache_status.hpp"
#include "proxy/http/error_page.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/net/known_refusal.hpp"
#include "proxy/net/way_through.hpp"
#include "proxy/peer/icp_cost.hpp"
#include "proxy/peer/parent_health.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

// One after another, and siblings beside the others once their budget is over.

namespace reprise::proxy::fetch {

namespace {

/// What a parent may take to say that it lives. peers[].timeout is for siblings.
constexpr std::chrono::seconds parent_says_within{1};

/// A connection that is being made while siblings are still asked.
struct dialling {
    std::optional<attempt<net::origin_lease>> result;
    bool unwanted = false;
};

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

// What this machine itself knows to be refused is left to no peer: the dial refuses it, and says
// why.
bool sources::may_leave_to_peers() const {
    const auto& o = order_;
    return !net::known_refusal(*o.now_settings->guard, w_.names, o.connect_host, o.connect_port);
}

const filter::key_hash& sources::peer_key() {
    if (!peer_key_) {
        peer_key_ = w_.common.peers->key_of(order_.url);
    }
    return *peer_key_;
}

// Which peers may be asked, and in which order.
void sources::find_peers() {
    auto& o = order_;
    // Those of an earlier turn are places in an earlier book.
    parents_.clear();
    parent_at_ = 0;
    settled_on_.reset();
    home_.reset();
    here_.home_by.reset();
    here_.waits_too.reset();
    if (!w_.peers || !(o.may_ask_siblings || o.may_go_home || o.may_use_parents()) ||
        !may_leave_to_peers()) {
        return;
    }
    book_ = w_.peers->book;
    // An https URL travels over TLS alone, to those who share the secret that its digests have.
    const bool may_be_seen = !o.secure || w_.common.peers->secret().has_file();
    if (may_be_seen && !find_home() && o.may_ask_siblings) {
        ask_siblings();
    }
    if (o.may_use_parents() && book_->choice) {
        // One parent leads to all of an https origin, so that connections through it are kept.
        const auto key = o.secure ? w_.common.peers->key_of(o.connect_host + ':' +
                                                            std::to_string(o.connect_port))
                                  : peer_key();
        const auto now = steady_now();
        parents_ = book_->choice->order(key, now);
        if (!never_direct()) {
            std::erase_if(parents_,
                          [&](std::size_t one) { return book_->choice->is_down(one, now); });
        }
    }
}

// Of a parent that was down one request finds out whether it answers again. This one goes around it if
// that is another.
void sources::settle_on_parent() {
    if (home_ || parent() == nullptr || settled_on_ == parent_at_) {
        return;
    }
    const auto left = std::span{parents_}.subspan(parent_at_);
    const auto patience = order_.now_settings->options.timeouts.origin_connect;
    if (!book_->choice->put_first(left, steady_now(), patience) && !never_direct()) {
        parent_at_ = parents_.size();
    }
    settled_on_ = parent_at_;
}

// True: it belongs to a sibling that lives.
bool sources::find_home() {
    if (!order_.may_go_home || !book_->homes) {
        return false;
    }
    const auto now = steady_now();
    home_ = book_->homes->of(peer_key(), order_.secure, now);
    // Who lives is looked at once a second: the place may be another sibling's since.
    const auto* const sibling = home_ ? book_->siblings[home_->slot].get() : nullptr;
    if (sibling == nullptr || sibling->squid || (order_.secure && !sibling->https)) {
        home_.reset();
        return false;
    }
    here_.home_by = now + order_.now_settings->options.peering.budget;
    here_.waits_too = book_->siblings[home_->slot];
    here_.waits_too_slot = home_->slot;
    w_.counts.handed_to_homes.add();
    return true;
}

const peer::known_peer* sources::parent() const noexcept {
    if (home_) {
        return book_->siblings[home_->slot].get();
    }
    return parent_at_ < parents_.size() ? &book_->parents[parents_[parent_at_]] : nullptr;
}

void sources::blame_parent(steady_time begun, const failure& why) {
    if (home_) {
        book_->homes->failed(home_->at, begun, why);
        return;
    }
    peer::note_parent_failed(*book_, parents_[parent_at_], begun, why);
}

// The settings leave parents as the only way out, and this goes to no upstream of theirs.
bool sources::never_direct() const {
    return order_.now_settings->options.peering.never_direct && !order_.exempt;
}

// What stands against asking anybody at all: none; a parent is in hand, or the origin may be asked.
trouble sources::lacks_way_out() const {
    if (!never_direct() || parent() != nullptr) {
        return std::nullopt;
    }
    auto refused = net::known_refusal(
        *order_.now_settings->guard, w_.names, order_.connect_host, order_.connect_port);
    return refused ? std::move(refused)
                   : failure{failure_code::no_parent, "no parent is known now"};
}

// What is told where the parent in hand was the last that could be asked.
failure sources::told_of_parent(failure why) const {
    return never_direct() && parent() != nullptr && !leads_through()
               ? net::parent_not_reached(parent()->name, std::move(why))
               : std::move(why);
}

// The parent in hand makes a connection to the origin, and the request is not for its eyes.
bool sources::leads_through() const {
    return !home_ && parent() != nullptr && order_.secure;
}

// False: it was the last that may be asked, or has done its part.
bool sources::try_next_parent(steady_time begun, const failure& why, bool blames) {
    // What passes through a parent has no Via but our own.
    if (parent() == nullptr || (leads_through() && !peer::is_parents_fault(why.code, false))) {
        return false;
    }
    if (blames) {
        blame_parent(begun, why);
    }
    if (home_) {
        pass_home_by();
        return parent() != nullptr || !never_direct();
    }
    if (never_direct() && parent_at_ + 1 == parents_.size()) {
        return false;
    }
    ++parent_at_;
    return true;
}

// It has let a request wait: perhaps for an origin that hangs, which is no fault of the parent's. It is asked
// itself, and the connection in hand is used no more.
awaitable<bool> sources::parent_lives(failure_code why) {
    if (why != failure_code::origin_head_timeout || home_ || parent() == nullptr ||
        leads_through()) {
        co_return false;
    }
    at_.let_go();
    std::shared_ptr<const peer::known_peer> one{book_, parent()};
    const bool lives = co_await answers(w_, std::move(one), parent_says_within);
    if (lives) {
        peer::note_parent_works(*book_, parents_[parent_at_]);
    }
    co_return lives;
}

// What is asked of the parent in hand would come in by a listener of our own.
bool sources::leads_back(net::origin_lease& lease) const {
    if (parent() == nullptr || leads_through() || lease.reused()) {
        return false;
    }
    error_code gone;
    const auto far = lease.socket().remote_endpoint(gone);
    return !gone && w_.common.listens(far, *order_.now_settings->guard);
}

// What the head in hand says of the parent, and not of what was asked: that reached no origin.
std::optional<failure> sources::trouble_with_parent() const {
    const auto& head = here_.came.head;
    if (parent() == nullptr || home_ || leads_through()) {
        return std::nullopt;
    }
    if (head.status == 407) {
        // It is us whom the parent does not know: our client has nothing to say to it.
        return failure{failure_code::parent_refused,
                       parent()->name + " answered with 407: see peers[].credentials_file"};
    }
    if (http::is_own_loop(head.status, head.fields, w_.common.pseudonym)) {
        return failure{failure_code::loop_detected,
                       "what it is asked comes back to this instance, " + w_.common.pseudonym};
    }
    // What it has from elsewhere has its Via.
    const auto has_via = [](http::field_list fields) {
        return http::find(fields, http::field_id::via) != nullptr;
    };
    if (head.status == 508 && !has_via(head.fields) && !has_via(order_.request->head.fields)) {
        return failure{failure_code::loop_detected, "it answers 508, Loop Detected"};
    }
    return std::nullopt;
}

// What the home says of itself, and not of the origin, is no answer: it does not stand between a client
// and an origin that can be reached from here. That it refuses this URL alone is no failure of its.
bool sources::home_declines() {
    const auto& head = here_.came.head;
    if (head.status == 502 || head.status == 504 ||
        !http::is_error_of(head.status, head.fields, home_->name)) {
        return false;
    }
    if (head.status == 407 || head.status == 503 || head.status == 508) {
        blame_parent(here_.came.sent,
                     failure{failure_code::parent_refused,
                             "it answered with " + std::to_string(head.status)});
    }
    pass_home_by();
    return true;
}

// The home is at work, and the origin failed it. As if this node had asked, so that the same follows: what is
// stored may stand in for that, and for some of it not.
std::optional<failure> sources::trouble_behind_home() const {
    if (!home_) {
        return std::nullopt;
    }
    const auto& head = here_.came.head;
    const auto code = http::error_told_by(head.status, head.fields, home_->name);
    if (!code) {
        return std::nullopt;
    }
    return failure{*code, std::string{home_->name} + " says so"};
}

// Of the answer in hand. A home is believed as the sibling that it is.
void sources::note_whose_word() {
    const auto* const sibling = here_.sibling ? here_.sibling.get() : home();
    auto& came = here_.came;
    came.by = word_of::origin;
    came.at_most.reset();
    came.fetched_now = home_ && home_has_fetched();
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
    return http::was_forwarded(fields) && age <= wall_now() - here_.came.requested + rounding;
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
                           here_.came.requested,
                           age);
}

// From now on the others are asked.
void sources::pass_home_by() {
    w_.counts.homes_failed.add();
    leave_home();
}

void sources::leave_home() {
    home_.reset();
    here_.home_by.reset();
    here_.waits_too.reset();
}

void sources::note_parent_answered() {
    // After a 508 from another node's loop the parent has not recovered; through it the origin may
    // say what it likes.
    if (home_) {
        book_->homes->succeeded(home_->at);
    } else if (leads_through() || (here_.came.head.status != 508 && !trouble_with_parent())) {
        peer::note_parent_works(*book_, parents_[parent_at_]);
    }
}

net::origin_address sources::address() const {
    const auto* via = parent();
    if (leads_through()) {
        auto to = order_.origin();
        to.through = via->way;
        return to;
    }
    if (via == nullptr) {
        return order_.origin();
    }
    // Behind a parent's connection is the origin's that it makes for it.
    return {.host = via->host,
            .port = via->port,
            .exempt = true,
            .tls = via->https,
            .through = {},
            .lane = 0,
            .owner = order_.owner};
}

// False: there is none to whoever is asked next.
bool sources::take_idle(bool fresh_only) {
    if (!fresh_only) {
        here_.lease = w_.origins.try_acquire(address(), order_.charged_to);
    }
    return !fresh_only && here_.lease;
}

// While siblings are asked too, their answer must not wait for a connection.
awaitable<attempt<net::origin_lease>> sources::acquire(bool fresh_only, steady_time until) {
    auto& o = order_;
    const auto to = address();
    if (!at_.rivals) {
        co_return co_await w_.origins.acquire(to, fresh_only, until, o.charged_to);
    }
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
    asio::co_spawn(w_.io, std::move(work), std::move(on_end));
    while (!made->result && !at_.is_overtaken()) {
        const bool signalled = co_await at_.ready.wait(steady_time::max());
        if (!signalled) {
            break;
        }
    }
    if (!made->result) {
        made->unwanted = true;
        failure gave_up{failure_code::origin_closed, "not waited for"};
        co_return gave_up;
    }
    co_return std::move(*made->result);
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
        if (leased && !leads_back(*leased)) {
            here_.lease = std::move(*leased);
            co_return std::nullopt;
        }
        failure why = leased ? failure{failure_code::loop_detected,
                                       leased->endpoint() + " is a listener of this instance"}
                             : std::move(leased.error());
        if (leased) {
            leased->close();
        }
        if (at_.is_overtaken() || !try_next_parent(begun, why)) {
            co_return told_of_parent(std::move(why));
        }
        settle_on_parent();
    }
}

awaitable<trouble> sources::connect_and_send(bool fresh_only) {
    settle_on_parent();
    if (auto nowhere = lacks_way_out()) {
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
        co_return failure{failure_code::origin_closed, "every client has left"};
    }
    if (order_.inside && here_.lease.socket().was_asked_for_certificate()) {
        // Who the client is may be what its answer hangs on.
        here_.lease.close();
        co_return failure{failure_code::tls_client_certificate, ""};
    }
    const auto* via = parent();
    if (!at_.rivals && !home_ && (via == nullptr || leads_through())) {
        expected_.begin();
    }
    at_.begin_reading();
    here_.came.requested = wall_now();
    here_.came.resident_requested = resident_now();
    here_.came.turn = cache::next_turn();
    here_.came.sent = steady_now();
    const auto to = home_                                ? next_hop::home
                    : via != nullptr && !leads_through() ? next_hop::parent
                                                         : next_hop::origin;
    const auto named = to == next_hop::home     ? home_->name
                       : to == next_hop::parent ? std::string_view{via->way->credentials}
                                                : std::string_view{};
    const auto wire = wire_of(
        order_, to, validate_, w_.common.pseudonym, here_.came.requested, named);
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
    find_peers();
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
    note_certificate_request(end);
    if (end.what == head_end::kind::got) {
        if (at_.rivals) {
            std::exchange(at_.rivals, nullptr)->abandon(sibling_query::reason::outrun);
        }
        if (parent() != nullptr) {
            note_parent_answered();
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
    if (home_) {
        blame_parent(here_.came.sent, failure{failure_code::response_cut_short, ""});
        pass_home_by();
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
    if (!order_.inside || home_ || end.what != head_end::kind::failed ||
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
            at_.let_go();
            fresh_only = true;  // so the next turn on this connection is the last
            continue;
        }
        const bool silent = end.what == kind::failed && (!here_.any_byte || home_) && o.retryable &&
                            !into_.abandoned() && !at_.is_overtaken();
        if (end.what == kind::got && home_ && home_declines()) {
            at_.let_go();
            continue;
        }
        if (end.what == kind::got) {
            if (auto wrong = trouble_behind_home()) {
                note_parent_answered();
                at_.let_go();
                co_return head_end{kind::failed, std::move(*wrong)};
            }
        }
        if (end.what == kind::got && home_ && home_is_outdated()) {
            leave_home();
            at_.let_go();
            continue;
        }
        const auto trouble = end.what == kind::got ? trouble_with_parent() : std::nullopt;
        if (trouble) {
            end.why = *trouble;
            end.what = trouble->code == failure_code::parent_refused ? kind::failed : kind::got;
        }
        // What reached no origin may be sent again, whatever its method, but for a body on its way.
        const bool again = silent || (trouble && !order_.body());
        if (trouble && !again) {
            blame_parent(here_.came.sent, *trouble);  // for those to come
        }
        bool spares = false;
        if (silent) {
            spares = co_await parent_lives(end.why.code);
        }
        if (!again || !try_next_parent(here_.came.sent, end.why, !spares)) {
            if (silent && end.why.code == failure_code::origin_closed) {
                end.why = told_of_parent(std::move(end.why));
            }
            co_return end;
        }
        at_.let_go();
    }
}

}  // namespace reprise::proxy::fetch
