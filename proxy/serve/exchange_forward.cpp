#include "proxy/fetch/body_beginning.hpp"
#include "proxy/http/chunked.hpp"
#include "proxy/http/conditional.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/http/reference.hpp"
#include "proxy/http/vary.hpp"
#include "proxy/serve/exchange.hpp"
#include "proxy/serve/intake.hpp"

#include <algorithm>
#include <array>

// What goes further than the store: fetches joined or begun, and request bodies.

namespace reprise::proxy::serve {

namespace {

using boost::beast::http::verb;
using http::body_kind;
using http::field_id;
using news = cache::fetch_reader::news;

constexpr std::size_t batch = 128u << 10;         // of a body, handed to the kernel at once
constexpr std::uint64_t drain_most = 256u << 10;  // of a request body that nobody wanted

// RFC 9110 9.2.1; methods we do not know count as unsafe (RFC 9111 4.4).
bool is_safe(verb method) noexcept {
    switch (method) {
    case verb::get:
    case verb::head:
    case verb::options:
    case verb::trace:
    case verb::propfind:
    case verb::report:
    case verb::search: return true;
    default: return false;
    }
}

// The statuses that stale-if-error speaks of (RFC 5861 4).
bool is_server_error(unsigned status) noexcept {
    return status == 500 || status == 502 || status == 503 || status == 504;
}

/// Whatever is thrown before a leader's producer has begun: nobody may wait for a fetch that nobody
/// fills.
struct leadership {
    cache::collapse_table& fetches;
    const filter::key_hash& key;
    std::shared_ptr<cache::fetch> into;  ///< null: this request does not lead
    bool started;
    ~leadership() {
        if (into && !started) {
            into->producer_fail(failure{failure_code::out_of_memory, ""});
            fetches.remove(key, into);
        }
    }
};

}  // namespace

awaitable<bool> exchange::run() {
    bool keep = false;
    switch (path_) {
    case path::finish_sending: {
        keep = co_await send_rest();
        end_reply();
        if (keep && keep_ && body_unread()) {
            keep = co_await finish_upload();
        }
        break;
    }
    case path::drain_body: keep = co_await finish_upload(); break;
    case path::tunnel: co_return co_await tunnel_connect();
    case path::pass: keep = co_await pass_through(); break;
    case path::purge: keep = co_await answer_kept_purge(); break;
    case path::awaited: keep = co_await tell_when_ready(); break;
    case path::paced: keep = co_await send_paced(); break;
    case path::disk: keep = co_await serve_from_disk(); break;
    case path::send_outside: keep = co_await send_outside(); break;
    case path::store_or_fetch: keep = co_await serve_from_fetch(); break;
    }
    const bool both = keep && keep_;
    co_return both;
}

// Sends what is in parts. False: the client is gone.
awaitable<bool> exchange::send_rest() {
    const auto& options = settings_->options;
    const bool sent = co_await s_.client.send(
        s_.parts, options.limits.body_rate, options.timeouts.client_body);
    ledger_.settle();
    ledger_.note_first_byte();
    if (!sent) {
        keep_ = false;
        ledger_.how = outcome::client_gone;
    }
    co_return sent;
}

// What send_composed left over. False: the client is gone.
awaitable<bool> exchange::finish_composed(next after) {
    if (after != next::wait) {
        co_return !s_.client.failed();
    }
    if (outside_) {
        co_return co_await send_outside();
    }
    const bool sent = co_await send_rest();
    end_reply();
    co_return sent;
}

std::optional<failure> exchange::judge_destination() const {
    intake in;
    in.target = target_;
    in.facts = facts_;
    in.accelerator = accelerator_;
    return serve::judge_destination(*settings_, in, head_->fields, w_.common.pseudonym);
}

std::shared_ptr<fetch::fetch_order> exchange::make_order() {
    auto order = std::make_shared<fetch::fetch_order>();
    if (!copy_) {
        copy_ = fetch::copy_request(*head_, head_bytes_);
        // The views move from the input buffer to the copy, and the buffer is free for the body or
        // the next request.
        const auto offset = copy_->bytes.data() - head_bytes_.data();
        const auto moved = [&](std::string_view view) {
            const bool inside = view.data() >= head_bytes_.data() &&
                                view.data() < head_bytes_.data() + head_bytes_.size();
            return inside ? std::string_view{view.data() + offset, view.size()} : view;
        };
        target_.raw = moved(target_.raw);
        target_.host = moved(target_.host);
        target_.path_and_query = moved(target_.path_and_query);
        url_ = moved(url_);
        head_ = &copy_->head;
        s_.client.input().consume(head_bytes_.size());
        consumed_ = true;
    }
    auto& o = *order;
    o.now_settings = settings_;
    o.request = copy_;
    o.destination = target_;
    if (accelerator_) {
        // "http://host[:port]": checked when the settings were loaded.
        http::target any;
        any.form = http::target_form::origin;
        const auto upstream = http::with_authority(any,
                                                   std::string_view{listener().upstream}.substr(7));
        o.connect_host = http::connect_host(*upstream);
        o.connect_port = upstream->port;
        o.exempt = true;
        o.told_scheme = target_.secure ? "https" : "http";
    } else {
        o.connect_host = http::connect_host(target_);
        o.connect_port = target_.port;
    }
    o.client_address = s_.client_address;
    if (!w_.speaks_for_many(s_.client_at)) {
        o.charged_to = s_.client_at;
    }
    o.asked = facts_.asked;
    o.key = key_;
    o.url = url_;
    o.is_get = facts_.is_get;
    o.admission = cache::choice_for(settings_->options.admission, listener().admission, url_);
    o.head_is_http10 = head_->version == 10;
    o.body_framing = body_;
    o.websocket = websocket_;
    o.retryable = is_safe(head_->method) && body_.kind == body_kind::none && !websocket_;
    o.may_use_parents = w_.peers.has_value() && !accelerator_ && !websocket_;
    return order;
}

// What a fetch for the store may do, and what it validates.
void exchange::prepare_storing(fetch::fetch_order& order) const {
    order.may_store = facts_.is_get && !facts_.asked.no_store;
    if (facts_.is_head && !facts_.asked.no_store && !facts_.has_authorization &&
        !facts_.has_conditions && !facts_.has_range) {
        order.described = stored_.response;
    }
    order.replaces = stored_.what == cache::lookup::present;
    if (cache::may_validate(stored_, facts_, wall_now())) {
        order.validating = stored_.response;
    }
}

// The client has its stale answer; the origin is asked all the same, with this request's fields,
// once for all who come meanwhile. Whatever stands against asking only means that nobody asks now.
void exchange::revalidate_behind() {
    if (judge_destination()) {
        return;
    }
    auto place = w_.common.fetches.join_or_lead(
        key_, url_, s_.arrived.handle(), settings_->fetches);
    if (!place.leads) {
        return;
    }
    leadership lead{w_.common.fetches, key_, place.reader->source(), false};
    auto order = make_order();
    prepare_storing(*order);
    order->into = place.reader->source();
    order->listed = true;
    order->behind = stored_.response;
    order->pending_sights = place.pending_sights;
    order->into->producer_unattended();
    fetch::start_producer(w_, std::move(order));
    lead.started = true;
}

// A client whose copy still holds gets a 304, and of that nothing can be stored. So where the
// answer would be stored, had it come whole, it is asked for without the client's conditions, and
// those are judged here when its head is there. Not at a first sight: one that is never asked for
// again costs the origin no more than without us.
bool exchange::wants_whole(const fetch::fetch_order& order) const {
    if (!order.may_store || facts_.has_origin_conditions || facts_.has_range ||
        facts_.has_authorization || stored_.what == cache::lookup::present ||
        w_.common.uncacheable.has(key_, started_)) {
        return false;
    }
    const auto ruling = w_.common.admission.peek(key_, order.admission, 0);
    return ruling.admitted && ruling.seen_before > 0;
}

// The client's copy is what this head describes: 304 instead of it.
bool exchange::is_not_modified(const cache::fetched_head& head) const {
    if (!facts_.is_get || !facts_.has_conditions || order_->own_conditions) {
        return false;
    }
    const auto lines = lines_of(head);
    return http::judge_preconditions(
               head_->fields, head.status, lines, head.freshness.response_time, resident_now()) ==
           http::precondition::not_modified;
}

awaitable<bool> exchange::serve_from_fetch() {
    if (facts_.asked.only_if_cached) {
        const auto after = answer_failure(failure{failure_code::only_if_cached_miss, ""});
        co_return co_await finish_composed(after);
    }
    if (auto refused = judge_destination()) {
        const auto after = answer_failure(*refused);
        co_return co_await finish_composed(after);
    }
    if (verdict_.what == cache::ruling::complete) {
        co_return co_await complete_parts();
    }
    order_ = make_order();
    prepare_storing(*order_);
    const bool of_parts = order_->replaces && stored_.response->parts;
    if (of_parts && verdict_.what != cache::ruling::validate) {
        order_->validating = nullptr;  // a 304 would leave nothing to serve
    }
    order_->own_range = facts_.has_range && (of_parts || !order_->validating);
    order_->own_conditions = facts_.has_conditions && !order_->validating && !wants_whole(*order_);
    order_->may_ask_siblings = order_->may_use_parents && facts_.is_get && !order_->replaces &&
                               !facts_.has_authorization && !facts_.has_cookie &&
                               !facts_.asked.no_cache;
    const bool alone = !facts_.is_get || facts_.has_authorization || facts_.asked.no_cache ||
                       facts_.asked.no_store || order_->own_range || order_->own_conditions ||
                       w_.common.uncacheable.has(key_, started_);
    // Who waited for an error that may be over by now waits once more, for whoever asks next: an
    // origin that has just come back is not asked by all of them at once.
    bool released = false;
    bool waited_for_error = false;
    for (bool again = !alone; again;) {
        again = false;
        auto place = w_.common.fetches.join_or_lead(
            key_, url_, s_.arrived.handle(), settings_->fetches);
        leadership lead{
            w_.common.fetches, key_, place.leads ? place.reader->source() : nullptr, false};
        if (place.leads) {
            // Another fetch may have ended between the look-up and now.
            const auto now_stored = w_.common.store.peek(key_, url_, head_->fields);
            const bool came = now_stored.what == cache::lookup::present &&
                              now_stored.response != stored_.response &&
                              !now_stored.response->parts &&
                              http::judge_reuse(now_stored.response->directives,
                                                now_stored.response->freshness,
                                                facts_.asked,
                                                resident_now())
                                      .what == http::reuse::fresh;
            if (came) {
                // Who has joined meanwhile is served from the store too.
                const auto into = place.reader->source();
                into->producer_validated(now_stored.response);
                place.reader.reset();
                w_.common.fetches.remove(key_, into);
                lead.started = true;
                if (look_up(resident_now())) {
                    ledger_.how = outcome::collapsed;
                    const auto after = send_composed();
                    co_return co_await finish_composed(after);
                }
            } else {
                order_->into = place.reader->source();
                order_->listed = !has_used_its_share();
                if (!order_->listed) {
                    w_.common.fetches.remove(key_, order_->into);
                }
                order_->pending_sights = place.pending_sights;
                fetch::start_producer(w_, order_);
                lead.started = true;
            }
        } else {
            w_.counts.collapsed_joined.add();
            if (place.head_known) {
                note_late_sight(*place.reader->source());
            }
        }
        if (place.reader) {
            const bool kept = co_await relay_fetch(*place.reader, !place.leads, released);
            if (!released) {
                co_return kept;
            }
            w_.counts.collapsed_released.add();
            const auto from = place.reader->source();
            const auto head = from->head();
            again = !waited_for_error && head && cache::is_passing(head->status);
            if (again) {
                waited_for_error = true;
                released = false;
                w_.common.fetches.remove(key_, from);
                continue;
            }
            order_->validating = nullptr;
            order_->own_range = facts_.has_range;
            order_->own_conditions = facts_.has_conditions;
        }
    }
    co_return co_await fetch_alone();
}

// What order_ says, for this client and nobody else.
awaitable<bool> exchange::fetch_alone() {
    order_->into = std::make_shared<cache::fetch>(settings_->fetches);
    order_->listed = false;
    bool head_known = false;
    const auto reader = cache::fetch::join(order_->into, s_.arrived.handle(), head_known);
    fetch::start_producer(w_, order_);
    bool released = false;
    co_return co_await relay_fetch(*reader, false, released);
}

// The same for one that shared a fetch, or had a stored response, and has had nothing of it yet.
awaitable<bool> exchange::ask_alone() {
    order_ = make_order();
    prepare_storing(*order_);
    order_->validating = nullptr;
    order_->own_range = facts_.has_range;
    order_->own_conditions = facts_.has_conditions;
    sending_ = nullptr;
    co_return co_await fetch_alone();
}

awaitable<bool> exchange::pass_through() {
    auto refused = judge_destination();
    if (!refused && facts_.asked.only_if_cached) {
        refused = failure{failure_code::only_if_cached_miss, ""};
    }
    if (refused) {
        if (answer_failure(*refused) == next::wait) {
            co_await send_rest();
            end_reply();
        }
        co_return co_await finish_upload();
    }
    order_ = make_order();
    // What a POST's answer says that later GETs may have of it (RFC 9110 9.3.3).
    order_->may_store = head_->method == verb::post && !facts_.asked.no_store && !websocket_;
    order_->own_range = facts_.has_range;
    order_->own_conditions = facts_.has_conditions;
    const bool has_body = body_.kind == body_kind::chunked ||
                          (body_.kind == body_kind::length && body_.length > 0);
    if (has_body) {
        upload_ = begin_upload();
        order_->body = upload_;
        if (!http::has_token(head_->fields, field_id::expect, "100-continue")) {
            const auto& limits = settings_->options.limits;
            fetch::body_beginning beginning{body_, {limits.head_size, limits.fields}};
            const auto until = started_ + fetch::body_beginning::patience;
            const bool stays = co_await fetch::await_beginning(
                s_.client, std::move(beginning), until);
            if (!stays) {
                keep_ = false;
                ledger_.how = outcome::client_gone;
                co_return false;
            }
        }
    }
    order_->into = std::make_shared<cache::fetch>(settings_->fetches);
    bool head_known = false;
    auto reader = cache::fetch::join(order_->into, s_.arrived.handle(), head_known);
    fetch::start_producer(w_, order_);
    bool released = false;
    const bool kept = co_await relay_fetch(*reader, false, released);
    reader.reset();
    if (kept && upload_ && upload_->state() == fetch::upload::phase::running) {
        // Answered in full before the body was here in full, and the origin reads on. A reply that
        // ends with the connection has its end now; the producer says when the upload has to stop.
        if (!keep_) {
            error_code ignored;
            s_.client.socket().shutdown(tcp_socket::shutdown_send, ignored);
        }
        co_await upload_->ended(fetch::upload::waiter::exchange);
    }
    const bool body_over = co_await finish_upload();
    co_return kept&& body_over;
}

std::shared_ptr<fetch::upload> exchange::begin_upload() const {
    const bool asks_first = http::has_token(head_->fields, field_id::expect, "100-continue") &&
                            head_->version >= 11;
    return std::make_shared<fetch::upload>(
        s_.client, body_, settings_->options, asks_first, w_.timer);
}

// What is left of a request's body after the reply: drained when it is little, else the connection
// ends.
awaitable<bool> exchange::finish_upload() {
    if (!upload_) {
        if (body_.kind != body_kind::length || body_.length == 0 || !keep_) {
            co_return body_.kind == body_kind::none ||
                (body_.kind == body_kind::length && body_.length == 0);
        }
        if (!consumed_) {
            s_.client.input().consume(head_bytes_.size());
            consumed_ = true;
        }
        upload_ = begin_upload();
    }
    if (upload_->state() == fetch::upload::phase::running) {
        upload_->stop();
        co_await upload_->ended(fetch::upload::waiter::exchange);
    }
    if (upload_->state() == fetch::upload::phase::done) {
        co_return true;
    }
    const bool may_drain = keep_ && !s_.client.failed() &&
                           upload_->state() != fetch::upload::phase::bad_framing &&
                           upload_->state() != fetch::upload::phase::client_failed &&
                           !http::has_token(head_->fields, field_id::expect, "100-continue");
    if (!may_drain) {
        co_return false;
    }
    co_return co_await fetch::upload::drain(upload_, drain_most);
}

// False: the client has left, or the process is ending.
awaitable<bool> exchange::wait_for_news() {
    if (s_.client_gone) {
        co_return false;
    }
    s_.waiting = true;
    if (w_.watched++ == 0) {
        w_.watch.expire_after(std::chrono::milliseconds{250});
    }
    const bool signalled = co_await s_.arrived.wait(steady_time::max());
    s_.waiting = false;
    --w_.watched;
    co_return signalled && !s_.client_gone;
}

// What this client asks for waits until it has done with what it asked for before: nobody else is
// to wait with it.
bool exchange::has_used_its_share() const {
    const auto& o = *order_;
    if (!o.charged_to || !w_.origins.any_used_up()) {
        return false;
    }
    const auto is_used_up = [&](const net::origin_address& to) {
        return w_.origins.is_used_up(to, o.charged_to);
    };
    if (is_used_up({o.connect_host, o.connect_port, o.exempt, false})) {
        return true;
    }
    if (!o.may_use_parents) {
        return false;
    }
    const auto& parents = w_.peers->book->parents;
    return std::any_of(parents.begin(), parents.end(), [&](const peer::known_peer& one) {
        return is_used_up({one.host, one.port, true, one.https});
    });
}

// A follower is judged as if the head were a stored response's (RFC 9111 4): what could not answer
// it from the store cannot answer it now.
bool exchange::may_follow(const cache::fetched_head& head, wall_time now) const {
    if (head.verdict != http::storability::storable ||
        !http::matches(head.vary, head.selecting, head_->fields) ||
        head.directives.private_fields || head.directives.no_cache_fields) {
        return false;
    }
    return http::judge_reuse(head.directives, head.freshness, facts_.asked, now).what !=
           http::reuse::must_validate;
}

// A follower that came after the head was known is a sight of its own, and may be the one that
// admits.
void exchange::note_late_sight(cache::fetch& joined) {
    const auto head = joined.head();
    if (!head || head->verdict != http::storability::storable || !facts_.is_get) {
        return;
    }
    const auto choice = cache::choice_for(settings_->options.admission, listener().admission, url_);
    const auto ruling = w_.common.admission.peek(key_, choice, joined.add_sights(1));
    const bool fits = !head->length || *head->length <= settings_->options.memory.max_object;
    if (ruling.admitted && fits && (joined.kept_whole() || joined.keep_whole()) && joined.admit()) {
        note_admission(w_.counts, ruling.policy, ruling.rule, true);
    }
}

// Whether it may be said to be stored: since the head came, a late sight may have admitted it, or
// it may have proved to be too much for memory.
bool exchange::is_stored(const cache::fetched_head& head, const cache::fetch& source) const {
    return head.length && source.kept_whole() &&
           (head.stored || w_.common.store.reserve().could_grow_to(*head.length));
}

// What a 304 made of a stored response may serve a follower too; age is not asked, since it was
// validated just now.
bool exchange::may_share(const cache::stored_response& fresh) const {
    return !fresh.parts && http::matches(fresh.vary, fresh.selecting, head_->fields) &&
           !fresh.directives.private_ && !fresh.directives.no_store && !fresh.directives.no_cache;
}

// Relays a fetch from its beginning. `released`: nothing was sent; the caller fetches for this
// client alone.
awaitable<bool> exchange::relay_fetch(cache::fetch_reader& reader, bool follows, bool& released) {
    auto& report = s_.report;
    for (;;) {
        reader.next(report, batch);
        switch (report.what) {
        case news::nothing: {
            const bool more = co_await wait_for_news();
            if (!more) {
                keep_ = false;
                ledger_.how = outcome::client_gone;
                co_return false;
            }
            break;
        }
        case news::interim: {
            // Not for followers: whether they may share the response is not known before its head.
            if (head_->version == 11 && !follows) {
                held_ = std::move(report.interim);
                compose_anew();
                s_.parts.emplace_back(held_.data(), held_.size());
                const bool sent = co_await send_rest();
                if (!sent) {
                    ledger_.how = outcome::client_gone;
                    co_return false;
                }
                s_.client.reply_is_whole();
                ledger_.forget_first_byte();
            }
            break;
        }
        case news::head: {
            if (follows && !may_follow(*report.head, resident_now())) {
                released = true;
                co_return true;
            }
            if (follows && !reader.source()->serves_others()) {
                order_->may_store = false;  // the fetch that it leaves is stored, if one is
                released = true;
                co_return true;
            }
            const auto head = report.head;
            ledger_.origin = head->origin;
            ledger_.origin_time = head->origin_time;
            ledger_.peer = head->peer;
            if (!is_safe(head_->method)) {
                invalidate_after(head->status, *head);
            }
            if (is_server_error(head->status) && may_stand_in(false, resident_now())) {
                reader.leave();
                const auto after = answer_stale("origin-error");
                co_return co_await finish_composed(after);
            }
            if (facts_.is_get && head->verdict == http::storability::storable) {
                ledger_.how = follows              ? outcome::collapsed
                              : head->from_sibling ? outcome::sibling
                                                   : outcome::miss;
            } else {
                ledger_.how = outcome::pass;
            }
            http::cache_status how;
            how.forward = verdict_.forward == http::forward_reason::none
                              ? http::forward_reason::uri_miss
                              : verdict_.forward;
            how.forward_status = head->status;
            how.collapsed = follows;
            how.stored = is_stored(*head, *reader.source());
            const bool negative = head->freshness.source == http::lifetime_source::negative;
            how.detail = !how.stored || head->probation
                             ? head->detail
                             : (negative ? http::to_string(head->freshness.source)
                                         : std::string_view{});
            ledger_.reason = how.detail;
            if (is_not_modified(*head)) {
                reader.source()->producer_unattended();
                reader.leave();
                compose_not_modified(*head, how);
                const bool sent = co_await send_rest();
                end_reply();
                co_return sent;
            }
            compose_head(*head, how);
            co_return co_await relay_body(reader, head);
        }
        case news::validated: {
            const auto now = resident_now();
            const auto fresh = report.fresh;
            if (follows && !may_share(*fresh)) {
                released = true;
                co_return true;
            }
            sending_ = fresh;
            ledger_.how = outcome::revalidated;
            http::cache_status how;
            how.forward = verdict_.forward == http::forward_reason::none
                              ? http::forward_reason::stale
                              : verdict_.forward;
            how.forward_status = 304;
            how.stored = true;
            how.collapsed = follows;
            how.ttl = http::remaining(fresh->freshness, now);
            compose_stored(*fresh, now, how);
            const auto after = send_composed();
            co_return co_await finish_composed(after);
        }
        case news::failed: {
            auto why = std::move(report.why);
            if (follows && why.code == failure_code::client_share_used) {
                released = true;  // it is another client's share
                co_return true;
            }
            if (why.code == failure_code::bad_request) {
                keep_ = false;
            }
            const auto after = answer_failed_fetch(why);
            co_return co_await finish_composed(after);
        }
        case news::upgraded: co_return co_await tunnel_upgrade(*order_);
        case news::data:
        case news::end:
        case news::fell_out: {
            // The head always comes first.
            keep_ = false;
            ledger_.how = outcome::error;
            ledger_.reason = "internal";
            co_return false;
        }
        }
    }
}

void exchange::invalidate_after(unsigned status, const cache::fetched_head& head) {
    if (status < 200 || status >= 400) {
        return;
    }
    // RFC 9111 4.4: the target, and what Location and Content-Location name of the same origin.
    const auto now = wall_now();
    if (!head.replaces_stored) {
        w_.counts.store_invalidated.add(w_.common.store.invalidate(key_, url_, now));
    }
    w_.common.fetches.forget(key_, url_);
    for (const auto& location : head.locations) {
        const auto named = std::string_view{location}.substr(0, location.find('#'));
        const bool authority = named.starts_with("//");
        http::target other = target_;
        other.normal = false;
        std::string text;  // what `other` views
        if (authority || http::has_scheme(named)) {
            const bool secure = target_.secure;
            text = (authority ? secure ? "https:" : "http:" : "") + std::string{named};
            const auto parsed = http::parse_target(
                verb::get, text, secure ? http::secure_accelerator_forms : http::forward_forms);
            if (!parsed || parsed->secure != secure || parsed->port != target_.port ||
                !http::iequals(parsed->host, target_.host)) {
                continue;
            }
            other.path_and_query = parsed->path_and_query;
        } else {
            text = http::resolve_path(target_.path_and_query, named);
            other.path_and_query = text;
        }
        std::string scratch;
        const auto url = key_text(other, listener(), scratch);
        const auto key = filter::hash_of(url, w_.common.admission.secret());
        if (url == url_) {
            continue;
        }
        w_.counts.store_invalidated.add(w_.common.store.invalidate(key, url, now));
        w_.common.fetches.forget(key, url);
    }
}

}  // namespace reprise::proxy::serve
