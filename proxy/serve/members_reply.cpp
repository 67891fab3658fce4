#include "proxy/serve/members_reply.hpp"

#include "proxy/serve/fetch_relay.hpp"
#include "proxy/serve/orders.hpp"

#include <utility>

namespace reprise::proxy::serve {

awaitable<ended_or_next> members_reply::give() {
    auto& counts = x_.w.counts;
    counts.asked_by_sites.add();
    const auto order = make_order(x_);
    ask_as_the_client_does(x_, *order);
    order->asked_by = peer::asked_by::site;
    order->may_go_home = false;
    order->found = x_.stored.response;
    order->may_ask_siblings = order->may_use_peers && !x_.asked.facts.has_authorization &&
                              !x_.asked.facts.has_cookie;
    const auto reader = fetch_alone(x_, order);
    fetch_relay relay{x_, *order, fetch_role::leads};
    auto out = co_await relay.give(*reader);
    // What is stored here, stale, was not asked for, nor an origin.
    const auto* const next = std::get_if<answer>(&*out);
    if (next != nullptr && !std::holds_alternative<answers::composed>(*next)) {
        co_return answers::refused{failure{failure_code::only_if_cached_miss, ""}};
    }
    // A 304 to the site's own condition is passed on.
    const auto how = x_.book.how;
    if (how == outcome::sibling || (how == outcome::pass && x_.book.status == 304)) {
        counts.sites_answered.add();
    }
    co_return std::move(*out);
}

}  // namespace reprise::proxy::serve
