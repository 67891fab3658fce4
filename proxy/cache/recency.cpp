#include "proxy/cache/recency.hpp"

#include "proxy/http/date.hpp"

#include <optional>

namespace reprise::proxy::cache {

namespace {

wall_time came(const stored_response& one) noexcept {
    return one.freshness().response_time;
}

wall_time asked(const stored_response& one) noexcept {
    const auto at = one.asked_at();
    return at == wall_time::min() ? came(one) : at;
}

std::optional<wall_time> date_of(const stored_response& one) {
    const auto lines = one.fields();
    const auto* date = http::find(lines, http::field_id::date);
    return date == nullptr ? std::nullopt : http::parse_date(date->value, came(one));
}

}  // namespace

bool is_outdated_by(const stored_response& newcomer, const stored_response& kept) {
    if (asked(newcomer) >= came(kept)) {
        return false;
    }
    if (asked(kept) >= came(newcomer)) {
        return true;
    }
    const auto theirs = date_of(kept);
    const auto ours = date_of(newcomer);
    if (theirs && ours && *theirs != *ours) {
        return *theirs > *ours;
    }
    return came(kept) > came(newcomer);
}

}  // namespace reprise::proxy::cache
