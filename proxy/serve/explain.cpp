#include "proxy/serve/explain.hpp"

#include "proxy/cache/verdict.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/http/query.hpp"
#include "proxy/net/address.hpp"
#include "proxy/net/hosts.hpp"
#include "proxy/peer/resource.hpp"
#include "proxy/serve/decide.hpp"
#include "proxy/serve/interception.hpp"
#include "proxy/serve/purge.hpp"
#include "proxy/serve/request.hpp"
#include "proxy/serve/what_is_known.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

// The query is made into a request's head, which goes through the same functions as a client's.
// What they decide is told as JSON; where only the network or the disk could say more, that is
// told.

namespace reprise::proxy::serve {

namespace {

using boost::beast::http::verb;
using nlohmann::json;

explanation say(unsigned status, const json& what) {
    return {status, what.dump(2, ' ', false, json::error_handler_t::replace) + "\n"};
}

explanation refuse(const std::string& why) {
    return say(400, json{{"error", why}});
}

struct asked_for {
    std::string head;  ///< in wire form
    std::size_t listener = 0;
};

// The query as a request's head, or nothing, and why.
std::optional<asked_for> head_of(std::string_view query, std::size_t listeners, std::string& why) {
    const auto parameters = http::parse_query(query);
    if (!parameters) {
        why = "the query cannot be read";
        return std::nullopt;
    }
    if (const auto twice = http::named_twice(*parameters, {"url", "method", "listener"});
        !twice.empty()) {
        why = std::string{twice} + " is there twice";
        return std::nullopt;
    }
    asked_for out;
    std::string method = "GET", url, lines;
    bool has_host = false;
    for (const auto& one : *parameters) {
        if (one.name == "url") {
            url = one.value;
        } else if (one.name == "method") {
            method = one.value;
        } else if (one.name == "header") {
            const auto name = std::string_view{one.value}.substr(0, one.value.find(':'));
            has_host = has_host || http::iequals(name, "host");
            lines.append(one.value).append("\r\n");
        } else if (one.name == "listener") {
            const auto* end = one.value.data() + one.value.size();
            const auto read = std::from_chars(one.value.data(), end, out.listener);
            if (read.ec != std::errc{} || read.ptr != end || out.listener >= listeners) {
                why = "listener is a place in the settings' list, from 0";
                return std::nullopt;
            }
        } else {
            why = "not understood: " + one.name + "; this takes url, method, header, listener";
            return std::nullopt;
        }
    }
    if (url.empty()) {
        why = "url is missing";
        return std::nullopt;
    }
    out.head = method + " " + url + " HTTP/1.1\r\n";
    if (!has_host) {
        const auto slashes = url.find("://");
        const auto host = slashes == std::string::npos ? 0 : slashes + 3;
        const auto end = std::min(url.find_first_of("/?", host), url.size());
        out.head.append("Host: ").append(url, host, end - host).append("\r\n");
    }
    out.head.append(lines).append("\r\n");
    return out;
}

json failed(const failure& why) {
    const auto& facts = facts_of(why.code);
    json out{{"ruling", "refused"},
             {"rule", facts.name},
             {"section", nullptr},
             {"outcome", to_string(facts.counts_as)},
             {"status", facts.status},
             {"why", facts.sentence},
             {"cache_status", nullptr},
             {"fwd", nullptr}};
    if (!facts.setting.empty()) {
        out["setting"] = facts.setting;
    }
    if (!why.detail.empty()) {
        out["detail"] = why.detail;
    }
    return out;
}

json answered_here(outcome how, std::string_view rule, const char* section) {
    return {{"ruling", to_string(how)},
            {"rule", rule},
            {"section", section != nullptr ? json(section) : json()},
            {"outcome", to_string(how)},
            {"cache_status", nullptr},
            {"fwd", nullptr}};
}

std::string status_text(std::string_view name, const http::cache_status& how) {
    std::string text;
    http::append_cache_status(text, name, how);
    return text;
}

json judged(std::string_view name,
            const cache::verdict& verdict,
            const cache::lookup_result& kept,
            const std::optional<failure>& stands_against) {
    json out{{"ruling", cache::to_string(verdict.what)},
             {"rule", cache::to_string(verdict.why)},
             {"section", cache::section_of(verdict.why)},
             {"outcome", nullptr},
             {"cache_status", nullptr},
             {"fwd", nullptr}};
    if (kept.response) {
        out["age"] = verdict.reuse.age.count();
        out["ttl"] = verdict.reuse.ttl.count();
    }
    if (verdict.answers()) {
        const bool fresh = verdict.what == cache::ruling::hit;
        out["outcome"] = to_string(fresh ? outcome::hit : outcome::stale);
        out["cache_status"] = status_text(name, cache::status_of(verdict, *kept.response));
        return out;
    }
    const bool unavailable = verdict.what == cache::ruling::unavailable;
    if (unavailable || stands_against) {
        const auto against = unavailable ? failure{failure_code::only_if_cached_miss, ""}
                                         : *stands_against;
        auto refused = failed(against);
        refused["refused"] = refused.at("rule");
        if (unavailable) {
            refused["ruling"] = out.at("ruling");
            refused["rule"] = out.at("rule");
            refused["section"] = "RFC 9111 5.2.1.7";
        }
        http::cache_status how;
        how.forward = verdict.forward;
        how.detail = facts_of(against.code).name;
        refused["cache_status"] = status_text(name, how);
        out.update(refused);
    }
    out["fwd"] = http::to_string(verdict.forward);
    return out;
}

// The addresses that this machine gives a host by itself: numeric, the hosts file's, localhost's.
// None: name servers are asked, and what they say is judged then.
std::vector<asio::ip::address> addresses_of(const std::string& host,
                                            const config::dns_options& options) {
    if (const auto numeric = net::parse_numeric_host(host)) {
        return {*numeric};
    }
    net::hosts_file hosts{options.hosts_file};
    if (const auto* listed = hosts.find(host, steady_now())) {
        return *listed;
    }
    if (host == "localhost" || host.ends_with(".localhost")) {
        return {asio::ip::address_v6::loopback(), asio::ip::address_v4::loopback()};
    }
    return {};
}

// As dial judges where it would connect to.
std::optional<failure> judge_host(const thread::settings& now_settings, const request& asked) {
    if (asked.accelerator) {
        return std::nullopt;
    }
    auto host = http::connect_host(asked.target);
    if (host.ends_with('.')) {
        host.pop_back();
    }
    std::optional<failure> refused;
    for (const auto& address : addresses_of(host, now_settings.options.dns)) {
        const auto verdict = now_settings.guard->check(host, address, asked.target.port);
        if (verdict == net::destination_verdict::allowed) {
            return std::nullopt;
        }
        refused = net::refusal_of({address, asked.target.port}, verdict);
    }
    return refused;
}

// The disk may have what memory lacks for this request: an exchange reads there first.
json told_by_disk() {
    return {{"ruling", "disk"},
            {"rule", "on-disk"},
            {"section", "RFC 9111 4"},
            {"why", "the disk has something for this URL, and is read before anybody is asked"},
            {"outcome", nullptr},
            {"cache_status", nullptr},
            {"fwd", nullptr}};
}

json refused_or(const std::optional<failure>& why, json otherwise) {
    return why ? failed(*why) : std::move(otherwise);
}

// What is decided whatever is stored. None: it hangs on what is stored, or on an origin's answer. A
// kind of answer that is missing here does not compile.
struct told_at_once {
    using told = std::optional<json>;
    const thread::settings& now_settings;
    const request& asked;

    told operator()(const answers::refused& what) const { return failed(what.why); }
    told operator()(const answers::tunnel&) const {
        return refused_or(judge_host(now_settings, asked),
                          answered_here(outcome::tunnel, "method", "RFC 9110 9.3.6"));
    }
    told operator()(const answers::opened&) const { return (*this)(answers::tunnel{}); }
    told operator()(const answers::local& what) const {
        return answered_here(
            outcome::local, "method", what.type.empty() ? "RFC 9110 9.3.7" : "RFC 9110 9.3.8");
    }
    told operator()(const answers::purge&) const {
        if (now_settings.options.access.purge_clients.empty()) {
            return failed(failure{failure_code::purge_refused, "nobody may"});
        }
        const auto read = read_purge_request(asked.url, asked.head->fields);
        return !read.wrong.empty() ? failed(failure{failure_code::bad_request, read.wrong})
                                   : answered_here(outcome::local, "method", nullptr);
    }
    told operator()(const answers::for_peer&) const {
        return answered_here(outcome::local, "for-peers", nullptr);
    }
    told operator()(const answers::under_way&) const { return std::nullopt; }
    told operator()(const answers::of_members&) const { return std::nullopt; }
    told operator()(const answers::passed&) const { return std::nullopt; }
    told operator()(const answers::stored&) const { return std::nullopt; }
    told operator()(const answers::stand_in&) const { return std::nullopt; }
    told operator()(const answers::partial&) const { return std::nullopt; }
    told operator()(const answers::fetched&) const { return std::nullopt; }
    told operator()(const answers::upgraded&) const { return std::nullopt; }
    told operator()(const answers::unverified&) const { return std::nullopt; }
    told operator()(const answers::from_disk&) const { return std::nullopt; }
    told operator()(const answers::body_on_disk&) const { return std::nullopt; }
    told operator()(const answers::composed&) const { return std::nullopt; }
};

// What becomes of a CONNECT to this host, of one of intercept.clients.
json opening_of(const thread::settings& now,
                const http::target& target,
                const net::refusals& known) {
    const auto host = http::connect_host(target);
    auto why = why_passed_on(now, target);
    if (why.empty() && known.has_host(host, target.port, steady_now())) {
        why = "host-refused";
    }
    json entry;
    if (why.empty()) {
        entry = entry_for(now.options.intercept->hosts, host);
    } else if (why == "except") {
        entry = entry_for(now.options.intercept->except, host);
    }
    return {{"would", why.empty()},
            {"why", why.empty() ? json{} : json(why)},
            {"by", std::move(entry)}};
}

// What an answer would be refused for that nobody knows here: who asks, and how. As identify() asks it.
json assumed_of(const config::access_options& access, const config::listener& listener) {
    auto out = json::array();
    if (access.wants_users() && listener.mode == config::listener_mode::forward) {
        out.push_back("the client says who it is, by a password or token that holds (else 407)");
        if (!listener.tls && !access.plaintext_passwords) {
            out.push_back("it asks from this machine, where nobody can read that (else 403)");
        }
    }
    out.push_back("the client's address is in access.clients (else 403)");
    return out;
}

}  // namespace

explanation explain(const thread::common_state& common,
                    const thread::settings& now_settings,
                    const peer::peer_book* book,
                    std::string_view query,
                    wall_time now) {
    const auto& options = now_settings.options;
    std::string why;
    const auto described = head_of(query, options.listeners.size(), why);
    if (!described) {
        return refuse(why);
    }
    const auto& listener = options.listeners[described->listener];
    json out;
    out["listener"] = described->listener;
    out["assumes"] = assumed_of(options.access, listener);
    http::request_head head;
    const auto parsed = http::parse_request_head(
        described->head, head, now_settings.request_limits);
    if (parsed.state != http::head_state::done) {
        out["verdict"] = failed(failure{parsed.code, parsed.why});
        return say(200, out);
    }
    out["method"] = head.method_text;
    out["url"] = head.target;
    if (common.peers && listener.mode == config::listener_mode::forward &&
        head.method != verb::connect && peer::resource_at(head.target) != peer::resource::none) {
        out["verdict"] = answered_here(outcome::local, "for-peers", nullptr);
        return say(200, out);
    }
    std::string scratch;
    auto asked = read_request(head,
                              {listener, options.access, true, nullptr, listener.tls.has_value()},
                              common.admission.secret(),
                              scratch);
    ignore_reload(asked, now_settings);
    if (asked.refused) {
        out["verdict"] = failed(*asked.refused);
        return say(200, out);
    }
    if (listener.mode == config::listener_mode::forward &&
        (asked.target.secure || head.method == verb::connect)) {
        out["opened"] = opening_of(now_settings, asked.target, common.refusals);
    }
    const auto known = decide(asked, now_settings, common.pseudonym);
    if (known && known->why.why != cache::rule::method) {
        const told_at_once tell{now_settings, asked};
        if (auto told = std::visit(tell, known->what)) {
            out["verdict"] = std::move(*told);
            return say(200, out);
        }
    }
    add_what_is_known(out, common, now_settings, listener, book, asked, now);
    const auto& key = asked.key;

    cache::lookup_result kept;
    cache::verdict verdict;
    if (known) {
        verdict = known->why;
    } else {
        kept = common.store.peek(key, asked.url, head.fields);
        verdict = cache::judge(kept, asked.facts, head.fields, now);
    }
    const auto* disk = common.store.disk();
    const bool on_disk = disk != nullptr && disk->may_hold(key);
    out["on_disk"] = on_disk;
    if (on_disk && !known && kept.what != cache::lookup::present) {
        out["verdict"] = told_by_disk();
        return say(200, out);
    }
    auto against = judge_destination(now_settings, asked, common.pseudonym);
    if (!against && known) {
        if (const auto* refused = std::get_if<answers::refused>(&known->what)) {
            against = refused->why;
        }
    }
    if (!against) {
        against = judge_host(now_settings, asked);
    }
    auto& told = out["verdict"] = judged(
        common.cache_name, verdict, kept, verdict.answers() ? std::nullopt : against);
    if (verdict.why == cache::rule::request_no_cache &&
        http::find(head.fields, http::field_id::cache_control) == nullptr) {
        told["section"] = "RFC 9111 5.4";  // it said so by Pragma
    }
    return say(200, out);
}

}  // namespace reprise::proxy::serve
