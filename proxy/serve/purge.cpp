#include "proxy/serve/purge.hpp"

#include "proxy/cache/memory/tags.hpp"
#include "proxy/http/query.hpp"
#include "proxy/http/target.hpp"
#include "proxy/serve/request.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

// The fields of PURGE and the query of /purge are read into the same purge_order. purge() carries
// it out, in the store and then in the table of fetches; carry_out() counts and tells it besides,
// the proxy's other process too.

namespace reprise::proxy::serve {

namespace {

using boost::beast::http::verb;
using cache::purge_mode;
using nlohmann::json;

std::string_view word_for(purge_kind kind) noexcept {
    switch (kind) {
    case purge_kind::url: return "url";
    case purge_kind::prefix: return "prefix";
    case purge_kind::tag: return "tag";
    }
    return "url";
}

read_purge wrong(std::string why) {
    return {{}, std::move(why)};
}

// The key of an absolute URL, and those of the accelerators that would be asked for it by Host. For
// an accelerator a URL with http: means what is asked over TLS too: a purge of a page means the
// page. One with https: means that alone. Both whether the listener has TLS now or not: a reload may
// have changed that, and connections outlive it.
std::string append_keys(std::vector<std::string>& keys,
                        std::string_view url,
                        const config::options& options) {
    const auto parsed = http::parse_target(verb::get, url, http::url_forms);
    if (!parsed) {
        return parsed.error().detail.empty() ? "no http URL" : parsed.error().detail;
    }
    keys.emplace_back();
    http::append_key(keys.back(), *parsed);
    for (const auto& listener : options.listeners) {
        if (listener.mode != config::listener_mode::accelerator) {
            continue;
        }
        for (const bool secure : {true, false}) {
            if (parsed->secure && !secure) {
                continue;
            }
            auto target = *parsed;
            target.form = http::target_form::origin;
            target.normal = false;
            if (secure && target.port == target.usual_port()) {
                target.port = 443;
            }
            target.secure = secure;
            std::string scratch;
            const auto key = key_text(target, listener, scratch);
            if (std::find(keys.begin(), keys.end(), key) == keys.end()) {  // of another listener
                keys.emplace_back(key);
            }
        }
    }
    return {};
}

}  // namespace

read_purge read_purge_request(std::string_view key, http::field_list fields) {
    read_purge out;
    out.order.keys.emplace_back(key);
    bool prefix = false;
    for (const auto& line : fields) {
        cache::for_each_tag(line.name, line.value, [&](std::string_view tag) {
            out.order.kind = purge_kind::tag;
            out.order.tags.emplace_back(tag);
        });
        if (!http::iequals(line.name, "Purge")) {
            continue;
        }
        http::for_each_member(line.value, [&](std::string_view word) {
            if (http::iequals(word, "soft")) {
                out.order.mode = purge_mode::soft;
            } else if (http::iequals(word, "prefix")) {
                prefix = true;
            } else {
                out.wrong = "Purge says soft, prefix, or both";
            }
            return true;
        });
    }
    if (prefix && out.order.kind == purge_kind::tag) {
        out.wrong = "by prefix or by tag, not both";
    } else if (prefix) {
        out.order.kind = purge_kind::prefix;
    }
    return out;
}

read_purge read_purge_query(std::string_view query, const config::options& options) {
    const auto parameters = http::parse_query(query);
    if (!parameters) {
        return wrong("the query cannot be read");
    }
    if (const auto twice = http::named_twice(*parameters, {"url", "prefix", "origin"});
        !twice.empty()) {
        return wrong(std::string{twice} + " is there twice; a purge is of one");
    }
    read_purge out;
    std::string_view url, prefix, origin;
    unsigned named = 0;
    for (const auto& one : *parameters) {
        if (one.name == "url") {
            url = one.value;
            ++named;
        } else if (one.name == "prefix") {
            prefix = one.value;
            ++named;
        } else if (one.name == "tag" && !one.value.empty()) {
            out.order.tags.push_back(one.value);
        } else if (one.name == "origin") {
            origin = one.value;
        } else if (one.name == "soft" && one.value.empty()) {
            out.order.mode = purge_mode::soft;
        } else {
            return wrong("not understood: " + one.name +
                         "; this takes url, or prefix, or tag and origin; and soft");
        }
    }
    const bool by_tag = !out.order.tags.empty();
    if (named + (by_tag ? 1 : 0) != 1 || by_tag == origin.empty()) {
        return wrong("name one: url=http://host/path, or prefix=http://host/path, or "
                     "tag=name&origin=http://host");
    }
    out.order.kind = by_tag            ? purge_kind::tag
                     : !prefix.empty() ? purge_kind::prefix
                                       : purge_kind::url;
    const auto of = by_tag ? origin : !prefix.empty() ? prefix : url;
    out.wrong = append_keys(out.order.keys, of, options);
    return out;
}

namespace {

// How many responses went, of URLs.
std::size_t purge(thread::common_state& common, const purge_order& order, wall_time now) {
    std::size_t variants = 0;
    auto& purges = common.store.purges();
    for (const auto& text : order.keys) {
        const auto parts = cache::split_key(text);
        switch (order.kind) {
        case purge_kind::url: {
            const auto key = filter::hash_of(text, common.admission.secret());
            variants += order.mode == purge_mode::hard ? common.store.purge(key, text)
                                                       : common.store.expire(key, text, now);
            common.fetches.forget(key, text);
            break;
        }
        case purge_kind::prefix:
            purges.ban_prefix(parts.url, parts.space, order.mode, now);
            common.fetches.unlist_if([&](std::string_view url) {
                return url.starts_with(parts.url) && cache::split_key(url).space == parts.space;
            });
            break;
        case purge_kind::tag:
            for (const auto& tag : order.tags) {
                purges.ban_tag(cache::tag_hash(tag), text, order.mode, now);
            }
            // Which tags a response will have is not known before its head is there.
            common.fetches.unlist_if([&](std::string_view url) {
                const auto other = cache::split_key(url);
                return other.origin == parts.origin && other.space == parts.space;
            });
            break;
        }
    }
    return variants;
}

}  // namespace

void carry_out_here(thread::common_state& common, const purge_order& order, wall_time now) {
    (void)purge(common, order, now);
}

purge_answer carry_out(thread::common_state& common, const purge_order& order, wall_time now) {
    const auto variants = purge(common, order, now);
    common.beside.tell(order);
    json said;
    said["purged"] = word_for(order.kind);
    said["mode"] = cache::to_string(order.mode);
    purge_answer answer;
    const auto parts = cache::split_key(order.keys.front());
    switch (order.kind) {
    case purge_kind::url:
        common.purged_urls.fetch_add(1, std::memory_order_relaxed);
        common.purged_url_responses.fetch_add(variants, std::memory_order_relaxed);
        said["url"] = parts.url;
        said["variants"] = variants;
        answer.status = variants == 0 ? 404 : 200;
        break;
    case purge_kind::prefix: said["prefix"] = parts.url; break;
    case purge_kind::tag:
        said["origin"] = parts.origin;
        said["tags"] = order.tags;
        break;
    }
    answer.json = said.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
    return answer;
}

}  // namespace reprise::proxy::serve
