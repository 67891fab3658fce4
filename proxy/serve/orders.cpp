#include "proxy/serve/orders.hpp"

#include "proxy/base/recycled.hpp"

#include <utility>

namespace reprise::proxy::serve {

namespace wanted = fetch::wanted;

namespace {

void send_to_upstream(exchange_state& x, fetch::fetch_order& order) {
    // Checked when the settings were loaded.
    http::target any;
    any.form = http::target_form::origin;
    any.secure = upstream_is_secure(x.listener());
    const auto upstream = http::with_authority(any, upstream_authority(x.listener()));
    order.connect_host = http::connect_host(*upstream);
    order.connect_port = upstream->port;
    order.exempt = true;
    order.secure = any.secure;
    order.told_scheme = x.asked.target.secure ? "https" : "http";
}

// It has been sent what this request would not say, and has not been answered for too long.
bool is_silent_to(exchange_state& x, const cache::fetch& other) {
    const auto sent = other.head() ? std::nullopt : other.asked();
    return sent && sent->at + patience_with_another(x) <= steady_now() &&
           !fetch::would_send(*make_order(x), *sent);
}

}  // namespace

std::shared_ptr<fetch::fetch_order> make_order(exchange_state& x) {
    auto order = std::allocate_shared<fetch::fetch_order>(recycled<fetch::fetch_order>{});
    auto& o = *order;
    o.request = x.copy();
    const auto& asked = x.asked;
    o.now_settings = x.settings;
    o.destination = asked.target;
    if (asked.accelerator) {
        send_to_upstream(x, o);
    } else {
        o.connect_host = http::connect_host(asked.target);
        o.connect_port = asked.target.port;
        o.secure = asked.target.secure;
    }
    o.inside = asked.inside;
    o.handed_on = x.is_handed_on();
    o.owner = asked.owner;
    o.client_address = x.client.address;
    o.charged_to = x.w.share_of(x.client.at);
    o.asked = asked.facts.asked;
    o.key = asked.key;
    o.url = asked.url;
    o.is_get = asked.facts.is_get;
    if (asked.facts.asked.only_if_cached) {
        o.asked_by = peer::asked_by::sibling;  // what it joined asks nobody for it alone
    }
    o.admission = cache::choice_for(
        x.settings->options.admission, x.listener().admission, asked.url);
    if (const auto* rule = thread::freshness_rule_for(*x.settings, asked.url)) {
        o.url_freshness = &rule->rules;
    }
    o.head_is_http10 = asked.head->version == 10;
    o.body_framing = asked.body;
    if (asked.passes()) {
        o.what.emplace<wanted::passed>().websocket = asked.websocket;
    } else if (asked.facts.is_head) {
        o.what = wanted::head{};
    }
    o.retryable = asked.is_safe() && asked.body.kind == http::body_kind::none && !asked.websocket;
    o.may_use_peers = x.w.peers.has_value() && asks_peers(asked, x.settings->options);
    o.may_go_home = o.may_use_peers && o.is_get && !asked.passes() &&
                    !asked.facts.has_authorization && !asked.facts.has_cookie && !o.handed_on;
    return order;
}

void prepare_storing(const exchange_state& x, fetch::fetch_order& order) {
    const auto& facts = x.asked.facts;
    order.may_store = facts.is_get && !facts.asked.no_store;
    if (auto* head = std::get_if<wanted::head>(&order.what);
        head != nullptr && !facts.asked.no_store && !facts.has_authorization &&
        !facts.has_conditions && !facts.has_range) {
        head->described = x.stored.response;
    }
    order.replaces = x.stored.what == cache::lookup::present;
    order.found = order.replaces ? x.stored.response : nullptr;
    if (cache::may_validate(x.stored, facts, wall_now())) {
        order.what = wanted::validating{x.stored.response};
    }
}

void ask_as_the_client_does(const exchange_state& x, fetch::fetch_order& order) {
    order.own_range = x.asked.facts.has_range;
    order.own_conditions = x.asked.facts.has_conditions;
}

std::unique_ptr<cache::fetch_reader> fetch_alone(exchange_state& x,
                                                 const std::shared_ptr<fetch::fetch_order>& order) {
    order->into = cache::fetch::make(x.settings->fetches);
    order->listed = false;
    bool head_known = false;
    auto reader = cache::fetch::join(order->into, x.out.wakeup().handle(), head_known);
    fetch::start_producer(x.w, order);
    return reader;
}

bool came_meanwhile(exchange_state& x, cache::fetch_reader& place) {
    auto& common = x.w.common;
    const auto& asked = x.asked;
    const auto into = place.source();
    leadership leads{x, into};
    const auto now_stored = common.store.peek(asked.key, asked.url, asked.head->fields);
    const bool came = now_stored.what == cache::lookup::present &&
                      now_stored.response != x.stored.response && !now_stored.response->parts() &&
                      http::judge_reuse(now_stored.response->directives(),
                                        now_stored.response->freshness(),
                                        asked.facts.asked,
                                        resident_now())
                              .what == http::reuse::fresh;
    if (came) {
        into->producer_validated(now_stored.response);
        common.fetches.remove(asked.key, into);
    }
    leads.is_over();
    return came;
}

steady_time::duration patience_with_another(const exchange_state& x) {
    constexpr int parts = 4;
    return x.settings->options.timeouts.origin_head / parts;
}

void revalidate_behind(exchange_state& x) {
    auto& common = x.w.common;
    if (judge_destination(*x.settings, x.asked, common.pseudonym)) {
        return;
    }
    const auto other = common.fetches.find(x.asked.key, x.asked.url);
    // Most often, and without the lock that all threads share.
    if (other && !is_silent_to(x, *other)) {
        return;
    }
    // Before it leads: whoever followed it would be left with nothing.
    auto permit = common.unattended.enter(x.w.share_of(x.client.at),
                                          x.settings->fetches.unattended);
    if (!permit) {
        return;
    }
    if (other) {
        common.fetches.remove(x.asked.key, other);
    }
    auto place = common.fetches.join_or_lead(
        x.asked.key, x.asked.url, x.out.wakeup().handle(), x.settings->fetches);
    if (!place.leads || came_meanwhile(x, *place.reader)) {
        return;
    }
    leadership lead{x, place.reader->source()};
    auto order = make_order(x);
    prepare_storing(x, *order);
    order->into = place.reader->source();
    order->listed = true;
    if (auto* validating = std::get_if<wanted::validating>(&order->what)) {
        validating->behind = true;
    } else if (auto* whole = std::get_if<wanted::whole>(&order->what)) {
        whole->behind = x.stored.response;
    }
    order->pending_sights = place.pending_sights;
    order->into->producer_unattended(std::move(permit));
    fetch::start_producer(x.w, std::move(order));
    lead.is_over();
}

leadership::~leadership() {
    if (into_) {
        into_->producer_fail(failure{failure_code::out_of_memory, ""});
        x_.w.common.fetches.remove(x_.asked.key, into_);
    }
}

}  // namespace reprise::proxy::serve
