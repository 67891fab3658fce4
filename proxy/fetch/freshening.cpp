#include "proxy/fetch/freshening.hpp"

#include "proxy/cache/recency.hpp"
#include "proxy/http/conditional.hpp"
#include "proxy/http/date.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/http/reuse.hpp"
#include "proxy/http/targeted.hpp"

#include <optional>

// A new head is made of the stored one's lines and the newer ones, and put in its place as one whole: no
// reader sees half of it. The body stays the same object.

namespace reprise::proxy::fetch {

// The field lines that the head at hand may bring to what is stored, as they would be passed on.
bool freshening::read_lines(std::string& text, std::vector<http::field>& lines) const {
    const auto date = http::format_date(came_.came);
    http::append_response_fields(text,
                                 came_.head,
                                 {.via = w_.common.pseudonym,
                                  .date = std::string_view{date.data(), date.size()},
                                  .keep_age = true,
                                  .drop_alt_svc = order_.is_for_https_url()});
    const auto first_line = text.find("\r\n") + 2;
    return http::parse_field_lines(std::string_view{text}.substr(first_line),
                                   lines,
                                   order_.now_settings->response_limits.fields) == nullptr;
}

// Another date is a strong validator of these bytes only where a strong tag says that they are the same.
bool freshening::has_weak_last_modified_now(const cache::stored_response& stored,
                                            http::field_list old_lines,
                                            http::field_list merged) const {
    const auto value_of = [](http::field_list lines, http::field_id id) {
        const auto* line = http::find(lines, id);
        return line == nullptr ? std::string_view{} : line->value;
    };
    const auto date = value_of(merged, http::field_id::last_modified);
    if (date == value_of(old_lines, http::field_id::last_modified)) {
        return stored.weak_last_modified();
    }
    const auto is_same = http::equal_strong(value_of(old_lines, http::field_id::etag),
                                            value_of(merged, http::field_id::etag));
    return stored.weak_last_modified() ||
           (!date.empty() && (!is_same || has_weak_last_modified(came_)));
}

// A whole new head for what is stored, made of its own lines and newer ones (RFC 9111 3.2); null
// when that would be larger than a head may be.
cache::stored_ptr freshening::made_of(const cache::stored_response& stored,
                                      http::field_list newer) const {
    const auto& limits = order_.now_settings->response_limits;
    const auto old_lines = stored.fields();
    const auto merged = http::freshen(old_lines, newer, limits.bytes, limits.fields);
    if (!merged) {
        return nullptr;
    }
    // What has the answer kept for longer than it says asks whose request it is an answer to, too;
    // the permission to store it was given before (see put).
    const auto rules = rules_for(order_, came_.at_most, *merged);
    const auto directives = http::without(
        http::read_governing_directives(*merged, order_.now_settings->options.targeted),
        rules.set_aside);
    cache::response_draft next;
    next.head = stored.head().substr(0, stored.status_line_size());
    const auto length_line = stored.head().substr(stored.length_at());
    std::optional<http::withheld_names> withheld_ones;
    if (directives.no_cache_fields || directives.private_fields) {
        withheld_ones.emplace(*merged);
    }
    for (const auto& line : *merged) {
        const bool withheld = withheld_ones && withheld_ones->has(line);
        if (withheld || line.id == http::field_id::age ||
            line.id == http::field_id::content_length) {
            continue;
        }
        http::append_field_line(next.head, line.name, line.value);
    }
    next.head.append(length_line);
    cache::index_head(next);
    next.status = stored.status();
    next.freshness = http::freshness_of(
        stored.status(), *merged, directives, came_.requested, came_.came, rules);
    next.freshness.response_time = came_.resident_came;
    next.asked_at = came_.resident_requested;
    next.asked_turn = came_.turn;
    next.wait = stored.wait();  // were it not here, it would be fetched, and not confirmed
    next.directives = directives;
    next.reusable_until = stored.parts() ? wall_time::min()
                                         : http::reusable_until(directives, next.freshness);
    next.content = stored.content();
    next.parts = stored.parts();
    next.on_disk = stored.on_disk();
    next.disk_record = stored.disk_record.load(std::memory_order_relaxed);
    next.weak_last_modified = has_weak_last_modified_now(stored, old_lines, *merged);
    next.vary = vary_of(order_, *merged);
    next.selecting = next.vary == stored.vary()
                         ? std::string{stored.selecting()}
                         : http::selecting_values(next.vary, order_.request->head.fields);
    return cache::stored_response::make(next);
}

// Judged without the client's fields: a client that happens to validate decides nothing about what was
// stored for another. So an operator's rules hold here that its Cookie or Authorization has kept from
// `next`; not those that what is stored itself keeps from it, by its Set-Cookie.
http::storability freshening::judge_for_anybody(const cache::stored_response& next) const {
    if (next.vary().any) {
        return http::storability::vary_any;
    }
    auto storing = order_.now_settings->storing;
    storing.never_cookies = storing.never_cookies || came_.by != word_of::origin;
    const auto lines = next.fields();
    auto directives = next.directives();
    auto facts = next.freshness();
    if (http::is_personal(order_.request->head.fields, {}) && !http::is_personal({}, lines)) {
        const auto& rules = order_.freshness();
        directives = http::without(
            http::read_governing_directives(lines, order_.now_settings->options.targeted),
            rules.set_aside);
        facts = http::freshness_of(
            next.status(), lines, directives, came_.requested, came_.came, rules);
    }
    return http::judge_storable("GET", next.status(), {}, {}, lines, directives, facts, storing);
}

http::storability freshening::judge_for_client(const cache::stored_response& next) const {
    return http::judge_storable("GET",
                                next.status(),
                                order_.request->head.fields,
                                {},
                                next.fields(),
                                next.directives(),
                                next.freshness(),
                                order_.storing());
}

void freshening::put(const cache::stored_ptr& current, const cache::stored_ptr& next) {
    for_one_client_ = order_.owner != 0;
    if (for_one_client_ || came_.by == word_of::unkept_sibling) {
        return;  // it was said to one client (http/connection_login.hpp), or by who is not to be kept
    }
    const auto verdict = judge_for_anybody(*next);
    // Nor does a sibling's take back what the origin allowed: its own cookies are none of the merged ones.
    if (came_.by != word_of::origin && verdict == http::storability::set_cookie) {
        return;
    }
    // What it says to whoever logged in, or has a cookie, is no word on what others may have (RFC 9111
    // 3.5): a 200 in its place would not be stored either, and nobody would share it.
    const bool may_be_shared = verdict == http::storability::storable &&
                               judge_for_client(*next) == http::storability::storable;
    for_one_client_ = !may_be_shared;
    if (verdict == http::storability::storable && !may_be_shared) {
        return;
    }
    if (verdict == http::storability::storable && next->vary() == current->vary()) {
        // What has left the store meanwhile stays out: it may have been invalidated.
        if (w_.common.store.freshen(order_.key, order_.url, current, next, begun_at_)) {
            w_.counts.store_refreshed.add();
        }
    } else {
        // The 304 took back the permission to store, or chooses variants anew. What is more recent
        // than it stays.
        const auto kept = w_.common.store.variant_of(order_.key, order_.url, *current);
        if (kept && kept != current && cache::is_outdated_by(*next, *kept)) {
            return;
        }
        const auto& others = w_.common.store.memory().invalidated();
        auto asked = w_.common.store.mark(order_.key);
        const bool is_purged = others.since(order_.key, begun_at_.count);
        const auto removed = w_.common.store.invalidate(order_.key, order_.url);
        w_.counts.store_invalidated.add(removed);
        if (verdict == http::storability::storable && removed > 0 && !is_purged) {
            ++asked.count;                    // our own invalidation alone,
            asked.purges = begun_at_.purges;  // and no purge since the validation began
            w_.common.store.put(order_.key, order_.url, next, asked);
        }
    }
}

cache::stored_ptr freshening::by_not_modified() {
    const auto validated = order_.validating();
    const auto& stored = *validated;
    std::string text;
    std::vector<http::field> newer;
    if (!read_lines(text, newer)) {
        return nullptr;
    }
    const auto size = stored.parts() ? stored.parts()->total : stored.size();
    // Content-Length never passes append_response_fields; for the comparison it is the 304's own.
    auto judged = newer;
    if (const auto* length = http::find(came_.head.fields, http::field_id::content_length);
        length != nullptr && size != cache::partial_body::unknown) {
        judged.push_back(*length);
    }
    const auto known = stored.validating_fields();
    if (http::judge_validation(known, size, judged, came_.came) != http::validation::confirmed) {
        return nullptr;
    }
    if (http::tag_was_weakened(known, newer)) {
        std::erase_if(newer, [](const auto& line) { return line.id == http::field_id::etag; });
    }
    const auto next = made_of(stored, newer);
    if (!next) {
        return nullptr;
    }
    put(validated, next);
    if (order_.is_get) {
        (void)w_.common.admission.note(order_.key, order_.admission, came_.resident_came);
    }
    return next;
}

void freshening::by_head() {
    const auto described = order_.described();
    const auto& stored = *described;
    if (stored.parts()) {
        return;
    }
    switch (http::judge_head(
        stored.status(), stored.fields(), stored.size(), came_.head.status, came_.head.fields)) {
    case http::head_effect::nothing: return;
    case http::head_effect::freshen: {
        std::string text;
        std::vector<http::field> newer;
        if (read_lines(text, newer)) {
            if (const auto next = made_of(stored, newer)) {
                put(described, next);
            }
        }
        return;
    }
    case http::head_effect::outdate:
        if (w_.common.store.drop(order_.key, order_.url, described)) {
            w_.counts.store_invalidated.add();
        }
        return;
    }
}

}  // namespace reprise::proxy::fetch
