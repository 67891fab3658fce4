#include "proxy/cache/verdict.hpp"

#include "proxy/http/conditional.hpp"

// The rules in the order of their weight: the method, what is stored, its freshness against what
// request and response allow, the client's preconditions, and then the bytes that are held.

namespace reprise::proxy::cache {

namespace {

using http::field_id;
using http::forward_reason;

rule rule_of(http::reuse_reason reason) noexcept {
    switch (reason) {
    case http::reuse_reason::fresh: return rule::fresh;
    case http::reuse_reason::max_stale: return rule::max_stale;
    case http::reuse_reason::stale: return rule::stale;
    case http::reuse_reason::response_no_cache: return rule::response_no_cache;
    case http::reuse_reason::request_no_cache: return rule::request_no_cache;
    case http::reuse_reason::request_max_age: return rule::request_max_age;
    case http::reuse_reason::request_min_fresh: return rule::request_min_fresh;
    case http::reuse_reason::must_revalidate: return rule::must_revalidate;
    }
    return rule::stale;
}

// RFC 9211 2.2: "request" where what is stored would have done for another client.
forward_reason forward_of(rule why) noexcept {
    switch (why) {
    case rule::nothing_stored: return forward_reason::uri_miss;
    case rule::other_variant: return forward_reason::vary_miss;
    case rule::request_no_cache:
    case rule::request_max_age:
    case rule::request_min_fresh:
    case rule::origin_conditions: return forward_reason::request;
    case rule::stale:
    case rule::must_revalidate:
    case rule::response_no_cache: return forward_reason::stale;
    case rule::method: return forward_reason::method;
    case rule::partial: return forward_reason::partial;
    case rule::fresh:
    case rule::max_stale:
    case rule::while_revalidating: break;
    }
    return forward_reason::none;
}

// RFC 9111 5.2.1.1 to 5.2.1.3: how stale a response this client bears, if any, goes before what the
// origin allows for all. Who says max-age alone bears none.
bool bounds_staleness(const http::request_directives& asked) noexcept {
    return asked.max_stale || asked.max_age ||
           asked.min_fresh.value_or(http::seconds{0}) > http::seconds{0};
}

bool serves(part_use use) noexcept {
    switch (use) {
    case part_use::head:
    case part_use::held:
    case part_use::unsatisfiable: return true;
    case part_use::none:
    case part_use::gap: break;
    }
    return false;
}

verdict ask_origin(rule why,
                   const http::reuse_verdict& reuse,
                   const lookup_result& kept,
                   const request_facts& facts,
                   http::field_list fields,
                   wall_time now) {
    verdict out{ruling::forward, why, forward_of(why), reuse, {}};
    const bool parts = kept.what == lookup::present && kept.response->parts();
    if (parts) {
        out.part = plan_parts(*kept.response, facts.is_get ? "GET" : "HEAD", fields, now);
    }
    if (facts.asked.only_if_cached) {
        out.what = ruling::unavailable;
    } else if (parts && out.part.use == part_use::gap) {
        // If-Range asks about the representation, so a gap that comes confirms what is held
        // (RFC 9110 13.1.5). The client's own preconditions would stand beside it: they go alone.
        out.what = facts.has_conditions ? ruling::forward : ruling::complete;
    } else if (parts && !serves(out.part.use)) {
        out.what = ruling::forward;
    } else if (may_validate(kept, facts, now)) {
        out.what = ruling::validate;
    }
    return out;
}

// A response that may be reused, but of which only parts are held (RFC 9111 3.3).
void judge_parts(verdict& out,
                 const stored_response& stored,
                 const request_facts& facts,
                 http::field_list fields,
                 wall_time now) {
    out.part = plan_parts(stored, facts.is_get ? "GET" : "HEAD", fields, now);
    if (serves(out.part.use)) {
        return;
    }
    out.why = rule::partial;
    out.forward = forward_of(out.why);
    if (facts.asked.only_if_cached) {
        out.what = ruling::unavailable;
    } else {
        const bool gap = out.part.use == part_use::gap;
        out.what = gap ? ruling::complete : ruling::forward;
    }
}

}  // namespace

request_facts read_request_facts(bool is_get, bool is_head, http::field_list fields) noexcept {
    request_facts facts;
    facts.is_get = is_get;
    facts.is_head = is_head;
    for (const auto& line : fields) {
        switch (line.id) {
        case field_id::authorization: facts.has_authorization = true; break;
        case field_id::cookie: facts.has_cookie = true; break;
        case field_id::cache_control:
        case field_id::pragma: facts.has_directives = true; break;
        case field_id::if_match:
        case field_id::if_unmodified_since:
            facts.has_conditions = facts.has_origin_conditions = true;
            break;
        case field_id::if_none_match:
        case field_id::if_modified_since: facts.has_conditions = true; break;
        case field_id::range: facts.has_range = true; break;
        case field_id::via: facts.has_via = true; break;
        default: break;  // every other field is the origin's business
        }
    }
    if (facts.has_directives) {
        facts.asked = http::read_request_directives(fields);
    }
    return facts;
}

std::string_view to_string(ruling what) noexcept {
    switch (what) {
    case ruling::hit: return "hit";
    case ruling::stale_hit: return "stale-hit";
    case ruling::stale_behind: return "stale-while-revalidate";
    case ruling::validate: return "validate";
    case ruling::complete: return "complete";
    case ruling::forward: return "forward";
    case ruling::unavailable: return "only-if-cached";
    }
    return "forward";
}

std::string_view to_string(rule why) noexcept {
    switch (why) {
    case rule::fresh: return "fresh";
    case rule::max_stale: return "max-stale";
    case rule::while_revalidating: return "stale-while-revalidate";
    case rule::nothing_stored: return "nothing-stored";
    case rule::other_variant: return "other-variant";
    case rule::stale: return "stale";
    case rule::must_revalidate: return "must-revalidate";
    case rule::response_no_cache: return "response-no-cache";
    case rule::request_no_cache: return "request-no-cache";
    case rule::request_max_age: return "request-max-age";
    case rule::request_min_fresh: return "request-min-fresh";
    case rule::origin_conditions: return "origin-conditions";
    case rule::partial: return "partial";
    case rule::method: return "method";
    }
    return "nothing-stored";
}

std::string_view section_of(rule why) noexcept {
    switch (why) {
    case rule::fresh:
    case rule::stale: return "RFC 9111 4.2";
    case rule::max_stale: return "RFC 9111 5.2.1.2";
    case rule::while_revalidating: return "RFC 5861 3";
    case rule::nothing_stored:
    case rule::method: return "RFC 9111 4";
    case rule::other_variant: return "RFC 9111 4.1";
    case rule::must_revalidate: return "RFC 9111 4.2.4";
    case rule::response_no_cache: return "RFC 9111 5.2.2.4";
    case rule::request_no_cache: return "RFC 9111 5.2.1.4";
    case rule::request_max_age: return "RFC 9111 5.2.1.1";
    case rule::request_min_fresh: return "RFC 9111 5.2.1.3";
    case rule::origin_conditions: return "RFC 9111 4.3.2";
    case rule::partial: return "RFC 9111 3.3";
    }
    return "RFC 9111 4";
}

verdict judge(const lookup_result& kept,
              const request_facts& facts,
              http::field_list fields,
              wall_time now) {
    if (!facts.is_get && !facts.is_head) {
        return {ruling::forward, rule::method, forward_reason::method, {}, {}};
    }
    if (kept.what != lookup::present) {
        const auto why = kept.what == lookup::absent ? rule::nothing_stored : rule::other_variant;
        return ask_origin(why, {}, kept, facts, fields, now);
    }
    const auto& stored = *kept.response;
    verdict out{ruling::hit, rule::fresh, forward_reason::none, {}, {}};
    bool partial = false;
    if (!facts.has_directives && now < stored.reusable_until()) {
        out.reuse.what = http::reuse::fresh;
        out.reuse.why = http::reuse_reason::fresh;
        out.reuse.age = http::current_age(stored.freshness(), now);
        out.reuse.ttl = stored.freshness().lifetime - out.reuse.age;
    } else {
        partial = stored.parts() != nullptr;  // such are never found before their reusable_until
        out.reuse = http::judge_reuse(stored.directives(), stored.freshness(), facts.asked, now);
        out.why = rule_of(out.reuse.why);
        switch (out.reuse.what) {
        case http::reuse::fresh: break;
        case http::reuse::stale_allowed: out.what = ruling::stale_hit; break;
        case http::reuse::must_validate:
            // RFC 5861 3: the client need not wait for the validation.
            if (out.why != rule::stale || !facts.is_get || facts.has_authorization ||
                bounds_staleness(facts.asked) ||
                !http::may_serve_while_revalidating(stored.directives(), stored.freshness(), now)) {
                return ask_origin(out.why, out.reuse, kept, facts, fields, now);
            }
            out.what = ruling::stale_behind;
            out.why = rule::while_revalidating;
        }
    }
    if (facts.has_conditions) {
        const auto lines = stored.fields();
        const auto condition = http::judge_preconditions(
            fields, stored.status(), lines, stored.freshness().response_time, now);
        if (condition == http::precondition::forward) {
            return ask_origin(rule::origin_conditions, out.reuse, kept, facts, fields, now);
        }
        if (condition == http::precondition::not_modified) {
            return out;  // a 304 needs no byte of the body
        }
    }
    if (partial) {
        judge_parts(out, stored, facts, fields, now);
    }
    return out;
}

http::cache_status status_of(const verdict& judged, const stored_response& stored) noexcept {
    http::cache_status how;
    how.hit = true;
    how.ttl = judged.reuse.ttl;
    if (judged.what == ruling::stale_behind) {
        how.detail = to_string(judged.what);
    } else if (stored.freshness().source == http::lifetime_source::negative) {
        how.detail = http::to_string(stored.freshness().source);
    }
    return how;
}

bool may_validate(const lookup_result& kept, const request_facts& facts, wall_time now) {
    if (kept.what != lookup::present || !facts.is_get || facts.has_origin_conditions ||
        facts.asked.no_store) {
        return false;
    }
    const auto status = kept.response->status();
    return status >= 200 && status < 300 &&
           !http::validators_of(kept.response->fields(), now).empty();
}

bool may_stand_in(const lookup_result& kept,
                  const verdict& judged,
                  const request_facts& facts,
                  bool disconnected,
                  http::seconds disconnected_most,
                  wall_time now) noexcept {
    if (kept.what != lookup::present || facts.has_origin_conditions) {
        return false;
    }
    const bool by_preference = judged.why == rule::request_no_cache ||
                               judged.why == rule::request_max_age ||
                               judged.why == rule::request_min_fresh;
    if (judged.why != rule::stale && !by_preference) {
        return false;
    }
    const auto& stored = *kept.response;
    if (stored.parts() && !serves(judged.part.use)) {
        return false;
    }
    if (!by_preference && http::may_serve_on_error(stored.directives(), stored.freshness(), now)) {
        return true;
    }
    if (!disconnected || disconnected_most == http::seconds{0}) {
        return false;
    }
    const auto left = http::remaining(stored.freshness(), now);
    return left > http::seconds{0} ||
           (!http::forbids_stale(stored.directives()) && -left < disconnected_most);
}

}  // namespace reprise::proxy::cache
