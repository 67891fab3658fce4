#include "proxy/http/storability.hpp"

#include "proxy/http/conditional.hpp"
#include "proxy/http/reuse.hpp"
#include "proxy/http/target.hpp"
#include "proxy/http/vary.hpp"

#include <string>

// GET and POST share judge_answer(), whose order is the enumeration's. judge_post() only asks
// before it whether the answer stands for its own URL.

namespace reprise::proxy::http {

namespace {

/// Final answers that say something of the exchange, not of what the URL stands for: 304 and 412
/// answer this request's preconditions, 226 its A-IM (RFC 3229), 407 is between the client and a proxy; 428, 429, 431 and
/// 511 "MUST NOT be stored by a cache", whatever else they say (RFC 6585 3 to 6); a status of 600 and above is none (RFC 9110
/// 15).
bool is_about_the_exchange(unsigned status) noexcept {
    switch (status) {
    case 226:
    case 304:
    case 407:
    case 412:
    case 428:
    case 429:
    case 431:
    case 511: return true;
    default: return status < 200 || status >= 600;
    }
}

/// RFC 9111 3.5: what lets a shared cache keep the answer to an authorised request.
bool allows_authorized(const response_directives& allowed) noexcept {
    return allowed.public_ || allowed.must_revalidate || allowed.s_maxage.has_value();
}

bool is_worth_storing(field_list response,
                      const response_directives& allowed,
                      const freshness_facts& facts) noexcept {
    const bool arrives_fresh = facts.lifetime > facts.initial_age && !allowed.no_cache;
    if (arrives_fresh) {
        return true;
    }
    const seconds none{0};
    const bool usable_stale = !forbids_stale(allowed) &&
                              (facts.lifetime > none ||
                               allowed.stale_while_revalidate.value_or(none) > none ||
                               allowed.stale_if_error.value_or(none) > none);
    return usable_stale || !validators_of(response, facts.response_time).empty();
}

bool is_stated(const freshness_facts& facts) noexcept {
    return is_explicit(facts.source) && facts.lifetime > seconds{0};
}

/// The rules that ask what came back, not how it was asked for: of a GET, and of a POST that may
/// stand for one.
storability judge_answer(unsigned status,
                         field_list request,
                         const request_directives& asked,
                         field_list response,
                         const response_directives& allowed,
                         const freshness_facts& facts,
                         const storing_rules& rules) noexcept {
    if (asked.no_store) {
        return storability::no_store_request;
    }
    if (status == 206 || (status == 416 && find(request, field_id::range))) {
        return storability::partial;
    }
    if (is_about_the_exchange(status)) {
        return storability::status;
    }
    if (allowed.must_understand && !is_understood(status)) {
        return storability::must_understand;
    }
    if (allowed.no_store && !allowed.must_understand) {
        return storability::no_store;
    }
    if (allowed.private_) {
        return storability::private_response;
    }
    if (rules.is_logged_in ||
        (find(request, field_id::authorization) && !allows_authorized(allowed))) {
        return storability::authorization;
    }
    if (varies_by_anything(response)) {
        return storability::vary_any;
    }
    if (find(response, field_id::set_cookie) && (rules.never_cookies || !is_stated(facts))) {
        return storability::set_cookie;
    }
    if (rules.cookie_needs_leave && find(request, field_id::cookie) &&
        !(is_stated(facts) && (allowed.public_ || allowed.s_maxage))) {
        return storability::cookie;
    }
    const bool has_lifetime = is_explicit(facts.source) ||
                              facts.source == lifetime_source::negative;
    if (!has_lifetime && !allowed.public_ && !is_heuristically_cacheable(status)) {
        return storability::no_lifetime;
    }
    if (!is_worth_storing(response, allowed, facts)) {
        return storability::useless;
    }
    return storability::storable;
}

/// Content-Location names the target URI itself (RFC 9110 8.7), as far as a key tells.
bool names_target(std::string_view location, const target& wanted) {
    if (location.find('#') != std::string_view::npos) {
        return false;
    }
    std::string key;
    append_key(key, wanted);
    std::string named;
    if (location.starts_with('/') && !location.starts_with("//")) {
        auto there = wanted;
        there.normal = false;
        there.path_and_query = location;
        append_key(named, there);
    } else if (wanted.form == target_form::absolute) {
        const auto there = parse_target(boost::beast::http::verb::get, location, url_forms);
        if (!there) {
            return false;
        }
        append_key(named, *there);
    }
    return named == key;
}

}  // namespace

std::string_view to_string(storability verdict) noexcept {
    switch (verdict) {
    case storability::storable: return "storable";
    case storability::method: return "method";
    case storability::no_store_request: return "no-store-request";
    case storability::partial: return "partial";
    case storability::status: return "status";
    case storability::must_understand: return "must-understand";
    case storability::no_store: return "no-store";
    case storability::private_response: return "private";
    case storability::authorization: return "authorization";
    case storability::vary_any: return "vary-any";
    case storability::set_cookie: return "set-cookie";
    case storability::cookie: return "cookie";
    case storability::no_lifetime: return "no-lifetime";
    case storability::useless: return "no-lifetime-or-validator";
    }
    return "status";
}

bool is_understood(unsigned status) noexcept {
    switch (status) {
    case 206:
    case 304:
    case 418: return false;
    case 421:
    case 422:
    case 426: return true;
    default:
        return (status >= 200 && status <= 205) || (status >= 300 && status <= 308) ||
               (status >= 400 && status <= 417) || (status >= 500 && status <= 505);
    }
}

std::string_view in_words(storability verdict) noexcept {
    switch (verdict) {
    case storability::storable: return "it may be stored";
    case storability::method: return "answers to this method are not stored";
    case storability::no_store_request: return "the client said no-store";
    case storability::partial: return "it was a part, and nothing says of what";
    case storability::status: return "answers of this status are not stored";
    case storability::must_understand:
        return "the origin said must-understand, and this cache knows no rules for the status";
    case storability::no_store: return "the origin said no-store";
    case storability::private_response: return "the origin said private";
    case storability::authorization:
        return "the request has Authorization, and the origin did not allow sharing the answer";
    case storability::vary_any:
        return "the origin said Vary: *, more names than are kept, or one of a field that is "
               "written here";
    case storability::set_cookie:
        return "it has Set-Cookie, and no lifetime that lets it be shared";
    case storability::cookie:
        return "the request has Cookie, and the origin did not allow sharing the answer";
    case storability::no_lifetime:
        return "the origin did not say how long it is good, and its status allows no guess";
    case storability::useless: return "it is never fresh, and has no validator to ask with";
    }
    return "answers of this status are not stored";
}

std::string_view section_of(storability verdict) noexcept {
    switch (verdict) {
    case storability::no_store_request: return "RFC 9111 5.2.1.5";
    case storability::must_understand: return "RFC 9111 5.2.2.3";
    case storability::no_store: return "RFC 9111 5.2.2.5";
    case storability::private_response: return "RFC 9111 5.2.2.7";
    case storability::authorization: return "RFC 9111 3.5";
    case storability::vary_any: return "RFC 9111 4.1";
    case storability::set_cookie:
    case storability::cookie: return "RFC 9111 7.3";
    case storability::storable:
    case storability::method:
    case storability::partial:
    case storability::status:
    case storability::no_lifetime:
    case storability::useless: break;
    }
    return "RFC 9111 3";
}

storability judge_storable(std::string_view method,
                           unsigned status,
                           field_list request,
                           const request_directives& asked,
                           field_list response,
                           const response_directives& allowed,
                           const freshness_facts& facts,
                           const storing_rules& rules) noexcept {
    if (method != "GET") {
        return storability::method;
    }
    return judge_answer(status, request, asked, response, allowed, facts, rules);
}

storability judge_post(unsigned status,
                       const target& wanted,
                       field_list request,
                       const request_directives& asked,
                       field_list response,
                       const response_directives& allowed,
                       const freshness_facts& facts,
                       const storing_rules& rules) {
    const auto* location = find(response, field_id::content_location);
    const bool stands_for_url = status >= 200 && status <= 299 && is_stated(facts) && location &&
                                count(response, field_id::content_location) == 1 &&
                                names_target(location->value, wanted);
    if (!stands_for_url) {
        return storability::method;
    }
    return judge_answer(status, request, asked, response, allowed, facts, rules);
}

}  // namespace reprise::proxy::http
