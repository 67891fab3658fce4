#include "proxy/cache/partial_response.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/serve/exchange.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

// A request that stored parts answer but for a gap: the gap alone is fetched, under If-Range, and
// goes out between what is held before and behind it (RFC 9111 3.4).
//
// Nothing goes out before the origin's head is here. That may be the gap, which confirms what is
// held: then what is held before it, the gap as it comes, and what is held behind it. Or it may be
// another representation, all of it, or an error: that answer, or the answer to the client's own
// request, is the client's, whole. Sending what is held at once would save the origin's delay and
// leave nothing to say but half an answer whenever the origin does not go along, for as long as the
// part is fresh. A gap that breaks off in the middle does break the connection off, never ended as
// if complete.

namespace reprise::proxy::serve {

namespace {

using news = cache::fetch_reader::news;

constexpr std::size_t batch = 128u << 10;  // of a body, handed to the kernel at once

}  // namespace

awaitable<bool> exchange::complete_parts() {
    const auto kept = stored_.response;
    const auto plan = verdict_.part;  // its validator is a view into kept's head
    order_ = make_order();
    order_->may_store = facts_.is_get && !facts_.asked.no_store;
    order_->replaces = true;
    order_->gap_range = "bytes=" + std::to_string(plan.gap.first) + "-" +
                        (plan.open ? "" : std::to_string(plan.gap.last));
    order_->gap_validator = plan.validator;
    order_->into = std::make_shared<cache::fetch>(settings_->fetches);
    bool head_known = false;
    const auto reader = cache::fetch::join(order_->into, s_.arrived.handle(), head_known);
    fetch::start_producer(w_, order_);

    ledger_.how = outcome::miss;
    ledger_.reason = "partial";
    auto& report = s_.report;
    for (;;) {
        reader->next(report, batch);
        switch (report.what) {
        case news::nothing: {
            const bool more = co_await wait_for_news();
            if (!more) {
                co_return break_off(outcome::client_gone, ledger_.reason);
            }
            continue;
        }
        case news::interim: continue;  // of a request that is ours (RFC 9110 15.2)
        case news::failed: {
            const auto why = std::move(report.why);
            const auto after = answer_failed_fetch(why);
            co_return co_await finish_composed(after);
        }
        case news::head: break;
        case news::data:
        case news::end:
        case news::fell_out:
        case news::validated:
        case news::upgraded: co_return break_off(outcome::error, "internal");  // the head is first
        }
        break;
    }
    const auto head = report.head;
    ledger_.origin = head->origin;
    ledger_.origin_time = head->origin_time;
    const auto lines = lines_of(*head);
    const auto total = kept->parts->total;
    const bool exact = !head->length || *head->length == plan.gap.size();
    if (exact && cache::fills_gap(plan, total, head->status, lines, wall_now())) {
        co_return co_await relay_gap(*reader, kept, head);
    }
    if (cache::ends_parts(plan, total, head->status, lines, wall_now())) {
        w_.common.store.drop(key_, url_, kept);
    }
    co_return co_await serve_other(*reader, kept, head);
}

// What came does not fit what is held.
awaitable<bool> exchange::serve_other(cache::fetch_reader& reader,
                                      cache::stored_ptr kept,
                                      cache::head_ptr head) {
    if (head->status == 206 || head->status == 304 || head->status == 416) {
        // An answer to our Range, not to the client's request: that is asked now.
        reader.leave();
        order_ = make_order();
        order_->may_store = facts_.is_get && !facts_.asked.no_store;
        order_->replaces = true;
        order_->own_range = facts_.has_range;
        order_->own_conditions = facts_.has_conditions;
        stored_ = {};
        kept.reset();
        co_return co_await fetch_alone();
    }
    const bool storable = head->verdict == http::storability::storable;
    ledger_.how = storable ? outcome::miss : outcome::pass;
    http::cache_status how;
    how.forward = verdict_.forward;
    how.forward_status = head->status;
    how.stored = is_stored(*head, *reader.source());
    how.detail = how.stored ? std::string_view{} : head->detail;
    ledger_.reason = how.detail;
    compose_head(*head, how);
    co_return co_await relay_body(reader, head);
}

// Head, and everything held before the gap.
void exchange::compose_completed(const cache::stored_response& headed,
                                 const http::cache_status& how) {
    const auto& plan = verdict_.part;
    compose_reply_fields(headed, resident_now(), how);
    if (plan.ranged) {
        compose_part_head(headed, plan.wanted);
    } else {
        ledger_.status = headed.status;
        s_.parts.emplace_back(headed.head.data(), headed.head.size());
        s_.parts.emplace_back(s_.tail.data(), s_.tail.size());
    }
    if (plan.wanted.first < plan.gap.first) {
        compose_bytes(headed, {plan.wanted.first, plan.gap.first - 1});
    }
}

// RFC 9111 3.4: the reply's fields are those of both, the newer's first.
cache::stored_ptr exchange::updated_by(const cache::stored_ptr& kept,
                                       const cache::fetched_head& head) const {
    const auto& now = *settings_;
    const cache::combining_rules rules{now.options.memory.max_object,
                                       now.response_limits.bytes,
                                       now.response_limits.fields,
                                       now.freshness,
                                       now.options.targeted};
    cache::stored_ptr both = cache::updated_by(*kept, lines_of(head), head.freshness, rules);
    return both ? both : kept;
}

awaitable<bool> exchange::relay_gap(cache::fetch_reader& reader,
                                    cache::stored_ptr kept,
                                    cache::head_ptr head) {
    const auto plan = verdict_.part;
    http::cache_status how;
    how.forward = verdict_.forward;
    how.forward_status = head->status;
    how.stored = is_stored(*head, *reader.source());
    sending_ = updated_by(kept, *head);
    compose_completed(*sending_, how);
    auto& report = s_.report;
    auto left = plan.gap.size();
    for (bool over = false; !over;) {
        if (!s_.parts.empty()) {
            const bool sent = co_await send_rest();
            if (!sent) {
                co_return false;
            }
        }
        reader.next(report, batch);
        switch (report.what) {
        case news::nothing: {
            const bool more = co_await wait_for_news();
            if (!more) {
                co_return break_off(outcome::client_gone, ledger_.reason);
            }
            break;
        }
        case news::data: {
            std::size_t size = 0;
            for (const auto& slice : report.slices) {
                size += slice.size;
            }
            if (size > left) {
                co_return break_off(outcome::cut_short, "part-too-long");
            }
            left -= size;
            ledger_.note_body(body_source::fetch, size);
            for (const auto& slice : report.slices) {
                s_.parts.emplace_back(slice.view().data(), slice.size);
            }
            break;
        }
        case news::end: over = true; break;
        case news::failed: {
            ledger_.error = report.why.detail;
            co_return break_off(outcome::cut_short, facts_of(report.why.code).name);
        }
        case news::interim: break;  // too late for it
        case news::head:
        case news::fell_out:
        case news::validated:
        case news::upgraded: co_return break_off(outcome::cut_short, "internal");
        }
    }
    if (left != 0) {
        co_return break_off(outcome::cut_short, "part-too-short");
    }
    if (plan.gap.last < plan.wanted.last) {
        compose_bytes(*kept, {plan.gap.last + 1, plan.wanted.last});
        const bool sent = co_await send_rest();
        if (!sent) {
            co_return false;
        }
    }
    end_reply();
    co_return true;
}

// The client must not take what it has for the whole of it.
bool exchange::break_off(outcome how, std::string_view reason) {
    keep_ = false;
    s_.client.break_off();
    s_.parts.clear();
    ledger_.how = how;
    ledger_.reason = reason;
    return false;
}

}  // namespace reprise::proxy::serve
