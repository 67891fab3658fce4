#include "proxy/http/freshness.hpp"

#include "proxy/http/date.hpp"

#include <algorithm>
#include <optional>

namespace reprise::proxy::http {

namespace {

using std::chrono::floor;
using std::chrono::milliseconds;

/// The first line with this id as a date.
std::optional<wall_time> date_of(field_list fields, field_id id, wall_time now) noexcept {
    const auto* line = find(fields, id);
    return line ? parse_date(line->value, now) : std::nullopt;
}

struct lifetime {
    seconds length{0};
    lifetime_source source = lifetime_source::none;
};

lifetime heuristic_lifetime(field_list response,
                            wall_time date,
                            wall_time now,
                            const freshness_rules& rules) noexcept {
    const auto modified = date_of(response, field_id::last_modified, now);
    if (!modified || *modified >= date) {
        return {};
    }
    const auto unchanged_for = static_cast<double>(floor<seconds>(date - *modified).count());
    const auto most = static_cast<double>(rules.heuristic_most.count());
    const auto guess = std::clamp(unchanged_for * rules.heuristic_fraction, 0.0, most);
    return {seconds{static_cast<seconds::rep>(guess)}, lifetime_source::heuristic};
}

// RFC 9111 4.2.1: the first that is there counts, valid or not. No heuristic beside an explicit
// time (4.2.2), even an invalid one: it shows that the origin meant to say something.
lifetime lifetime_of(unsigned status,
                     field_list response,
                     const response_directives& directives,
                     wall_time date,
                     wall_time now,
                     const freshness_rules& rules) noexcept {
    if (directives.s_maxage) {
        return {*directives.s_maxage, lifetime_source::s_maxage};
    }
    if (directives.max_age) {
        return {*directives.max_age, lifetime_source::max_age};
    }
    if (!directives.targeted && find(response, field_id::expires)) {
        const auto expires = date_of(response, field_id::expires, now).value_or(date);
        return {std::max(floor<seconds>(expires - date), seconds{0}), lifetime_source::expires};
    }
    if (rules.negative > seconds{0} && is_negative(status)) {
        return {rules.negative, lifetime_source::negative};
    }
    const bool served = is_heuristically_cacheable(status) &&
                        (rules.heuristic_errors || status < 400 || status == 410);
    if (directives.public_ || served) {
        return heuristic_lifetime(response, date, now, rules);
    }
    return {};
}

// Whether at_least is for what says so.
bool may_be_raised(lifetime_source source, const overrides& set_aside) noexcept {
    switch (source) {
    case lifetime_source::s_maxage: return set_aside.s_maxage;
    case lifetime_source::max_age: return set_aside.max_age;
    case lifetime_source::expires: return set_aside.expires;
    case lifetime_source::heuristic:
    case lifetime_source::none: return true;
    case lifetime_source::negative: break;
    }
    return false;
}

lifetime within_bounds(lifetime found, unsigned status, const freshness_rules& rules) noexcept {
    const bool meant = is_heuristically_cacheable(status) && (status < 400 || status == 410);
    if (found.length < rules.at_least && meant && may_be_raised(found.source, rules.set_aside)) {
        found = {rules.at_least, lifetime_source::heuristic};
    }
    if (rules.at_most) {
        found.length = std::min(found.length, *rules.at_most);
    }
    return found;
}

}  // namespace

std::string_view to_string(lifetime_source source) noexcept {
    switch (source) {
    case lifetime_source::s_maxage: return "s-maxage";
    case lifetime_source::max_age: return "max-age";
    case lifetime_source::expires: return "expires";
    case lifetime_source::heuristic: return "heuristic";
    case lifetime_source::negative: return "negative";
    case lifetime_source::none: return "none";
    }
    return "none";
}

bool is_heuristically_cacheable(unsigned status) noexcept {
    switch (status) {
    case 200:
    case 203:
    case 204:
    case 206:
    case 300:
    case 301:
    case 308:
    case 404:
    case 405:
    case 410:
    case 414:
    case 501: return true;
    default: return false;
    }
}

bool is_negative(unsigned status) noexcept {
    return status == 404 || status == 410 || (status >= 500 && status <= 599);
}

std::optional<seconds> stated_age(field_list response) noexcept {
    const auto* line = find(response, field_id::age);
    if (!line) {
        return std::nullopt;
    }
    auto first = line->value.substr(0, line->value.find(','));
    while (!first.empty() && (first.back() == ' ' || first.back() == '\t')) {
        first.remove_suffix(1);
    }
    return parse_delta_seconds(first);
}

freshness_facts freshness_of(unsigned status,
                             field_list response,
                             const response_directives& directives,
                             wall_time request_time,
                             wall_time response_time,
                             const freshness_rules& rules) noexcept {
    const auto date = date_of(response, field_id::date, response_time).value_or(response_time);
    const auto found = within_bounds(
        lifetime_of(status, response, directives, date, response_time, rules), status, rules);

    // RFC 9111 4.2.3, by its names. In milliseconds to the end, so that three roundings don't add
    // up to a second; a clock that stepped back during the exchange makes no negative delay.
    const auto apparent_age = std::max(response_time - date, milliseconds{0});
    const auto response_delay = std::max(response_time - request_time, milliseconds{0});
    const auto corrected_age_value = stated_age(response).value_or(seconds{0}) + response_delay;
    const auto corrected_initial_age = std::max<milliseconds>(apparent_age, corrected_age_value);

    freshness_facts facts;
    facts.response_time = response_time;
    facts.initial_age = floor<seconds>(corrected_initial_age);
    facts.lifetime = found.length;
    facts.source = found.source;
    return facts;
}

seconds current_age(const freshness_facts& facts, wall_time now) noexcept {
    const auto resident_time = std::max(now - facts.response_time, milliseconds{0});
    return facts.initial_age + floor<seconds>(resident_time);
}

wall_time fresh_until(const freshness_facts& facts) noexcept {
    if (facts.lifetime <= facts.initial_age) {
        return wall_time::min();
    }
    return facts.response_time + (facts.lifetime - facts.initial_age);
}

seconds remaining(const freshness_facts& facts, wall_time now) noexcept {
    return facts.lifetime - current_age(facts, now);
}

}  // namespace reprise::proxy::http
