#include "proxy/serve/under_way_reply.hpp"

#include "proxy/serve/fetch_relay.hpp"
#include "proxy/serve/orders.hpp"

#include <utility>

namespace reprise::proxy::serve {

namespace {

// A fetch that serves it no further would be followed by one of its own, which it has not asked for.
bool would_ask_anybody(const ended_or_next& what) {
    const auto* const next = std::get_if<answer>(&what);
    return next != nullptr && std::holds_alternative<answers::fetched>(*next);
}

}  // namespace

awaitable<ended_or_next> under_way_reply::give() {
    const auto reader = x_.w.common.fetches.join_kept(
        x_.asked.key, x_.asked.url, x_.out.wakeup().handle());
    // Where there is no head yet its silence is the origin's, and not to be held against this instance.
    const bool has_head = reader && reader->source()->head();
    const bool may_be_told = x_.asked.waits_behind_102 && x_.out.version == 11;
    if (has_head || (reader && may_be_told)) {
        if (!has_head) {
            const auto said = co_await say_at_work(x_);
            if (said != ended::keep) {
                co_return said;
            }
        }
        x_.w.counts.collapsed_joined.add();
        const auto order = make_order(
            x_);  // nobody carries it out: the relay asks what it would be
        // Whoever asks with only-if-cached judges what it gets as from a store, and so is it judged here.
        fetch_relay relay{x_, *order, fetch_role::joins_late};
        auto out = co_await relay.give(*reader);
        if (out && !would_ask_anybody(*out)) {
            co_return std::move(*out);
        }
        if (!out) {  // one that fell out is counted already
            x_.w.counts.collapsed_released.add();
        }
    }
    if (x_.is_sites_question() &&
        !judge_destination(*x_.settings, x_.asked, x_.w.common.pseudonym)) {
        co_return answers::of_members{};
    }
    co_return answers::refused{failure{failure_code::only_if_cached_miss, ""}};
}

}  // namespace reprise::proxy::serve
