#include "proxy/cache/recency.hpp"

#include "proxy/cache/partial_response.hpp"
#include "proxy/http/conditional.hpp"
#include "proxy/http/date.hpp"
#include "proxy/http/vary.hpp"

#include <atomic>
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

bool is_known(const stored_response& one) noexcept {
    return one.asked_at() != wall_time::min();
}

// Within a millisecond there are never half as many as there are turns.
bool was_asked_before(const stored_response& one, const stored_response& other) noexcept {
    const auto ahead = static_cast<unsigned>(other.asked_turn() + turns - one.asked_turn()) % turns;
    return is_known(one) && is_known(other) && ahead != 0 && ahead < turns / 2;
}

std::optional<wall_time> date_in(http::field_list lines, wall_time came) {
    const auto* date = http::find(lines, http::field_id::date);
    return date == nullptr ? std::nullopt : http::parse_date(date->value, came);
}

std::optional<wall_time> date_of(const stored_response& one) {
    return date_in(one.fields(), came(one));
}

// Weak or strong: so much the same that neither is newer.
bool have_one_tag(const stored_response& one, const stored_response& other) {
    const auto lines = one.validating_fields();
    const auto other_lines = other.validating_fields();
    const auto* tag = http::find(lines, http::field_id::etag);
    const auto* other_tag = http::find(other_lines, http::field_id::etag);
    return tag != nullptr && other_tag != nullptr && http::equal_weak(tag->value, other_tag->value);
}

bool is_spared(const newcomer& by, const stored_response& older) {
    if (by.is_stored) {
        return !by.beside_disk && have_one_tag(by.response, older);
    }
    return have_one_tag(by.response, older) || are_of_one_representation(by.response, older);
}

}  // namespace

std::uint16_t next_turn() noexcept {
    static std::atomic<std::uint16_t> next{0};
    return next.fetch_add(1, std::memory_order_relaxed) % turns;
}

bool is_outdated_by(const stored_response& newcomer, const stored_response& kept) {
    if (asked(newcomer) >= came(kept)) {
        return asked(kept) >= came(newcomer) && was_asked_before(newcomer, kept);
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

bool is_dated_before(http::field_list newcomer, wall_time came, const stored_response& kept) {
    const auto theirs = date_of(kept);
    const auto ours = date_in(newcomer, came);
    return theirs && ours && *ours < *theirs;
}

bool puts_an_end_to(const newcomer& by, const stored_response& older) {
    const bool stays = by.is_stored ? older.vary() == by.response.vary()
                                    : came(older) > asked(by.response);
    return !stays && http::matches(older.vary(), older.selecting(), by.request) &&
           !is_outdated_by(by.response, older) && !is_spared(by, older);
}

}  // namespace reprise::proxy::cache
