#include "proxy/fetch/way_out.hpp"

#include "proxy/http/error_page.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/net/known_refusal.hpp"
#include "proxy/net/way_through.hpp"
#include "proxy/peer/parent_health.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

// One place in a list: a home in front of it, the origin behind it.

namespace reprise::proxy::fetch {

bool way_out::may_leave_to_peers() const {
    const auto& o = order_;
    return !net::known_refusal(*o.now_settings->guard, w_.names, o.connect_host, o.connect_port);
}

const filter::key_hash& way_out::peer_key() {
    if (!peer_key_) {
        peer_key_ = w_.common.peers->key_of(order_.url);
    }
    return *peer_key_;
}

bool way_out::choose() {
    const auto& o = order_;
    // Those of an earlier turn are places in an earlier book.
    parents_.clear();
    parent_at_ = 0;
    settled_on_.reset();
    leave_home();
    if (!w_.peers || !(o.may_ask_siblings || o.may_go_home || o.may_use_parents()) ||
        !may_leave_to_peers()) {
        return false;
    }
    book_ = w_.peers->book;
    // An https URL travels over TLS alone, to those who share the secret that its digests have.
    const bool may_be_seen = !o.secure || w_.common.peers->secret().has_file();
    const bool has_home = may_be_seen && find_home();
    if (o.may_use_parents() && book_->choice) {
        find_parents();
    }
    return may_be_seen && !has_home && o.may_ask_siblings;
}

void way_out::find_parents() {
    const auto& o = order_;
    // One parent leads to all of an https origin, so that connections through it are kept.
    const auto key = o.secure ? w_.common.peers->key_of(o.connect_host + ':' +
                                                        std::to_string(o.connect_port))
                              : peer_key();
    const auto now = steady_now();
    parents_ = book_->choice->order(key, now);
    if (!never_direct()) {
        std::erase_if(parents_, [&](std::size_t one) { return book_->choice->is_down(one, now); });
    }
}

// True: it belongs to a sibling that lives.
bool way_out::find_home() {
    if (!order_.may_go_home || !book_->homes) {
        return false;
    }
    const auto now = steady_now();
    const auto& options = order_.now_settings->options;
    home_ = book_->homes->to_ask(
        peer_key(), order_.secure, now, options.peering.budget, here_.on_trial);
    // Who lives is looked at once a second: the place may be another sibling's since.
    const auto* const sibling = home_ ? book_->siblings[home_->slot].get() : nullptr;
    if (sibling == nullptr || sibling->squid || (order_.secure && !sibling->https)) {
        leave_home();
        return false;
    }
    here_.home_by = now + options.peering.budget;
    here_.waits_too = book_->siblings[home_->slot];
    here_.waits_too_slot = home_->slot;
    w_.counts.handed_to_homes.add();
    return true;
}

void way_out::pass_home_by() {
    w_.counts.homes_failed.add();
    leave_home();
}

void way_out::leave_home() {
    home_.reset();
    here_.home_by.reset();
    here_.waits_too.reset();
    end_trial();
}

const peer::known_peer* way_out::parent() const noexcept {
    if (home_) {
        return book_->siblings[home_->slot].get();
    }
    return parent_at_ < parents_.size() ? &book_->parents[parents_[parent_at_]] : nullptr;
}

// The settings leave parents as the only way out, and this goes to no upstream of theirs.
bool way_out::never_direct() const {
    return order_.now_settings->options.peering.never_direct && !order_.exempt;
}

void way_out::settle() {
    if (home_ || parent() == nullptr || settled_on_ == parent_at_) {
        return;
    }
    const auto left = std::span{parents_}.subspan(parent_at_);
    const auto patience = order_.now_settings->options.timeouts.origin_connect;
    if (auto held = book_->choice->put_first(left, steady_now(), patience)) {
        here_.on_trial = std::move(*held);
    } else if (!never_direct()) {
        parent_at_ = parents_.size();
    }
    settled_on_ = parent_at_;
}

next_hop way_out::hop() const noexcept {
    return home_                                     ? next_hop::home
           : parent() != nullptr && !leads_through() ? next_hop::parent
                                                     : next_hop::origin;
}

std::string_view way_out::named() const noexcept {
    switch (hop()) {
    case next_hop::home: return home_->name;
    case next_hop::parent: return parent()->way->credentials;
    default: return {};
    }
}

net::origin_address way_out::address() const {
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

std::optional<failure> way_out::lacks_any() const {
    if (!never_direct() || parent() != nullptr) {
        return std::nullopt;
    }
    auto refused = net::known_refusal(
        *order_.now_settings->guard, w_.names, order_.connect_host, order_.connect_port);
    return refused ? std::move(refused)
                   : failure{failure_code::no_parent, "no parent is known now"};
}

bool way_out::leads_back(net::origin_lease& lease) const {
    if (parent() == nullptr || leads_through() || lease.reused()) {
        return false;
    }
    error_code gone;
    const auto far = lease.socket().remote_endpoint(gone);
    return !gone && w_.common.listens(far, *order_.now_settings->guard);
}

namespace {
// Any web server may answer 407. A proxy passes that on with its Via and without Proxy-Authenticate, which a 407 of
// its own has (RFC 9110 15.5.8), Squid's beside a Via.
bool has_challenge(const http::response_head& head) noexcept {
    return http::find(head.fields, http::field_id::proxy_authenticate) != nullptr;
}
}  // namespace

std::optional<way_out::parent_trouble> way_out::trouble_with_parent() const {
    const auto& head = here_.came.head;
    if (parent() == nullptr || home_ || leads_through()) {
        return std::nullopt;
    }
    parent_trouble found;
    if (head.status == 407 && (has_challenge(head) || !http::has_via(head.fields))) {
        // It is us whom the parent does not know: our client has nothing to say to it.
        found.why = {failure_code::parent_refused,
                     parent()->name + " answered with 407: see peers[].credentials_file"};
        found.reached_no_origin = has_challenge(head);
    } else if (http::is_own_loop(head.status, head.fields, w_.common.pseudonym)) {
        found.why = {failure_code::loop_detected,
                     "what it is asked comes back to this instance, " + w_.common.pseudonym};
        found.reached_no_origin = true;
    } else if (head.status == 508 && !http::has_via(head.fields) &&
               !http::has_via(order_.request->head.fields)) {
        found.why = {failure_code::loop_detected, "it answers 508, Loop Detected"};
    } else {
        return std::nullopt;
    }
    return found;
}

void way_out::blame(steady_time begun, const failure& why) {
    if (home_) {
        book_->homes->failed(home_->at, begun, why);
    } else {
        peer::note_parent_failed(*book_, parents_[parent_at_], begun, why);
    }
    end_trial();
}

void way_out::note_answered() {
    // After a 508 from another node's loop the parent has not recovered; through it the origin may
    // say what it likes.
    if (home_) {
        book_->homes->succeeded(home_->at);
    } else if (parent() != nullptr &&
               (leads_through() || (here_.came.head.status != 508 && !trouble_with_parent()))) {
        peer::note_parent_works(*book_, parents_[parent_at_]);
    }
    end_trial();
}

void way_out::note_refused(failure_code why) {
    if (!leads_through()) {
        return;
    }
    const auto at = parents_[parent_at_];
    switch (why) {
    case failure_code::parent_refused: peer::note_parent_refused(*book_, at); break;
    // Behind the parent's answer.
    case failure_code::tls_failed:
    case failure_code::tls_certificate:
    case failure_code::tls_client_certificate: peer::note_parent_works(*book_, at); break;
    default: break;
    }
}

bool way_out::has_answered_since(steady_time sent) const {
    return !home_ && parent() != nullptr &&
           book_->choice->has_succeeded_since(parents_[parent_at_], sent);
}

peer::parent_choice::silence way_out::judge_silence(steady_time sent) const {
    return book_->choice->judge_silence(parents_[parent_at_], sent, steady_now());
}

bool way_out::try_next(steady_time begun, const failure& why, bool blames) {
    // What passes through a parent has no Via but our own.
    if (parent() == nullptr || (leads_through() && !peer::may_ask_another(why.code, false))) {
        note_refused(why.code);
        end_trial();
        return false;
    }
    if (blames) {
        blame(begun, why);
    }
    if (home_) {
        pass_home_by();
        return parent() != nullptr || !never_direct();
    }
    end_trial();
    if (never_direct() && parent_at_ + 1 == parents_.size()) {
        return false;
    }
    ++parent_at_;
    return true;
}

failure way_out::told_of_parent(failure why) const {
    return never_direct() && parent() != nullptr && !leads_through()
               ? net::parent_not_reached(parent()->name, std::move(why))
               : std::move(why);
}

}  // namespace reprise::proxy::fetch
