// See storable.hpp.

#include "filter/plugins/varnish/storable.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace reprise::varnish {

namespace {

char lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same(std::string_view text, std::string_view wanted) noexcept {
    return std::equal(text.begin(), text.end(), wanted.begin(), wanted.end(), [](char a, char b) {
        return lower(a) == b;
    });
}

bool contains(std::string_view text, std::string_view wanted) noexcept {
    for (; text.size() >= wanted.size(); text.remove_prefix(1)) {
        if (same(text.substr(0, wanted.size()), wanted)) {
            return true;
        }
    }
    return false;
}

std::string_view trimmed(std::string_view text) noexcept {
    const auto first = text.find_first_not_of(" \t");
    return first == text.npos ? std::string_view{}
                              : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The next member of a list, taken off; commas in quotes part nothing.
std::string_view next_of(std::string_view& list) noexcept {
    bool is_quoted = false;
    std::size_t end = 0;
    for (; end < list.size() && (is_quoted || list[end] != ','); ++end) {
        is_quoted ^= list[end] == '"';
    }
    const auto member = trimmed(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
    return member;
}

/// The value of the first such directive: empty where it has none, nothing where there is no such directive.
std::optional<std::string_view> directive(std::string_view list, std::string_view name) noexcept {
    while (!list.empty()) {
        const auto member = next_of(list);
        const auto equals = member.find('=');
        if (same(trimmed(member.substr(0, equals)), name)) {
            return equals == member.npos ? std::string_view{} : trimmed(member.substr(equals + 1));
        }
    }
    return std::nullopt;
}

/// As Varnish reads one: digits, a fraction that is dropped; 0 for what is none.
double seconds_of(std::string_view text) noexcept {
    constexpr double most = UINT32_MAX;
    double seconds = 0;
    std::size_t at = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
        seconds = std::min(seconds * 10 + (text[at] - '0'), most);
    }
    return at == 0 || (at < text.size() && text[at] != '.') ? 0 : seconds;
}

/// Whether the built-in rules give it a lifetime of themselves, only if it says so, or never.
enum class status_rule { always, if_said, never };

status_rule rule_of(int status) noexcept {
    switch (status) {
    case 200:
    case 203:
    case 204:
    case 206:
    case 300:
    case 301:
    case 304: return status_rule::always;
    case 302:
    case 307:
    case 404:
    case 410:
    case 414: return status_rule::if_said;
    default: return status_rule::never;
    }
}

/// What it says itself.
std::optional<double> lifetime_said(const answer& given) noexcept {
    for (const auto* name : {"s-maxage", "max-age"}) {
        // One without a number is one that says nothing, to Varnish.
        if (const auto value = directive(given.cache_control, name); value && !value->empty()) {
            return seconds_of(*value);
        }
    }
    if (!given.has_expires) {
        return std::nullopt;
    }
    if (given.expires == 0 || given.expires < given.date) {
        return 0;
    }
    const bool is_by_our_clock = given.date == 0 ||
                                 std::fabs(given.date - given.now) < given.clock_skew;
    return given.expires - (is_by_our_clock ? given.now : given.date);
}

bool is_forbidden(const answer& given) noexcept {
    if (given.surrogate_control.data() != nullptr) {
        return contains(given.surrogate_control, "no-store");
    }
    return contains(given.cache_control, "no-cache") || contains(given.cache_control, "no-store") ||
           contains(given.cache_control, "private");
}

bool varies_by_all(std::string_view vary) noexcept {
    while (!vary.empty()) {
        if (next_of(vary) == "*") {
            return true;
        }
    }
    return false;
}

bool is_for_all(std::string_view cache_control) noexcept {
    return directive(cache_control, "public") || directive(cache_control, "s-maxage") ||
           directive(cache_control, "must-revalidate");
}

}  // namespace

verdict judge(const answer& given) noexcept {
    const auto rule = rule_of(given.status);
    if (rule == status_rule::never) {
        return verdict::bad_status;
    }
    if (is_forbidden(given)) {
        return verdict::forbidden;
    }
    if (given.sets_cookie) {
        return verdict::sets_cookie;
    }
    if (varies_by_all(given.vary)) {
        return verdict::varies_by_all;
    }
    if (given.was_authorized && !is_for_all(given.cache_control)) {
        return verdict::authorized;
    }
    const auto said = lifetime_said(given);
    const auto lifetime = said.value_or(rule == status_rule::always ? given.default_ttl : 0);
    return lifetime > given.age ? verdict::storable : verdict::no_lifetime;
}

}  // namespace reprise::varnish
