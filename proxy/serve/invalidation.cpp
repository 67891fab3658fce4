#include "proxy/serve/invalidation.hpp"

#include "proxy/http/reference.hpp"

namespace reprise::proxy::serve {

namespace {

// What a reference of the answer's names; none: it is another origin's. `text` holds what the
// target views.
std::optional<http::target> target_of(std::string_view named,
                                      const http::target& base,
                                      std::string& text) {
    const bool authority = named.starts_with("//");
    auto other = base;
    other.normal = false;
    if (!authority && !http::has_scheme(named)) {
        text = http::resolve_path(base.path_and_query, named);
        other.path_and_query = text;
        return other;
    }
    text = (authority ? base.secure ? "https:" : "http:" : "") + std::string{named};
    const auto parsed = http::parse_target(boost::beast::http::verb::get, text, http::url_forms);
    if (!parsed || parsed->secure != base.secure || parsed->port != base.port ||
        !http::iequals(parsed->host, base.host)) {
        return std::nullopt;
    }
    other.path_and_query = parsed->path_and_query;
    return other;
}

}  // namespace

void invalidate_after(exchange_state& x, const cache::fetched_head& head) {
    if (head.status < 200 || head.status >= 400) {
        return;
    }
    auto& common = x.w.common;
    const auto invalidate = [&](const filter::key_hash& key, std::string_view url) {
        x.w.counts.store_invalidated.add(common.store.invalidate(key, url));
        common.beside.tell_invalidated(url);
    };
    if (!head.replaces_stored) {
        invalidate(x.asked.key, x.asked.url);
    }
    common.fetches.forget(x.asked.key, x.asked.url);
    for (const auto& location : head.locations) {
        const auto named = std::string_view{location}.substr(0, location.find('#'));
        std::string text, scratch;
        const auto other = target_of(named, x.asked.target, text);
        if (!other) {
            continue;
        }
        const auto url = key_text(*other, x.listener(), scratch);
        if (url == x.asked.url) {
            continue;
        }
        const auto key = filter::hash_of(url, common.admission.secret());
        invalidate(key, url);
        common.fetches.forget(key, url);
    }
}

}  // namespace reprise::proxy::serve
