#include "proxy/serve/exchange.hpp"

#include "proxy/base/log.hpp"
#include "proxy/http/date.hpp"
#include "proxy/http/error_page.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/net/access.hpp"
#include "proxy/serve/intake.hpp"
#include "proxy/serve/purge.hpp"

#include <algorithm>

// What needs no waiting: reading the request's facts, the look-up, answers from the store and
// refusals. What waits is in the other files of exchange.hpp:
//
//     exchange_compose   what a stored response's reply consists of
//     exchange_disk      a look-up on disk, a body that is sent while it is read
//     exchange_forward   fetches joined or begun, request bodies
//     exchange_relay     a fetch's head and body to the client
//     exchange_parts     the gap in what stored parts hold
//     exchange_tunnel    CONNECT and upgrades
//     exchange_peer      digests, for peers

namespace reprise::proxy::serve {

namespace {

using boost::beast::http::verb;
using http::field_id;

// Nothing came back: neither a refusal of ours nor an answer, however bad.
bool is_of_origin_unheard(failure_code code) noexcept {
    switch (code) {
    case failure_code::dns_not_found:
    case failure_code::dns_error:
    case failure_code::dns_timeout:
    case failure_code::connect_refused:
    case failure_code::connect_unreachable:
    case failure_code::connect_timeout:
    case failure_code::tls_certificate:
    case failure_code::tls_failed:
    case failure_code::origin_connection_limit:
    case failure_code::client_share_used:
    case failure_code::origin_closed:
    case failure_code::origin_upload_timeout:
    case failure_code::origin_head_timeout: return true;
    default: return false;
    }
}

// Of a head that cannot be read. Whoever sent HEAD takes a body for the next answer.
bool asks_head(std::string_view bytes) noexcept {
    bytes.remove_prefix(std::min(bytes.find_first_not_of("\r\n"), bytes.size()));
    return bytes.starts_with("HEAD ");
}

}  // namespace

session_state::session_state(thread::worker& in, tcp_socket socket, std::size_t listener_index)
    : w{in},
      client{std::move(socket), in.timer},
      arrived{in.timer},
      listener{listener_index} {
    head.fields.reserve(32);
    parts.reserve(8);
}

exchange::exchange(session_state& state, steady_time started)
    : s_{state},
      w_{state.w},
      settings_{state.w.current},
      started_{started},
      head_bytes_{state.client.input().data().substr(0, state.head.bytes)},
      head_{&state.head},
      ledger_{state, started} {}

exchange::~exchange() {
    if (upload_) {
        upload_->stop();
    }
    // Whatever was meant to be said of it, an answer that is not whole by now never will be.
    const bool counts_as_whole = ledger_.how != outcome::client_gone &&
                                 ledger_.how != outcome::tunnel && ledger_.how != outcome::error;
    if (s_.client.reply_under_way() && counts_as_whole) {
        ledger_.how = outcome::cut_short;
    }
    ledger_.close({.head = head_,
                   .unconsumed = consumed_ ? 0 : head_bytes_.size(),
                   .key = key_,
                   .sent = sending_.get()});
    s_.report.clear();  // an idle connection must not hold a body that the store has let go of
    if (!consumed_) {
        s_.client.input().consume(head_bytes_.size());
    }
}

const config::listener& exchange::listener() const {
    return settings_->options.listeners[s_.listener];
}

std::optional<failure> exchange::read_request() {
    auto& head = s_.head;
    if (s_.client_refused) {
        return failure{failure_code::client_refused, s_.client_address};
    }
    // Asked first: what is taken in loses its Connection.
    const bool keeps = http::keep_alive(head.version, head.fields) &&
                       !w_.common.draining.load(std::memory_order_relaxed);
    intake in;
    auto wrong = take_in(head, listener(), in);
    target_ = in.target;
    body_ = in.body;
    facts_ = in.facts;
    accelerator_ = in.accelerator;
    websocket_ = in.websocket;
    keep_ = keeps && in.framed && !in.last;
    return wrong;
}

exchange::next exchange::begin() {
    if (is_for_peers()) {
        return answer_peer();
    }
    if (auto wrong = read_request()) {
        // Where the next request begins is known unless the message itself was at fault.
        keep_ = keep_ && wrong->code != failure_code::bad_request;
        return answer_failure(*wrong);
    }
    if (!accelerator_ && !settings_->options.access.deny_destinations.empty() &&
        denies_host(*settings_, target_)) {
        return answer_failure(
            failure{failure_code::destination_refused,
                    std::string{target_.host} + " is in access.deny_destinations"});
    }
    const auto method = head_->method;
    if (method == verb::connect) {
        path_ = path::tunnel;
        return next::wait;
    }
    if (method == verb::options || method == verb::trace) {
        auto hops = http::judge_hops(*head_);
        if (!hops) {
            keep_ = false;
            return answer_failure(hops.error());
        }
        const bool of_proxy = target_.form == http::target_form::asterisk && !accelerator_;
        if (hops->what == http::hops::answer_here || of_proxy) {
            if (method == verb::trace) {
                std::string echo;
                http::append_trace(echo, *head_);
                return answer_local(echo, "message/http");
            }
            return answer_local("", "");
        }
    }
    if ((!facts_.is_get && !facts_.is_head) || body_.kind != http::body_kind::none || websocket_) {
        path_ = path::pass;
    }
    url_ = key_text(target_, listener(), s_.url);
    if (method == verb::purge) {
        return answer_purge();
    }
    key_ = filter::hash_of(url_, w_.common.admission.secret());
    if (path_ == path::pass) {
        verdict_.forward = http::forward_reason::method;
        return next::wait;
    }
    if (look_up(resident_at(wall_now(), started_))) {
        if (auto* disk = w_.common.store.disk()) {
            disk->note_request(key_);
        }
        return send_composed();
    }
    return look_up_on_disk() ? send_composed() : next::wait;
}

// True when memory answers: the reply is composed.
bool exchange::look_up(wall_time now) {
    w_.common.admission.count_request(key_);
    stored_ = w_.common.store.find(key_, url_, head_->fields);
    if (stored_.just_admitted) {
        note_admitted();
    }
    return answer_from_store(now);
}

// What waited on probation is asked for again: that admits it, and it goes where the admitted go.
void exchange::note_admitted() {
    // Counted for the policy that rules, which "auto" is only the name of.
    const auto by = cache::choice_for(settings_->options.admission, listener().admission, url_);
    const auto ruling = w_.common.admission.peek(key_, by);
    note_admission(w_.counts, ruling.policy, ruling.rule, true);
    w_.common.store.admitted(key_, url_, stored_.response, w_.common.store.mark(key_));
}

// True when the disk answers at once: the page cache had it. It is asked where memory has nothing
// for this request.
bool exchange::look_up_on_disk() {
    auto* disk = w_.common.store.disk();
    if (disk == nullptr) {
        return false;
    }
    if (stored_.what == cache::lookup::present || !disk->may_hold(key_)) {
        disk->note_request(key_);
        return false;
    }
    lookup_ = std::make_unique<cache::disk::disk_lookup>(*disk, key_, url_, s_.arrived.handle());
    if (!lookup_->step(head_->fields)) {
        path_ = path::disk;
        return false;
    }
    return adopt_from_disk();
}

// What the disk said, in place of what memory had.
bool exchange::adopt_from_disk() {
    const auto uses = lookup_->uses;
    const auto asked = lookup_->asked;
    auto brought = std::move(lookup_->result);
    lookup_.reset();
    if (brought.what == cache::lookup::absent) {
        return false;
    }
    stored_ = std::move(brought);
    if (stored_.what == cache::lookup::present) {
        w_.common.store.promote(key_, url_, stored_.response, uses, asked);
    }
    return answer_from_store(resident_now());
}

// Judges what is stored. True when that is the answer: the reply is composed.
bool exchange::answer_from_store(wall_time now) {
    verdict_ = cache::judge(stored_, facts_, head_->fields, now);
    if (!verdict_.answers()) {
        return false;
    }
    if (verdict_.what != cache::ruling::hit && is_squids_question()) {
        // It asked for what its digest calls fresh, and gets that or its own origin.
        verdict_.what = cache::ruling::unavailable;
        verdict_.forward = http::forward_reason::stale;
        return false;
    }
    const auto& stored = *stored_.response;
    if (verdict_.what == cache::ruling::stale_behind && !facts_.asked.only_if_cached &&
        !facts_.asked.no_store) {
        revalidate_behind();
    }
    const auto generation = w_.common.admission.generation() + 1;
    if (stored.told_at.load(std::memory_order_relaxed) != generation) {
        stored.told_at.store(generation, std::memory_order_relaxed);
        w_.common.admission.hit(key_, now);
    }
    ledger_.how = verdict_.what == cache::ruling::hit ? outcome::hit : outcome::stale;
    sending_ = stored_.response;
    const auto how = cache::status_of(verdict_, stored);
    ledger_.reason = how.detail;
    compose_stored(stored, now, how);
    return true;
}

bool exchange::may_stand_in(bool disconnected, wall_time now) const {
    const auto& freshness = settings_->options.freshness;
    return cache::may_stand_in(stored_,
                               verdict_,
                               facts_,
                               disconnected || freshness.stale_on_error_status,
                               freshness.stale_on_error,
                               now);
}

exchange::next exchange::answer_stale(std::string_view detail) {
    const auto now = resident_now();
    ledger_.how = outcome::stale;
    ledger_.reason = detail;
    sending_ = stored_.response;
    http::cache_status how;
    how.hit = true;
    how.ttl = http::remaining(sending_->freshness, now);
    how.detail = detail;
    compose_stored(*sending_, now, how);
    return send_composed();
}

// RFC 9111 4.2.4: without an answer from the origin this cache is disconnected from it.
exchange::next exchange::answer_failed_fetch(const failure& why) {
    const bool disconnected = is_of_origin_unheard(why.code);
    if (may_stand_in(disconnected, resident_now())) {
        ledger_.error = why.detail;
        note_failure(w_.counts, why.code);
        return answer_stale("origin-failed");
    }
    return answer_failure(why);
}

exchange::next exchange::send_composed() {
    if (outside_) {
        path_ = path::send_outside;
        return next::wait;
    }
    const bool all = s_.client.send_now(s_.parts);
    ledger_.note_first_byte();
    if (!all) {
        path_ = path::finish_sending;
        return next::wait;
    }
    if (s_.client.failed()) {
        ledger_.how = outcome::client_gone;
        keep_ = false;
    }
    end_reply();
    return keep_ ? next::keep : next::close;
}

exchange::next exchange::answer_failure(const failure& why) {
    const auto& facts = facts_of(why.code);
    if (why.code != failure_code::only_if_cached_miss && facts.status != 504 &&
        is_squids_question()) {
        note_failure(w_.counts, why.code);
        return answer_failure(failure{failure_code::only_if_cached_miss, std::string{facts.name}});
    }
    note_failure(w_.counts, why.code);
    const auto date = http::format_date(wall_now());
    keep_ = keep_ && head_->version == 11;  // the page says nothing of keep-alive
    // A body that nobody reads must not be taken for the next request: small ones are drained,
    // others end the connection.
    const bool waits_for_continue = http::has_token(
        head_->fields, field_id::expect, "100-continue");
    if (body_.kind != http::body_kind::none && !upload_ &&
        (waits_for_continue || body_.kind != http::body_kind::length ||
         body_.length > (64u << 10))) {
        keep_ = false;
    }
    std::string status;
    if (verdict_.forward != http::forward_reason::none) {
        http::cache_status how;
        how.forward = verdict_.forward;
        how.detail = facts.name;
        http::append_cache_status(status, "reprise", how);
    }
    const auto* accept = http::find(head_->fields, field_id::accept);
    held_.clear();
    http::append_error_page(held_,
                            why,
                            {.pseudonym = w_.common.pseudonym,
                             .accept = accept != nullptr ? accept->value : std::string_view{},
                             .date = std::string_view{date.data(), date.size()},
                             .cache_status = status,
                             .head = head_->method == verb::head,  // facts_ may be unread
                             .close = !keep_});
    ledger_.how = outcome_of(why.code);
    ledger_.status = facts.status;
    ledger_.reason = facts.name;
    ledger_.error = why.detail;
    compose_anew();
    s_.parts.emplace_back(held_.data(), held_.size());
    const auto after = send_composed();
    if (after == next::keep && body_unread()) {
        path_ = path::drain_body;
        return next::wait;
    }
    return after;
}

exchange::next exchange::answer_purge() {
    error_code numeric;
    const auto client = asio::ip::make_address(s_.client_address, numeric);
    if (!net::client_allowed(settings_->options.access.purge_clients, client)) {
        return answer_failure(failure{failure_code::purge_refused, s_.client_address});
    }
    const auto read = read_purge_request(url_, head_->fields);
    if (!read.wrong.empty()) {
        return answer_failure(failure{failure_code::bad_request, read.wrong});
    }
    purged_ = carry_out(w_.common, read.order, wall_now());
    ledger_.reason = "purge";
    if (w_.common.store.disk() != nullptr) {
        path_ = path::purge;
        return next::wait;
    }
    return answer_local(purged_.json, "application/json", purged_.status);
}

exchange::next exchange::answer_local(std::string_view body,
                                      std::string_view type,
                                      unsigned status) {
    const auto date = http::format_date(wall_now());
    held_.assign(status == 200   ? "HTTP/1.1 200 OK"
                 : status == 404 ? "HTTP/1.1 404 Not Found"
                 : status == 504 ? "HTTP/1.1 504 Gateway Timeout"
                                 : "HTTP/1.1 500 Internal Server Error");
    held_.append("\r\nDate: ").append(date.data(), date.size());
    if (!type.empty()) {
        held_.append("\r\nContent-Type: ").append(type);
    } else {
        held_.append("\r\nAllow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, TRACE, CONNECT");
    }
    keep_ = keep_ && (body_.kind == http::body_kind::none ||
                      (body_.kind == http::body_kind::length && body_.length == 0));
    held_.append("\r\nContent-Length: ");
    held_.append(std::to_string(body.size()));
    held_.append("\r\nCache-Control: no-store\r\n");
    append_connection(held_);
    held_.append("\r\n").append(body);
    ledger_.how = outcome::local;
    ledger_.status = status;
    compose_anew();
    s_.parts.emplace_back(held_.data(), held_.size());
    return send_composed();
}

void exchange::refuse_head(session_state& state, const failure& why, steady_time started) {
    // Nothing of the head can be relied on, so there is no exchange: one page, one count, one line.
    const auto& facts = facts_of(why.code);
    auto& w = state.w;
    note_failure(w.counts, why.code);
    const auto date = http::format_date(wall_now());
    std::string page;
    http::append_error_page(page,
                            why,
                            {.pseudonym = w.common.pseudonym,
                             .accept = {},
                             .date = std::string_view{date.data(), date.size()},
                             .cache_status = {},
                             .head = asks_head(state.client.input().data()),
                             .close = true});
    ledger book{state, started};
    book.how = outcome::client_error;
    book.status = facts.status;
    book.reason = facts.name;
    book.error = why.detail;
    state.parts.clear();
    state.parts.emplace_back(page.data(), page.size());
    if (state.client.send_now(state.parts)) {
        state.client.reply_is_whole();
    }
    state.parts.clear();
    book.close({});
}

// The reply has gone out to its end, unless the client is gone: with what follows it the connection
// may go on, or end.
void exchange::end_reply() {
    if (!s_.client.failed()) {
        s_.client.reply_is_whole();
    }
}

}  // namespace reprise::proxy::serve
