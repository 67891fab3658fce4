#include "proxy/fetch/order.hpp"

#include "proxy/http/conditional.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/peer/homes.hpp"
#include "proxy/peer/pulse.hpp"

#include <algorithm>

namespace reprise::proxy::fetch {

cache::stored_ptr fetch_order::validating() const noexcept {
    const auto* one = as<wanted::validating>();
    return one != nullptr ? one->stored : nullptr;
}

cache::stored_ptr fetch_order::behind() const noexcept {
    if (const auto* one = as<wanted::validating>()) {
        return one->behind ? one->stored : nullptr;
    }
    const auto* one = as<wanted::whole>();
    return one != nullptr ? one->behind : nullptr;
}

cache::stored_ptr fetch_order::described() const noexcept {
    const auto* one = as<wanted::head>();
    return one != nullptr ? one->described : nullptr;
}

std::shared_ptr<upload> fetch_order::body() const noexcept {
    const auto* one = as<wanted::passed>();
    return one != nullptr ? one->body : nullptr;
}

void fetch_order::validate_nothing() noexcept {
    if (as<wanted::validating>() != nullptr) {
        what = wanted::whole{};
    }
}

recycled_text wire_of(const fetch_order& o,
                      next_hop to,
                      bool validate,
                      std::string_view pseudonym,
                      wall_time now,
                      std::string_view named) {
    http::request_options options;
    options.via = pseudonym;
    options.client_address = o.client_address;
    const auto field = o.now_settings->options.forwarding.client_address;
    options.forwarded = field == config::forwarded_field::forwarded ||
                        field == config::forwarded_field::both;
    options.x_forwarded_for = field == config::forwarded_field::x_forwarded_for ||
                              field == config::forwarded_field::both;
    options.scheme = o.told_scheme;
    options.body = o.body_framing;
    const auto* passed = o.as<wanted::passed>();
    options.websocket = passed != nullptr && passed->websocket;
    options.trailers = o.body_framing.kind == http::body_kind::chunked;
    options.te_trailers = http::has_token(o.request->head.fields, http::field_id::te, "trailers");
    options.drop_expect = o.head_is_http10;
    options.to_proxy = to != next_hop::origin;
    std::string extra;
    if (to == next_hop::sibling || to == next_hop::site) {
        extra = "Cache-Control: only-if-cached\r\n";
    }
    // These are ours alone, so that whoever they reach drops them.
    if (to == next_hop::sibling) {
        http::append_field_line(extra, "Connection", peer::waits_field);
        http::append_field_line(extra, peer::waits_field, "?1");
    }
    if (to == next_hop::site) {
        http::append_field_line(extra, "Connection", peer::site_field);
        http::append_field_line(extra, peer::site_field, "?1");
    } else if (to == next_hop::home) {
        http::append_field_line(extra, "Connection", peer::home_field);
        http::append_field_line(extra, peer::home_field, named);
    } else if (!named.empty() && o.request->head.method != boost::beast::http::verb::trace) {
        // Whoever answers a TRACE sends it back (RFC 9110 9.3.8).
        http::append_field_line(extra, "Proxy-Authorization", named);
    }
    if (validate) {
        const auto stored = o.validating();
        const auto stored_fields = stored->fields();
        http::append_validation(extra, http::validators_of(stored_fields, now));
        options.drop_conditionals = true;
        options.drop_range = !o.own_range;  // of parts the same range is wanted if they changed
    } else if (o.may_store) {
        options.drop_conditionals = !o.own_conditions;
        options.drop_range = !o.own_range;
    }
    if (const auto* rest = o.as<wanted::rest>()) {
        options.drop_conditionals = options.drop_range = true;
        extra += "Range: bytes=" + std::to_string(rest->at) + "-\r\nIf-Range: " + rest->etag +
                 "\r\n";
    } else if (const auto* gap = o.as<wanted::gap>()) {
        options.drop_conditionals = options.drop_range = true;
        extra += "Range: " + gap->range + "\r\nIf-Range: " + gap->validator + "\r\n";
    }
    if (const auto hops = http::judge_hops(o.request->head); hops.has_value()) {
        options.max_forwards = hops->left;
    }
    options.extra = extra;
    recycled_text wire;
    wire->reserve(o.request->bytes.size() + extra.size() + pseudonym.size() +
                  o.client_address.size() + 128);
    http::append_request_head(*wire, o.request->head, o.destination, options);
    return wire;
}

cache::sent_request as_sent(const fetch_order& order, steady_time at) {
    const auto told = order.now_settings->options.forwarding.client_address;
    const auto& request = order.request;
    cache::sent_request out;
    out.at = at;
    out.head = std::shared_ptr<const http::request_head>{request, &request->head};
    if (told != config::forwarded_field::off) {
        out.client = order.client_address;
    }
    return out;
}

namespace {
// Whether a line goes out as it stands where the fetch is shared: that asks for all of an object, by no client's
// conditions, and its host is the key's.
bool is_sent_for_all(const http::field& line) noexcept {
    switch (line.id) {
    case http::field_id::host:
    case http::field_id::range:
    case http::field_id::if_range:
    case http::field_id::if_match:
    case http::field_id::if_none_match:
    case http::field_id::if_modified_since:
    case http::field_id::if_unmodified_since: return false;
    default: return true;
    }
}
}  // namespace

bool would_send(const fetch_order& order, const cache::sent_request& sent) {
    const auto own = as_sent(order, sent.at);
    if (own.client != sent.client || own.head->version != sent.head->version) {
        return false;
    }
    const auto& ours = own.head->fields;
    const auto& theirs = sent.head->fields;
    auto a = ours.begin();
    auto b = theirs.begin();
    for (;; ++a, ++b) {
        a = std::find_if(a, ours.end(), is_sent_for_all);
        b = std::find_if(b, theirs.end(), is_sent_for_all);
        if (a == ours.end() || b == theirs.end()) {
            return a == ours.end() && b == theirs.end();
        }
        if (a->name != b->name || a->value != b->value) {
            return false;
        }
    }
}

}  // namespace reprise::proxy::fetch
