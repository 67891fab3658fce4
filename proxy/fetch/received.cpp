#include "proxy/fetch/received.hpp"

#include "proxy/base/recycled.hpp"
#include "proxy/http/conditional.hpp"
#include "proxy/http/date.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/http/range.hpp"
#include "proxy/http/targeted.hpp"

#include <algorithm>

namespace reprise::proxy::fetch {

using http::body_kind;

namespace {

/// Between a Last-Modified and our own clock's Date: the example of RFC 9110, section 8.8.2.2.
constexpr std::chrono::seconds apart_for_two_clocks{60};

struct recycled_head : cache::fetched_head {
    recycled_head() { head.swap(*recycled_text{}); }
    ~recycled_head() { const recycled_text memory{std::move(head)}; }
    recycled_head(const recycled_head&) = delete;
    recycled_head& operator=(const recycled_head&) = delete;
};

}  // namespace

cache::answered age_in(const received& from, const fetch_order& order) {
    cache::answered by;
    by.sent = from.sent;
    if (!from.fetched_now) {
        by.age = http::stated_age(from.head.fields).value_or(http::seconds{0});
    }
    by.max_age = order.asked.max_age;
    by.min_fresh = order.asked.min_fresh;
    return by;
}

http::freshness_rules rules_for(const fetch_order& order,
                                std::optional<http::seconds> at_most,
                                http::field_list fields) {
    auto rules = http::is_personal(order.request->head.fields, fields)
                     ? order.freshness().for_one_client()
                     : order.freshness();
    if (at_most) {
        rules.at_most = std::min(rules.at_most.value_or(*at_most), *at_most);
    }
    return rules;
}

http::vary_spec vary_of(const fetch_order& order, http::field_list fields) {
    using config::forwarded_field;
    auto vary = http::read_vary(fields);
    const auto written = order.now_settings->options.forwarding.client_address;
    const auto is_written = [&](forwarded_field which, std::string_view name) {
        return (written == which || written == forwarded_field::both) && vary.has(name);
    };
    if (is_written(forwarded_field::forwarded, "forwarded") ||
        is_written(forwarded_field::x_forwarded_for, "x-forwarded-for")) {
        return {.names = {}, .any = true};
    }
    return vary;
}

bool has_weak_last_modified(const received& from) {
    const auto& fields = from.head.fields;
    const auto* modified = http::find(fields, http::field_id::last_modified);
    if (modified == nullptr) {
        return false;
    }
    if (from.by != word_of::origin) {
        return true;  // its Date may be that of a later 304
    }
    if (http::find(fields, http::field_id::date) != nullptr) {
        return !http::has_strong_last_modified(fields, from.came);
    }
    const auto when = http::parse_date(modified->value, from.came);
    return !when || from.came - *when < apart_for_two_clocks;
}

std::shared_ptr<cache::fetched_head> head_for_readers(const received& from,
                                                      const fetch_order& order,
                                                      std::string_view pseudonym) {
    std::shared_ptr<cache::fetched_head> head = std::allocate_shared<recycled_head>(
        recycled<recycled_head>{});
    const auto date = http::format_date(from.came);
    // What we add: Via, perhaps a Date.
    head->head.reserve(from.head.bytes + pseudonym.size() + date.size() + 32);
    http::append_response_fields(head->head,
                                 from.head,
                                 {.via = pseudonym,
                                  .date = std::string_view{date.data(), date.size()},
                                  .drop_alt_svc = order.is_for_https_url()});
    if (from.framing.kind == body_kind::chunked) {
        for (const auto& line : from.head.fields) {
            if (line.id == http::field_id::trailer) {
                head->trailer.append("Trailer: ").append(line.value).append("\r\n");
            }
        }
    }
    head->status = from.head.status;
    head->weak_last_modified = has_weak_last_modified(from);
    head->has_body = from.framing.kind != body_kind::none;
    if (from.framing.kind == body_kind::length) {
        head->length = from.framing.length;
    } else if (from.framing.has_stated_length) {
        head->length = from.framing.stated_length;
    }
    const auto& fields = from.head.fields;
    const auto rules = rules_for(order, from.at_most, fields);
    head->directives = http::without(
        http::read_governing_directives(fields, order.now_settings->options.targeted),
        rules.set_aside);
    head->freshness = http::freshness_of(
        from.head.status, fields, head->directives, from.requested, from.came, rules);
    head->freshness.response_time = from.resident_came;
    head->asked_at = from.resident_requested;
    head->asked_turn = from.turn;
    head->by = age_in(from, order);
    head->vary = vary_of(order, fields);
    if (!head->vary.empty()) {
        head->selecting = http::selecting_values(head->vary, order.request->head.fields);
    }
    if (const auto* etag = http::find(fields, http::field_id::etag);
        etag != nullptr && http::is_strong(etag->value) && etag->value.starts_with('"')) {
        head->strong_etag = etag->value;
    }
    if (from.head.status == 206 && http::count(fields, http::field_id::content_range) == 1) {
        const auto range = http::parse_content_range(
            http::find(fields, http::field_id::content_range)->value);
        head->range_first = range.first;
        head->range_last = range.last;
        head->range_total = range.total;
    }
    if (!order.is_get) {
        for (const auto id : {http::field_id::location, http::field_id::content_location}) {
            if (const auto* line = http::find(fields, id)) {
                head->locations.emplace_back(line->value);
            }
        }
    }
    return head;
}

}  // namespace reprise::proxy::fetch
