#include "proxy/http/reuse.hpp"

namespace reprise::proxy::http {

namespace {

bool is_within(const std::optional<seconds>& window,
               const response_directives& allowed,
               const freshness_facts& facts,
               wall_time now) noexcept {
    return window && !forbids_stale(allowed) && -remaining(facts, now) < *window;
}

/// max-stale (5.2.1.2). A number beside a bare max-stale is the stricter of the two.
bool tolerates(const request_directives& asked, seconds staleness) noexcept {
    if (asked.max_stale) {
        return staleness <= *asked.max_stale;
    }
    return asked.max_stale_any;
}

struct decision {
    reuse what;
    reuse_reason why;
};

decision decide(const response_directives& allowed,
                const request_directives& asked,
                seconds age,
                seconds ttl) noexcept {
    if (allowed.no_cache) {
        return {reuse::must_validate, reuse_reason::response_no_cache};
    }
    if (asked.no_cache) {
        return {reuse::must_validate, reuse_reason::request_no_cache};
    }
    // max-age=0 is how clients ask for a reload; taken literally, it would be met by a response
    // that arrived within this second.
    if (asked.max_age && (age > *asked.max_age || *asked.max_age == seconds{0})) {
        return {reuse::must_validate, reuse_reason::request_max_age};
    }
    const auto min_fresh = asked.min_fresh.value_or(seconds{0});
    if (ttl > seconds{0}) {
        if (ttl < min_fresh) {
            return {reuse::must_validate, reuse_reason::request_min_fresh};
        }
        return {reuse::fresh, reuse_reason::fresh};
    }
    if (forbids_stale(allowed)) {
        return {reuse::must_validate, reuse_reason::must_revalidate};
    }
    if (min_fresh == seconds{0} && tolerates(asked, -ttl)) {
        return {reuse::stale_allowed, reuse_reason::max_stale};
    }
    return {reuse::must_validate, reuse_reason::stale};
}

}  // namespace

std::string_view to_string(reuse verdict) noexcept {
    switch (verdict) {
    case reuse::fresh: return "fresh";
    case reuse::stale_allowed: return "stale-allowed";
    case reuse::must_validate: return "must-validate";
    }
    return "must-validate";
}

std::string_view to_string(reuse_reason reason) noexcept {
    switch (reason) {
    case reuse_reason::fresh: return "fresh";
    case reuse_reason::max_stale: return "max-stale";
    case reuse_reason::stale: return "stale";
    case reuse_reason::response_no_cache: return "response-no-cache";
    case reuse_reason::request_no_cache: return "request-no-cache";
    case reuse_reason::request_max_age: return "request-max-age";
    case reuse_reason::request_min_fresh: return "request-min-fresh";
    case reuse_reason::must_revalidate: return "must-revalidate";
    }
    return "stale";
}

bool forbids_stale(const response_directives& allowed) noexcept {
    return allowed.no_cache || allowed.must_revalidate || allowed.proxy_revalidate ||
           allowed.s_maxage.has_value();
}

reuse_verdict judge_reuse(const response_directives& allowed,
                          const freshness_facts& facts,
                          const request_directives& asked,
                          wall_time now) noexcept {
    const auto age = current_age(facts, now);
    const auto ttl = facts.lifetime - age;
    const auto decided = decide(allowed, asked, age, ttl);
    return {decided.what, decided.why, age, ttl};
}

wall_time reusable_until(const response_directives& allowed,
                         const freshness_facts& facts) noexcept {
    return allowed.no_cache ? wall_time::min() : fresh_until(facts);
}

bool may_serve_while_revalidating(const response_directives& allowed,
                                  const freshness_facts& facts,
                                  wall_time now) noexcept {
    return is_within(allowed.stale_while_revalidate, allowed, facts, now);
}

bool may_serve_on_error(const response_directives& allowed,
                        const freshness_facts& facts,
                        wall_time now) noexcept {
    return is_within(allowed.stale_if_error, allowed, facts, now);
}

}  // namespace reprise::proxy::http
