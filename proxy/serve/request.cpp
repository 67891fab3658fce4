#include "proxy/serve/request.hpp"

#include "proxy/http/forwarding.hpp"

#include <algorithm>

namespace reprise::proxy::serve {

using boost::beast::http::verb;
using http::field_id;

bool request::is_safe() const noexcept {
    switch (head->method) {
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

bool request::waits_for_continue() const noexcept {
    return http::has_token(head->fields, field_id::expect, "100-continue");
}

namespace {

// What is asked for, and of whom: an accelerator's target is given its authority.
attempt<http::target> read_target(const http::request_head& head,
                                  const config::listener& listener) {
    const bool accelerator = listener.mode == config::listener_mode::accelerator;
    const bool secure = accelerator && listener.tls.has_value();
    const auto forms = secure        ? http::secure_accelerator_forms
                       : accelerator ? http::accelerator_forms
                                     : http::forward_forms;
    auto target = http::parse_target(head.method, head.target, forms);
    if (!target || !accelerator) {
        return target;
    }
    if (target->form != http::target_form::absolute) {
        target->secure = secure;
        const auto* host = http::find(head.fields, field_id::host);
        const auto authority = host != nullptr
                                   ? host->value
                                   : std::string_view{listener.upstream}.substr(7);  // "http://"
        return http::with_authority(*target, authority);
    }
    target->form = http::target_form::origin;
    target->normal = false;
    if (secure && !target->secure && target->port == 80) {
        target->port = 443;  // what is asked over TLS is https, whatever it is called
    }
    target->secure = secure;
    return target;
}

}  // namespace

request read_request(http::request_head& head,
                     const config::listener& listener,
                     const filter::hash_secret& secret,
                     std::string& scratch) {
    request out;
    out.head = &head;
    out.persistent = http::keep_alive(head.version, head.fields);  // before Connection is taken out
    const bool upgrades = http::asks_websocket(head);
    out.last = upgrades || head.method == verb::connect;
    const auto framing = http::request_framing(head);
    if (!framing) {
        out.refused = framing.error();
        return out;
    }
    out.framed = true;
    out.body = *framing;
    if (out.body.kind == http::body_kind::length && out.body.length == 0 &&
        (head.method == verb::get || head.method == verb::head)) {
        out.body.kind = http::body_kind::none;  // says nothing, and would keep it from the store
    }
    out.accelerator = listener.mode == config::listener_mode::accelerator;
    const auto target = read_target(head, listener);
    if (!target) {
        out.refused = target.error();
        return out;
    }
    out.target = *target;
    const auto continues = http::expects_continue(head, out.body);
    if (!continues) {
        out.refused = continues.error();
        return out;
    }
    // A body would have to end before the other protocol begins: the upgrade is not asked for then.
    out.websocket = upgrades && out.body.kind == http::body_kind::none;
    http::strip_hop_by_hop(head.fields);
    if (out.accelerator) {
        http::strip_scheme_claims(head.fields);
    }
    out.facts = cache::read_request_facts(
        head.method == verb::get, head.method == verb::head, head.fields);
    out.url = key_text(out.target, listener, scratch);
    out.key = filter::hash_of(out.url, secret);
    return out;
}

request moved_to(const fetch::request_copy& copy, std::string_view bytes, const request& from) {
    const auto moved = [&](std::string_view view) {
        const bool inside = view.data() >= bytes.data() &&
                            view.data() < bytes.data() + bytes.size();
        return inside
                   ? std::string_view{copy.bytes.data() + (view.data() - bytes.data()), view.size()}
                   : view;
    };
    auto to = from;
    to.head = &copy.head;
    to.target.raw = moved(from.target.raw);
    to.target.host = moved(from.target.host);
    to.target.path_and_query = moved(from.target.path_and_query);
    to.url = moved(from.url);
    return to;
}

std::string_view key_text(const http::target& target,
                          const config::listener& listener,
                          std::string& scratch) {
    if (target.normal) {
        return target.raw;
    }
    scratch.clear();
    http::append_key(scratch, target);
    if (listener.mode == config::listener_mode::accelerator) {
        // A space stands in no target, so this can be no other listener's key.
        scratch.append(" ").append(listener.upstream);
    }
    return scratch;
}

bool denies_host(const thread::settings& now, const http::target& target) {
    auto host = http::connect_host(target);
    if (const auto literal = net::read_numeric_host(host)) {
        return now.guard->check(host, *literal, target.port) == net::destination_verdict::denied;
    }
    // A name says nothing of addresses: only rules that name hosts are asked.
    if (host.ends_with('.')) {
        host.pop_back();
    }
    const auto& rules = now.options.access.deny_destinations;
    return std::any_of(rules.begin(), rules.end(), [&](const config::destination& rule) {
        const std::string_view named{rule.host};
        const bool port = !rule.port || *rule.port == target.port;
        const bool below = named.starts_with("*.") && host.size() > named.size() - 1 &&
                           host.ends_with(named.substr(1));
        return port && !named.empty() && (named == host || below);
    });
}

std::optional<failure> judge_destination(const thread::settings& now,
                                         const request& asked,
                                         std::string_view pseudonym) {
    if (asked.facts.has_via && http::via_has(asked.head->fields, pseudonym)) {
        return failure{failure_code::loop_detected, "Via names this proxy already"};
    }
    const auto port = asked.target.port;
    if (!asked.accelerator && !net::port_allowed(now.options.access.request_ports, port)) {
        return failure{failure_code::port_refused, "port " + std::to_string(port)};
    }
    if (!asked.accelerator) {
        return net::judge_literal(*now.guard, asked.target.host, port);
    }
    return std::nullopt;
}

std::optional<failure> judge_tunnel(const thread::settings& now,
                                    const request& asked,
                                    std::string_view pseudonym) {
    if (asked.facts.has_via && http::via_has(asked.head->fields, pseudonym)) {
        return failure{failure_code::loop_detected, "Via names this proxy already"};
    }
    const auto port = asked.target.port;
    if (!net::port_allowed(now.options.access.connect_ports, port)) {
        return failure{failure_code::port_refused, "CONNECT to port " + std::to_string(port)};
    }
    return std::nullopt;
}

}  // namespace reprise::proxy::serve
