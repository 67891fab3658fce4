#include "proxy/serve/fetch_relay.hpp"

#include "proxy/http/conditional.hpp"
#include "proxy/http/connection_login.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/http/vary.hpp"
#include "proxy/serve/https_prefix.hpp"
#include "proxy/serve/invalidation.hpp"
#include "proxy/serve/own_reply.hpp"
#include "proxy/serve/relay.hpp"
#include "proxy/serve/request_body.hpp"
#include "proxy/serve/stored_pieces.hpp"

// What a fetch brings first decides: a head, and behind it a body; a 304, for which the stored
// response goes out; a failure; another protocol.

namespace reprise::proxy::serve {

namespace {

using http::body_kind;
using event = cache::fetch_reader::event;

// The statuses that stale-if-error speaks of (RFC 5861 4).
bool is_server_error(unsigned status) noexcept {
    return status == 500 || status == 502 || status == 503 || status == 504;
}

// What a reply says of itself, and the empty line.
void append_own_fields(exchange_state& x,
                       const cache::fetched_head& head,
                       const http::cache_status& how) {
    auto& text = x.out.fields();
    const auto age = http::current_age(head.freshness, resident_now());
    // Who asked for what is stored hears by it that this is (RFC 9111 5.1).
    if (age.count() > 0 || x.asked.facts.asked.only_if_cached) {
        text.append("Age: ").append(std::to_string(age.count())).append("\r\n");
    }
    text.append("Cache-Status: ");
    http::append_cache_status(text, x.w.common.cache_name, how);
    text.append("\r\n");
    x.out.keeps = x.out.keeps && !leaves_body_in_the_way(x, x.book.status);
    x.out.append_connection(text);
    text.append("\r\n");
}

http::body_framing framing_of(const cache::fetched_head& head, unsigned version) {
    http::body_framing framing;
    if (!head.has_body) {
        if (head.length && head.status != 204) {
            framing.has_stated_length = true;
            framing.stated_length = *head.length;
        }
    } else if (head.length) {
        framing.kind = body_kind::length;
        framing.length = *head.length;
    } else {
        framing.kind = version == 11 ? body_kind::chunked : body_kind::until_close;
    }
    return framing;
}

// Status line to empty line; how the body is framed.
body_kind compose_head(exchange_state& x,
                       const cache::fetched_head& head,
                       const http::cache_status& how) {
    x.book.status = head.status;
    auto& text = x.out.fields();
    if (x.asked.https_prefix && is_redirect(head.status)) {
        text.clear();
        append_prefixed(text, head.head, x.asked.target, x.settings->options.access);
    } else {
        text.assign(head.head);
    }
    const auto framing = framing_of(head, x.out.version);
    if (framing.kind == body_kind::chunked) {
        text.append(head.trailer);
    } else if (framing.kind == body_kind::until_close) {
        x.out.keeps = false;
    }
    http::append_framing(text, framing, x.out.version);
    if (head.status == 401 && x.keeps_logins_apart() &&
        http::asks_for_connection_login(lines_of(head))) {
        text.append("Proxy-Support: Session-Based-Authentication\r\nConnection: Proxy-Support\r\n");
    }
    append_own_fields(x, head, how);
    x.out.begin();
    x.out.add(text);
    if (framing.kind == body_kind::until_close) {
        x.out.ends_by_closing();
    }
    return framing.kind;
}

// A 304 of the same head, for a client that has its body.
void compose_not_modified(exchange_state& x,
                          const cache::fetched_head& head,
                          const http::cache_status& how) {
    x.book.status = 304;
    auto& text = x.out.fields();
    text.assign("HTTP/1.1 304 Not Modified\r\n");
    for (const auto& line : lines_of(head)) {
        if (http::belongs_in_not_modified(line)) {
            http::append_field_line(text, line.name, line.value);
        }
    }
    append_own_fields(x, head, how);
    x.out.begin();
    x.out.add(text);
}

/// What a fetch is to a follower.
enum class fit : std::uint8_t { answers, too_old, not_its };

// What a follower that waited for it demands of its age (RFC 9111 5.2.1.1, 5.2.1.3), by the second, as Age
// counts: how old it was said to be, and how long before this request that was asked. An origin's own answer
// is of that moment, however slow the origin or wrong its clock: so those that reload (max-age=0) at once share
// it. Where whoever answered was told as much as this request says, it would say the same once more.
bool is_recent_enough(const exchange_state& x,
                      const cache::answered& told,
                      http::seconds remaining) {
    constexpr http::seconds rounding{1};
    const auto& asked = x.asked.facts.asked;
    const bool says_as_much = told.max_age && asked.max_age && *told.max_age <= *asked.max_age;
    const auto age = says_as_much ? http::seconds{0} : told.age;
    const auto before = std::max(x.started - told.sent, steady_time::duration{0});
    const bool is_young = !asked.max_age || age + before <= *asked.max_age + rounding;
    const bool lasts = !asked.min_fresh ||
                       (told.min_fresh && *told.min_fresh >= *asked.min_fresh) ||
                       remaining >= *asked.min_fresh;
    return is_young && lasts;
}

// A follower is judged as if the head were a stored response's (RFC 9111 4): what could not answer
// it from the store cannot answer it now, but that the age of what it waited for is another matter.
fit judge_head(const exchange_state& x,
               const cache::fetched_head& head,
               fetch_role role,
               wall_time now) {
    if (head.verdict != http::storability::storable ||
        !http::matches(head.vary, head.selecting, x.asked.head->fields) ||
        head.directives.private_fields || head.directives.no_cache_fields) {
        return fit::not_its;
    }
    const auto& asked = x.asked.facts.asked;
    auto beside_age = asked;
    beside_age.max_age = beside_age.min_fresh = std::nullopt;
    const auto judged = http::judge_reuse(head.directives, head.freshness, beside_age, now);
    if (judged.what == http::reuse::must_validate) {
        return fit::not_its;
    }
    const bool is_recent =
        role == fetch_role::awaits
            ? is_recent_enough(x, head.by, judged.ttl)
            : http::judge_reuse(head.directives, head.freshness, asked, now).what !=
                  http::reuse::must_validate;
    return is_recent ? fit::answers : fit::too_old;
}

// What a 304 made of a stored response may serve a follower too, where it was not said to its own client
// alone; that it is fresh is not asked, since it was validated just now. `how` is null where nobody was
// asked: it had come, and was fresh, when its leader began.
fit judge_confirmed(const exchange_state& x,
                    const cache::stored_response& fresh,
                    const cache::confirmation* how,
                    wall_time now) {
    const auto allowed = fresh.directives();
    if ((how != nullptr && how->for_one_client) || fresh.parts() ||
        !http::matches(fresh.vary(), fresh.selecting(), x.asked.head->fields) || allowed.private_ ||
        allowed.no_store || allowed.no_cache) {
        return fit::not_its;
    }
    const auto facts = fresh.freshness();
    if (how == nullptr) {
        return http::judge_reuse(allowed, facts, x.asked.facts.asked, now).what !=
                       http::reuse::must_validate
                   ? fit::answers
                   : fit::too_old;
    }
    return is_recent_enough(x, how->by, http::remaining(facts, now)) ? fit::answers : fit::too_old;
}

// What is stored, stale, may stand in for an answer that the origin failed to give; `disconnected`:
// it gave none at all.
bool may_stand_in(const exchange_state& x, bool disconnected, wall_time now) {
    const auto& freshness = x.settings->options.freshness;
    return cache::may_stand_in(x.stored,
                               x.verdict,
                               x.asked.facts,
                               disconnected || freshness.stale_on_error_status,
                               freshness.stale_on_error,
                               now);
}

}  // namespace

awaitable<ended> say_at_work(exchange_state& x) {
    x.out.begin();
    x.out.add("HTTP/1.1 102 Processing\r\n\r\n");
    const auto sent = co_await x.out.send();
    if (sent == ended::keep) {
        (void)x.out.end();
        x.book.forget_first_byte();
    }
    co_return sent;
}

answer answer_to_failed_fetch(exchange_state& x, failure why) {
    if (!is_of_certificate(why.code) &&
        may_stand_in(x, facts_of(why.code).is_of_origin_unheard, resident_now())) {
        x.book.error = why.detail;
        count_failure(x, why.code);
        return answers::stand_in{"origin-failed"};
    }
    return answers::refused{std::move(why)};
}

bool is_stored(const exchange_state& x,
               const cache::fetched_head& head,
               const cache::fetch& source) {
    return head.length && source.kept_whole() &&
           (head.stored || x.w.common.store.reserve().could_grow_to(*head.length));
}

awaitable<ended_or_next> send_fetched(exchange_state& x,
                                      cache::fetch_reader& reader,
                                      cache::head_ptr head,
                                      const http::cache_status& how) {
    const auto framing = compose_head(x, *head, how);
    body_rules rules;
    rules.left = head->has_body ? head->length : std::nullopt;
    rules.from = x.book.how == outcome::collapsed ? body_source::shared : body_source::fetch;
    rules.chunked = framing == body_kind::chunked && !x.asked.facts.is_head;
    rules.dropped = x.asked.facts.is_head || !head->has_body;
    const auto came = co_await relay_body(x, reader, rules);
    auto& why = x.memory.report.why;
    switch (came) {
    case relayed::whole: co_return x.out.end();
    case relayed::gone: co_return ended::gone;
    case relayed::failed: break;
    case relayed::too_long:
    case relayed::too_short:
        why = failure{failure_code::response_cut_short, "a body of another length than was said"};
        break;
    case relayed::out_of_order: why = failure{failure_code::internal, ""}; break;
    case relayed::fell_out:
        if (x.out.under_way()) {
            co_return co_await go_on_alone(x, head, reader.offset(), rules.chunked, "fell-behind");
        }
        // A client that has had nothing has an answer of its own instead.
        x.w.counts.collapsed_released.add();
        co_return answers::fetched{.anew = true};
    }
    x.book.error = why.detail;
    if (!x.out.under_way()) {
        // Nothing has gone out: an honest error instead of half a response.
        co_return answers::refused{std::move(why)};
    }
    co_return x.out.break_off(outcome::cut_short, facts_of(why.code).name);
}

awaitable<std::optional<ended_or_next>> fetch_relay::give(cache::fetch_reader& reader) {
    for (;;) {
        const auto waited = co_await next_of(x_, reader);
        if (waited != ended::keep) {
            co_return waited;
        }
        if (x_.memory.report.what != event::interim) {
            break;
        }
        const auto passed = co_await pass_interim();
        if (passed != ended::keep) {
            co_return passed;
        }
    }
    if (!accepts(reader)) {
        co_return std::nullopt;
    }
    auto out = co_await take(reader);
    co_return std::move(out);
}

bool fetch_relay::accepts(const cache::fetch_reader& reader) {
    if (!follows()) {
        return true;
    }
    switch (x_.memory.report.what) {
    case event::head: return may_follow(reader);
    case event::validated: return may_share_validated();
    case event::failed: return may_share_failure(*reader.source());
    case event::nothing:
    case event::interim:
    case event::data:
    case event::end:
    case event::fell_out:
    case event::upgraded: break;
    }
    return true;
}

// One coroutine, not two, on the way of every miss.
awaitable<ended_or_next> fetch_relay::take(cache::fetch_reader& reader) {
    return x_.memory.report.what == event::head ? take_head(reader) : take_end();
}

awaitable<ended_or_next> fetch_relay::take_end() {
    switch (x_.memory.report.what) {
    case event::validated: co_return take_validated();
    case event::failed: co_return take_failure();
    case event::upgraded: co_return take_upgrade();
    case event::nothing:
    case event::head:
    case event::interim:
    case event::data:
    case event::end:
    case event::fell_out: break;  // the head always comes first
    }
    co_return x_.out.break_off(outcome::error, "internal");
}

// Not for followers: before the head nobody knows whether they may share the response.
awaitable<ended> fetch_relay::pass_interim() {
    if (x_.out.version != 11 || follows()) {
        co_return ended::keep;
    }
    x_.out.text = std::move(x_.memory.report.interim);
    x_.out.begin();
    x_.out.add(x_.out.text);
    const auto sent = co_await x_.out.send();
    if (sent == ended::keep) {
        (void)x_.out.end();
        x_.book.forget_first_byte();
    }
    co_return sent;
}

bool fetch_relay::may_follow(const cache::fetch_reader& reader) {
    // A sibling that joined before the head was there may be who feeds it, or pace it for others.
    const bool is_siblings = x_.asked.facts.asked.only_if_cached;
    const auto& head = *x_.memory.report.head;
    const auto fits = judge_head(x_, head, role_, resident_now());
    too_old_ = fits == fit::too_old;
    if (fits != fit::answers ||
        (is_siblings && (head.fed_by_sibling || !reader.source()->is_kept()))) {
        return false;
    }
    anothers_alone_ = !reader.source()->serves_others();
    return !anothers_alone_;
}

void fetch_relay::note_head(const cache::fetched_head& head) {
    auto& book = x_.book;
    book.note_answer(head.by);
    if (x_.w.common.access.wants_content_type()) {
        book.content_type = content_type_of(head.head);
    }
    if (!x_.asked.is_safe()) {
        invalidate_after(x_, head);
    }
}

void fetch_relay::note_unseen_head(const cache::fetch_reader& reader) {
    const auto head = reader.source()->head();
    if (!head_ && head) {
        note_head(*head);
    }
}

http::cache_status fetch_relay::status_of(const cache::fetch_reader& reader) const {
    const auto& head = *head_;
    http::cache_status how;
    how.forward = x_.verdict.forward == http::forward_reason::none ? http::forward_reason::uri_miss
                                                                   : x_.verdict.forward;
    how.forward_status = head.status;
    how.collapsed = follows();
    how.stored = is_stored(x_, head, *reader.source());
    const bool negative = head.freshness.source == http::lifetime_source::negative;
    if (!how.stored || head.probation) {
        how.detail = head.detail;
    } else if (negative) {
        how.detail = http::to_string(head.freshness.source);
    }
    return how;
}

// The client's copy is what this head describes: 304 instead of it.
bool fetch_relay::is_not_modified(const cache::fetched_head& head) const {
    const auto& facts = x_.asked.facts;
    if (!facts.is_get || !facts.has_conditions || order_.own_conditions) {
        return false;
    }
    return http::judge_preconditions(x_.asked.head->fields,
                                     head.status,
                                     lines_of(head),
                                     head.freshness.response_time,
                                     resident_now()) == http::precondition::not_modified;
}

awaitable<ended_or_next> fetch_relay::take_head(cache::fetch_reader& reader) {
    head_ = x_.memory.report.head;
    const auto& head = *head_;
    note_head(head);
    if (is_server_error(head.status) && may_stand_in(x_, false, resident_now())) {
        reader.leave();
        co_return answers::stand_in{"origin-error", head.status, follows()};
    }
    if (x_.asked.facts.is_get && head.verdict == http::storability::storable) {
        x_.book.how = follows()           ? outcome::collapsed
                      : head.from_sibling ? outcome::sibling
                                          : outcome::miss;
    } else {
        x_.book.how = outcome::pass;
    }
    auto how = status_of(reader);
    x_.book.reason = how.detail;
    if (is_not_modified(head)) {
        // What is left of it goes on for the store, if it is to be kept and may.
        reader.source()->producer_unattended();
        reader.leave();
        how.stored = how.stored && !reader.source()->abandoned();
        compose_not_modified(x_, head, how);
        co_return answers::composed{};
    }
    co_return co_await send_fetched(x_, reader, head_, how);
}

bool fetch_relay::may_share_validated() {
    const auto& came = x_.memory.report;
    const auto fits = judge_confirmed(x_, *came.fresh, came.confirmed.get(), resident_now());
    too_old_ = fits == fit::too_old;
    held_before_ = too_old_ ? came.fresh : nullptr;
    return fits == fit::answers;
}

// As for whoever leads (came_meanwhile): a hit, and no validation's answer.
ended_or_next fetch_relay::take_came_meanwhile() {
    x_.stored = {.what = cache::lookup::present, .response = x_.memory.report.fresh};
    x_.judged_at = resident_now();
    x_.verdict = cache::judge(x_.stored, x_.asked.facts, x_.asked.head->fields, x_.judged_at);
    return answer{answers::stored{.collapsed = true}};
}

ended_or_next fetch_relay::take_validated() {
    const auto& confirmed = x_.memory.report.confirmed;
    if (!confirmed) {
        return take_came_meanwhile();
    }
    const auto now = resident_now();
    const auto fresh = x_.memory.report.fresh;
    x_.sending = fresh;
    x_.book.how = outcome::revalidated;
    x_.book.note_answer(confirmed->by);
    http::cache_status how;
    how.forward = x_.verdict.forward == http::forward_reason::none ? http::forward_reason::stale
                                                                   : x_.verdict.forward;
    how.forward_status = 304;
    how.stored = !confirmed->for_one_client;
    how.collapsed = follows();
    how.ttl = http::remaining(fresh->freshness(), now);
    stored_pieces made{x_, *fresh};
    made.compose(now, how);
    if (auto behind = made.take_disk_body()) {
        return answer{std::move(*behind)};
    }
    return answer{answers::composed{}};
}

ended_or_next fetch_relay::take_upgrade() {
    auto& over = std::get<fetch::wanted::passed>(order_.what);
    return answer{answers::upgraded{std::move(over.upgraded), std::move(over.upgrade_bytes)}};
}

// By what it fails before anything is sent it would fail for any request. Behind that it may be for a field that this one does
// not have (fetched_reply.cpp): even if no connection could be made at last, since whom it was sent to first, a parent, say, may have
// ended that one for it.
bool fetch_relay::may_share_failure(const cache::fetch& source) {
    const auto code = x_.memory.report.why.code;
    // It is another client's share; or the one that leads may not stand in for its client.
    if (code == failure_code::client_share_used || code == failure_code::tls_client_certificate) {
        return false;
    }
    const auto sent = source.asked();
    others_failure_ = sent && !is_our_own_lack(code) && !fetch::would_send(order_, *sent);
    return !others_failure_;
}

ended_or_next fetch_relay::take_failure() {
    return answer_to_failed_fetch(x_, std::move(x_.memory.report.why));
}

}  // namespace reprise::proxy::serve
