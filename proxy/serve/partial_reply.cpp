#include "proxy/serve/partial_reply.hpp"

#include "proxy/cache/partial_response.hpp"
#include "proxy/serve/fetch_relay.hpp"
#include "proxy/serve/orders.hpp"
#include "proxy/serve/relay.hpp"
#include "proxy/serve/stored_pieces.hpp"

#include <string>

namespace reprise::proxy::serve {

namespace {
using event = cache::fetch_reader::event;
}  // namespace

awaitable<ended_or_next> partial_reply::give() {
    const auto order = make_order(x_);
    order->may_store = x_.asked.facts.is_get && !x_.asked.facts.asked.no_store;
    order->replaces = true;
    order->what = fetch::wanted::gap{"bytes=" + std::to_string(plan_.gap.first) + "-" +
                                         (plan_.open ? "" : std::to_string(plan_.gap.last)),
                                     std::string{plan_.validator}};
    const auto reader = fetch_alone(x_, order);
    x_.book.how = outcome::miss;
    x_.book.reason = "partial";
    auto& came = x_.memory.report;
    do {
        const auto waited = co_await next_of(x_, *reader);
        if (waited != ended::keep) {
            co_return waited;
        }
    } while (came.what == event::interim);  // of a request that is ours (RFC 9110 15.2)
    if (came.what == event::failed) {
        co_return answer_to_failed_fetch(x_, std::move(came.why));
    }
    if (came.what != event::head) {
        co_return x_.out.break_off(outcome::error, "internal");  // the head is first
    }
    const auto head = came.head;
    x_.book.note_answer(head->by);
    if (fits(*head)) {
        co_return co_await send_around(*reader, head);
    }
    if (cache::ends_parts(plan_,
                          kept_->parts()->total,
                          head->status,
                          cache::validating_lines_of(*head),
                          wall_now())) {
        x_.w.common.store.drop(x_.asked.key, x_.asked.url, kept_);
    }
    co_return co_await send_other(*reader, head);
}

bool partial_reply::fits(const cache::fetched_head& head) const {
    const bool exact = !head.length || *head.length == plan_.gap.size();
    return exact && cache::fills_gap(plan_,
                                     kept_->parts()->total,
                                     head.status,
                                     cache::validating_lines_of(head),
                                     wall_now());
}

// What came does not fit what is held.
awaitable<ended_or_next> partial_reply::send_other(cache::fetch_reader& other,
                                                   cache::head_ptr head) {
    if (head->status == 206 || head->status == 304 || head->status == 416) {
        // An answer to our Range, not to the client's request: that is asked now.
        other.leave();
        x_.stored = {};
        co_return answers::fetched{.anew = true, .replaces = true};
    }
    const bool storable = head->verdict == http::storability::storable;
    x_.book.how = storable ? outcome::miss : outcome::pass;
    http::cache_status how;
    how.forward = x_.verdict.forward;
    how.forward_status = head->status;
    how.stored = is_stored(x_, *head, *other.source());
    how.detail = how.stored ? std::string_view{} : head->detail;
    x_.book.reason = how.detail;
    co_return co_await send_fetched(x_, other, head, how);
}

// RFC 9111 3.4: the reply's fields are those of both, the newer's first.
cache::stored_ptr partial_reply::updated_by(const cache::fetched_head& head) const {
    const auto& now = *x_.settings;
    const auto& freshness = thread::freshness_for(now, x_.asked.url);
    const cache::combining_rules rules{
        now.options.memory.largest(),
        now.response_limits.bytes,
        now.response_limits.fields,
        http::is_personal(x_.asked.head->fields, {}) ? freshness.for_one_client() : freshness,
        now.options.targeted};
    const auto both = cache::updated_by(*kept_, lines_of(head), head.freshness, rules);
    return both ? cache::stored_response::make(*both) : kept_;
}

awaitable<ended_or_next> partial_reply::send_around(cache::fetch_reader& gap,
                                                    cache::head_ptr head) {
    http::cache_status how;
    how.forward = x_.verdict.forward;
    how.forward_status = head->status;
    how.stored = is_stored(x_, *head, *gap.source());
    x_.sending = updated_by(*head);
    stored_pieces made{x_, *x_.sending};
    made.compose_head(
        plan_.ranged ? std::optional{plan_.wanted} : std::nullopt, resident_now(), how);
    if (plan_.wanted.first < plan_.gap.first) {
        made.compose_bytes({plan_.wanted.first, plan_.gap.first - 1});
    }
    // What is held goes out while the gap comes.
    auto sent = co_await x_.out.send();
    if (sent != ended::keep) {
        co_return sent;
    }
    body_rules rules;
    rules.left = plan_.gap.size();
    const auto came = co_await relay_body(x_, gap, rules);
    switch (came) {
    case relayed::whole: break;
    case relayed::gone: co_return ended::gone;
    case relayed::too_long: co_return x_.out.break_off(outcome::cut_short, "part-too-long");
    case relayed::too_short: co_return x_.out.break_off(outcome::cut_short, "part-too-short");
    case relayed::failed: {
        const auto& why = x_.memory.report.why;
        x_.book.error = why.detail;
        co_return x_.out.break_off(outcome::cut_short, facts_of(why.code).name);
    }
    case relayed::fell_out:
    case relayed::out_of_order: co_return x_.out.break_off(outcome::cut_short, "internal");
    }
    if (plan_.gap.last < plan_.wanted.last) {
        stored_pieces behind{x_, *kept_};
        behind.compose_bytes({plan_.gap.last + 1, plan_.wanted.last});
        sent = co_await x_.out.send();
        if (sent != ended::keep) {
            co_return sent;
        }
    }
    co_return x_.out.end();
}

}  // namespace reprise::proxy::serve
