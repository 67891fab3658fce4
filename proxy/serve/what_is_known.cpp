#include "proxy/serve/what_is_known.hpp"

#include "config/url.hpp"
#include "proxy/cache/admission/admission_gate.hpp"
#include "proxy/fetch/admit.hpp"
#include "proxy/http/date.hpp"
#include "proxy/http/storability.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

// Each member of the page is made by a function of its own, from what memory holds. To look is no
// request: nothing here counts as a sight, as a use or as a question to a sibling.

namespace reprise::proxy::serve {

namespace {

using nlohmann::json;

std::string date_of(wall_time when) {
    const auto text = http::format_date(when);
    return {text.data(), text.size()};
}

std::string hash_text(const filter::key_hash& key) {
    char digits[33];
    std::snprintf(digits,
                  sizeof digits,
                  "%016llx%016llx",
                  static_cast<unsigned long long>(key.high),
                  static_cast<unsigned long long>(key.low));
    return digits;
}

json directives_of(const http::response_directives& from) {
    json out = json::array();
    const auto flag = [&](bool is, const char* name) {
        if (is) {
            out.push_back(name);
        }
    };
    const auto time = [&](const std::optional<http::seconds>& value, const char* name) {
        if (value) {
            out.push_back(name + ("=" + std::to_string(value->count())));
        }
    };
    time(from.max_age, "max-age");
    time(from.s_maxage, "s-maxage");
    time(from.stale_while_revalidate, "stale-while-revalidate");
    time(from.stale_if_error, "stale-if-error");
    flag(from.no_store, "no-store");
    flag(from.no_cache, "no-cache");
    flag(from.private_, "private");
    flag(from.public_, "public");
    flag(from.must_revalidate, "must-revalidate");
    flag(from.proxy_revalidate, "proxy-revalidate");
    flag(from.must_understand, "must-understand");
    flag(from.immutable, "immutable");
    return out;
}

// Where a rule's at_least is the lifetime, that is told by the rule's name: to the store it is as
// much a guess of this cache as the heuristic.
json lifetime_from(const http::freshness_facts& facts, const json& rule) {
    if (facts.source == http::lifetime_source::heuristic && rule.is_object() &&
        rule.at("at_least") == facts.lifetime.count()) {
        return rule.at("name").get<std::string>() + ".at_least";
    }
    return http::to_string(facts.source);
}

json freshness_of(const http::freshness_facts& facts, const json& rule, wall_time now) {
    const auto age = http::current_age(facts, now);
    return {{"arrived", date_of(facts.response_time)},
            {"initial_age", facts.initial_age.count()},
            {"resident_time", (age - facts.initial_age).count()},
            {"age", age.count()},
            {"lifetime", facts.lifetime.count()},
            {"lifetime_from", lifetime_from(facts, rule)},
            {"ttl", (facts.lifetime - age).count()}};
}

json variant_of(const cache::stored_response& stored,
                http::field_list asked,
                const json& rule,
                wall_time now) {
    json out;
    out["status"] = stored.status();
    out["selected"] = http::matches(stored.vary(), stored.selecting(), asked);
    const auto names = stored.vary().names;
    out["vary"] = names;
    const bool secret = names.find("cookie") != std::string_view::npos ||
                        names.find("authorization") != std::string_view::npos;
    out["selecting"] = secret ? std::string_view{"(not shown)"} : stored.selecting();
    out["directives"] = directives_of(stored.directives());
    out["freshness"] = freshness_of(stored.freshness(), rule, now);
    out["purged_softly"] = stored.purged_softly();
    out["tags"] = stored.tags().size();
    out["memory_bytes"] = stored.footprint();
    if (stored.parts()) {
        out["body_bytes"] = stored.parts()->bytes();
        out["complete_length"] = stored.parts()->knows_total() ? json(stored.parts()->total)
                                                               : json();
        auto& parts = out["parts"] = json::array();
        for (const auto& part : stored.parts()->held) {
            parts.push_back(std::to_string(part.first) + "-" + std::to_string(part.end() - 1));
        }
    } else {
        out["body_bytes"] = stored.size();
    }
    return out;
}

json admission_of(const thread::common_state& common,
                  const config::options& options,
                  const config::listener& listener,
                  const request& asked) {
    const auto choice = cache::choice_for(options.admission, listener.admission, asked.url);
    std::optional<peer::seen_elsewhere::reader> seen;
    if (common.peers && asks_peers(asked, options)) {
        seen.emplace(common.peers->seen_elsewhere());
    }
    const auto ruling = fetch::rule_on(
        common, seen ? &*seen : nullptr, {asked.key, asked.url, choice, seen.has_value()});
    const auto seen_here = common.admission.peek(asked.key, choice).seen_before;
    json out{{"policy", to_string(ruling.policy)},
             {"seen_before", seen_here},
             {"seen_by_siblings", ruling.seen_before > seen_here},
             {"counts_to", common.admission.counts_to()},
             {"admits", ruling.admitted},
             {"rule", nullptr}};
    if (ruling.rule < options.admission.rules.size()) {
        out["rule"] = {{"index", ruling.rule}, {"url", options.admission.rules[ruling.rule].url}};
    }
    return out;
}

// The rule that a response to this request would come under if it came now.
json freshness_rule_of(const thread::settings& now, std::string_view url) {
    const auto* rule = thread::freshness_rule_for(now, url);
    if (rule == nullptr) {
        return nullptr;
    }
    const auto index = static_cast<std::size_t>(rule - now.freshness_rules.data());
    json out{{"index", index},
             {"name", "freshness.rules[" + std::to_string(index) + "]"},
             {"url", rule->url},
             {"at_least", rule->rules.at_least.count()},
             {"at_most", nullptr},
             {"ignores_reload", rule->ignores_reload},
             {"overrides", json::array()}};
    if (rule->rules.at_most) {
        out["at_most"] = rule->rules.at_most->count();
    }
    const auto& aside = rule->rules.set_aside;
    const std::pair<bool, const char*> named[]{{aside.expires, "expires"},
                                               {aside.max_age, "max-age"},
                                               {aside.s_maxage, "s-maxage"},
                                               {aside.no_store, "no-store"},
                                               {aside.no_cache, "no-cache"},
                                               {aside.private_, "private"},
                                               {aside.must_revalidate, "must-revalidate"}};
    for (const auto& [is, name] : named) {
        if (is) {
            out["overrides"].push_back(name);
        }
    }
    return out;
}

// A rule that would be for this URL if its port or its scheme were another: that is seldom meant.
void add_near(json& near,
              const std::string& rule,
              const std::string& pattern,
              const request& asked) {
    if (config::matches_pattern(pattern, asked.url)) {
        return;
    }
    auto other = asked.target;
    other.normal = false;  // its key is made anew
    for (const bool secure : {asked.target.secure, !asked.target.secure}) {
        other.secure = secure;
        other.port = config::port_of_pattern(pattern).value_or(other.usual_port());
        std::string key;
        http::append_key(key, other);
        if (!config::matches_pattern(pattern, key)) {
            continue;
        }
        const bool is_port = secure == asked.target.secure;
        near.push_back({{"rule", rule},
                        {"url", pattern},
                        {"but",
                         is_port ? "it is for port " + std::to_string(other.port) +
                                       ", and this URL's is " + std::to_string(asked.target.port)
                                 : std::string{secure ? "it is for https" : "it is for http"}}});
        return;
    }
}

json rules_of(const config::options& options, const request& asked) {
    auto near = json::array();
    for (std::size_t i = 0; i < options.freshness.rules.size(); ++i) {
        add_near(near,
                 "freshness.rules[" + std::to_string(i) + "]",
                 options.freshness.rules[i].url,
                 asked);
    }
    for (std::size_t i = 0; i < options.admission.rules.size(); ++i) {
        add_near(near,
                 "admission.rules[" + std::to_string(i) + "]",
                 options.admission.rules[i].url,
                 asked);
    }
    return {{"freshness", options.freshness.rules.size()},
            {"admission", options.admission.rules.size()},
            {"near", std::move(near)}};
}

// What is known of whether the answer may be stored before it is there; null: nothing. `may` is null
// where it hangs on what the origin allows.
json storing_of(const thread::common_state& common, const request& asked) {
    using http::storability;
    const auto told = [](json may, const char* from, storability why) {
        return json{{"may", std::move(may)},
                    {"from", from},
                    {"reason", http::to_string(why)},
                    {"section", http::section_of(why)},
                    {"says", http::in_words(why)}};
    };
    if (asked.facts.asked.no_store) {
        return told(false, "request", storability::no_store_request);
    }
    if (const auto why = common.uncacheable.why(asked.key, steady_now())) {
        return told(false, "last-answer", *why);
    }
    if (common.uncacheable.was_too_large(asked.key, steady_now())) {
        return {{"may", false},
                {"from", "last-answer"},
                {"reason", "too-large"},
                {"section", nullptr},
                {"says", "it was larger than what is stored"}};
    }
    if (asked.facts.has_authorization) {
        return told(nullptr, "request", storability::authorization);
    }
    if (asked.target.secure && asked.facts.has_cookie) {
        return told(nullptr, "request", storability::cookie);
    }
    return nullptr;
}

// The largest body that is stored at all, and the setting that says so.
json largest_of(const thread::common_state& common, const config::options& options) {
    const auto in_memory = options.memory.largest();
    const auto on_disk = common.store.disk() != nullptr ? options.disk.largest() : 0;
    return {{"bytes", std::max(in_memory, on_disk)},
            {"setting", on_disk > in_memory ? "disk.max_object" : "memory.max_object"}};
}

// Whose digests name it, of those who might be asked, and what there is to say of that.
json siblings_of(const thread::common_state& common,
                 const peer::peer_book* book,
                 const request& asked) {
    const auto nobody = [](const char* why) {
        return json{{"claims", json::array()}, {"why_none_is_asked", why}};
    };
    if (common.peers == nullptr || book == nullptr) {
        return nobody("there are no siblings");
    }
    if (asked.accelerator) {
        return nobody("accelerators' objects are their own");
    }
    const bool secure = asked.target.secure;
    if (secure && !common.peers->secret().has_file()) {
        return nobody("https URLs are asked of siblings under digest.secret_file alone");
    }
    json out{{"claims", common.peers->siblings_with(asked.url, book->asked_for(secure))},
             {"note",
              secure ? "of those behind TLS; one that asking has not paid for may be left out"
                     : "one that asking has not paid for may be left out"}};
    if (book->homes) {
        const auto home = common.peers->home_of(asked.url);
        out["home"] = home.empty() ? json() : json(home);
    }
    return out;
}

}  // namespace

void add_what_is_known(json& out,
                       const thread::common_state& common,
                       const thread::settings& now_settings,
                       const config::listener& listener,
                       const peer::peer_book* book,
                       const request& asked,
                       wall_time now) {
    out["key"] = {{"text", asked.url}, {"hash", hash_text(asked.key)}};
    const auto rule = freshness_rule_of(now_settings, asked.url);
    auto& stored = out["stored"] = json::array();
    for (const auto& one : common.store.variants(asked.key, asked.url)) {
        stored.push_back(variant_of(*one, asked.head->fields, rule, now));
    }
    out["fetch_under_way"] = common.fetches.has(asked.key, asked.url);
    out["storing"] = storing_of(common, asked);
    out["largest"] = largest_of(common, now_settings.options);
    out["admission"] = admission_of(common, now_settings.options, listener, asked);
    out["freshness_rule"] = rule;
    out["rules"] = rules_of(now_settings.options, asked);
    out["siblings"] = siblings_of(common, book, asked);
}

}  // namespace reprise::proxy::serve
