#include "proxy/serve/request.hpp"

#include "proxy/http/forwarding.hpp"
#include "proxy/peer/homes.hpp"
#include "proxy/peer/pulse.hpp"
#include "proxy/peer/reach.hpp"

#include <algorithm>

// read_request() stops at the first refusal. A method that is acted upon here is taken in its one
// spelling: `purge` would be an unknown one to us, and pass whom PURGE is refused, and there are next
// hops that carry it out (Squid, which takes methods in any case unless relaxed_header_parser is off). What the hop-by-hop fields say (persistence, an
// upgrade, a login, a peer's words) is read before they are taken out; facts and key come behind
// that.

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

// As http://HTTPS/…, where that is not merely a host of this name.
attempt<http::target> read_prefixed(const http::target& asked,
                                    const config::access_options& access) {
    auto meant = http::behind_https_prefix(asked);
    if (meant && !is_listed(access.https_prefix, http::connect_host(*meant), meant->port)) {
        return failure{failure_code::destination_refused,
                       std::string{meant->host} + " is not in access.https_prefix"};
    }
    return meant;
}

// In an opened tunnel: a path of CONNECT's own host, and of no other.
attempt<http::target> read_inside(const http::request_head& head, const opened_host& inside) {
    if (head.method == verb::connect) {
        return failure{failure_code::bad_request, "CONNECT inside a tunnel"};
    }
    auto target = http::parse_target(head.method, head.target, http::inside_forms);
    if (!target) {
        return target;
    }
    target->secure = true;
    const auto* host = http::find(head.fields, field_id::host);
    if (host == nullptr) {
        return failure{failure_code::bad_request, "no Host"};
    }
    auto named = http::with_authority(*target, host->value);
    if (!named) {
        return named;
    }
    if (http::connect_host(*named) != inside.host || named->port != inside.port) {
        return failure{failure_code::misdirected_request,
                       "Host is " + std::string{host->value} + ", the tunnel's " + inside.host +
                           ':' + std::to_string(inside.port)};
    }
    if (named->form == http::target_form::origin) {
        named->form = http::target_form::absolute;
    }
    return named;
}

// What is asked for, and of whom: an accelerator's target is given its authority.
attempt<http::target> read_target(const http::request_head& head, const arrival& how) {
    const auto& listener = how.listener;
    if (how.inside != nullptr) {
        return read_inside(head, *how.inside);
    }
    if (listener.mode == config::listener_mode::forward) {
        auto target = http::parse_target(head.method,
                                         head.target,
                                         how.unseen ? http::secure_forward_forms
                                                    : http::forward_forms);
        const bool prefixed = target && !how.access.https_prefix.empty() &&
                              http::has_https_prefix(*target);
        return prefixed ? read_prefixed(*target, how.access) : target;
    }
    const bool secure = how.encrypted;
    auto target = http::parse_target(head.method,
                                     head.target,
                                     secure ? http::secure_accelerator_forms
                                            : http::accelerator_forms);
    if (!target) {
        return target;
    }
    if (target->form != http::target_form::absolute) {
        target->secure = secure;
        const auto* host = http::find(head.fields, field_id::host);
        return http::with_authority(*target,
                                    host != nullptr ? host->value : upstream_authority(listener));
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

std::string_view upstream_authority(const config::listener& listener) noexcept {
    const std::string_view url{listener.upstream};
    return url.substr(std::min(url.find("//") + 2, url.size()));
}

bool upstream_is_secure(const config::listener& listener) noexcept {
    return listener.upstream.starts_with("https:");
}

request read_request(http::request_head& head,
                     const arrival& how,
                     const filter::hash_secret& secret,
                     std::string& scratch) {
    request out;
    out.head = &head;
    out.persistent = http::keep_alive(head.version, head.fields);  // before Connection is taken out
    const bool upgrades = http::asks_websocket(head);
    const auto miswritten = http::method_in_other_case(head);
    out.last = upgrades || head.method == verb::connect || miswritten == verb::connect;
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
    out.accelerator = how.listener.mode == config::listener_mode::accelerator;
    if (miswritten != verb::unknown) {
        out.refused = failure{failure_code::bad_request,
                              "the method is \"" + std::string{head.method_text} +
                                  "\", and methods have a case (RFC 9110 9.1): " +
                                  std::string{boost::beast::http::to_string(miswritten)}};
        return out;
    }
    const auto target = read_target(head, how);
    if (!target) {
        out.refused = target.error();
        return out;
    }
    out.target = *target;
    out.inside = how.inside != nullptr;
    out.https_prefix = target->secure && !out.accelerator && !out.inside &&
                       http::iequals(head.target.substr(0, 5), "http:");
    const auto continues = http::expects_continue(head, out.body);
    if (!continues) {
        out.refused = continues.error();
        return out;
    }
    // A body would have to end before the other protocol begins: the upgrade is not asked for then.
    out.websocket = upgrades && out.body.kind == http::body_kind::none;
    if (how.access.wants_users()) {
        if (const auto* said = http::find(head.fields, field_id::proxy_authorization)) {
            out.login = said->value;
        }
    }
    if (!out.accelerator && http::find(head.fields, field_id::connection) != nullptr) {
        // Unless the sender says so itself it is what a client of the sender's wrote, and passed
        // it.
        const http::connection_options named{head.fields};
        const auto says = [&](std::string_view name) {
            return named.has(name) && http::find(head.fields, name) != nullptr;
        };
        out.names_home = says(peer::home_field);
        out.names_site = says(peer::site_field);
        out.waits_behind_102 = says(peer::waits_field);
    }
    http::strip_hop_by_hop(head.fields);
    if (out.accelerator) {
        http::strip_url_claims(head.fields);
    }
    out.facts = cache::read_request_facts(
        head.method == verb::get, head.method == verb::head, head.fields);
    out.url = key_text(out.target, how.listener, scratch);
    out.key = filter::hash_of(out.url, secret);
    return out;
}

void ignore_reload(request& asked, const thread::settings& now) noexcept {
    auto& wish = asked.facts.asked;
    const bool reloads = wish.no_cache || wish.max_age == http::seconds{0};
    if (!asked.facts.has_directives || !reloads || now.freshness_rules.empty()) {
        return;
    }
    const auto* rule = thread::freshness_rule_for(now, asked.url);
    if (rule != nullptr && rule->ignores_reload) {
        wish.no_cache = false;
        wish.max_age.reset();
    }
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
    to.login = {};
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

bool is_listed(const std::vector<config::destination>& rules,
               std::string host,
               std::uint16_t port) {
    if (host.ends_with('.')) {
        host.pop_back();
    }
    const auto address = net::read_numeric_host(host);
    return std::any_of(rules.begin(), rules.end(), [&](const config::destination& rule) {
        const std::string_view named{rule.host};
        const bool below = named.starts_with("*.") && host.size() > named.size() - 1 &&
                           host.ends_with(named.substr(1));
        const bool inside = address && rule.net &&
                            net::contains(*rule.net, net::canonical(*address));
        return (!rule.port || *rule.port == port) &&
               (inside || (!named.empty() && (named == host || below)));
    });
}

bool asks_peers(const request& asked, const config::options& options) noexcept {
    return !asked.accelerator && (!asked.websocket || options.peering.never_direct);
}

bool denies_host(const thread::settings& now, const http::target& target) {
    auto host = http::connect_host(target);
    if (const auto literal = net::read_numeric_host(host)) {
        return now.guard->check(host, *literal, target.port) == net::destination_verdict::denied;
    }
    // A name says nothing of addresses: only rules that name hosts are asked.
    return is_listed(now.options.access.deny_destinations, std::move(host), target.port);
}

std::optional<failure> judge_destination(const thread::settings& now,
                                         const request& asked,
                                         std::string_view pseudonym) {
    if (asked.facts.has_via && http::via_has(asked.head->fields, pseudonym)) {
        return failure{failure_code::loop_detected, "Via names this proxy already"};
    }
    const auto port = asked.target.port;
    // What is asked inside an opened tunnel was let in by its CONNECT.
    const auto& access = now.options.access;
    if (!asked.accelerator &&
        !net::port_allowed(asked.inside ? access.connect_ports : access.request_ports, port)) {
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
