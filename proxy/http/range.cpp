#include "proxy/http/range.hpp"

#include "proxy/http/characters.hpp"
#include "proxy/http/conditional.hpp"
#include "proxy/http/date.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

// Ranges are resolved against the length as they are read. What is sent comes of narrowing that: a
// greedy set is ignored, ranges that are close are joined, and parts that would take as much as the
// whole are the whole.

namespace reprise::proxy::http {

namespace {

constexpr auto beyond = std::numeric_limits<std::uint64_t>::max();

/// Takes digits from the front; none if there are none. What doesn't fit is `beyond`.
std::optional<std::uint64_t> take_number(std::string_view& text) noexcept {
    std::size_t used = 0;
    std::uint64_t value = 0;
    for (; used < text.size() && text[used] >= '0' && text[used] <= '9'; ++used) {
        const auto digit = static_cast<std::uint64_t>(text[used] - '0');
        value = value > (beyond - digit) / 10 ? beyond : value * 10 + digit;
    }
    text.remove_prefix(used);
    return used == 0 ? std::nullopt : std::optional{value};
}

/// One member of a byte range set as written (RFC 9110 14.1.2).
struct range_spec {
    std::optional<std::uint64_t> first;  ///< none: `last` is a suffix's length
    std::optional<std::uint64_t> last;
};

std::optional<range_spec> read_spec(std::string_view text) noexcept {
    range_spec spec;
    spec.first = take_number(text);
    if (!text.starts_with('-')) {
        return std::nullopt;
    }
    text.remove_prefix(1);
    spec.last = take_number(text);
    const bool backwards = spec.first && spec.last && *spec.last < *spec.first;
    if (!text.empty() || (!spec.first && !spec.last) || backwards) {
        return std::nullopt;
    }
    return spec;
}

std::optional<byte_range> resolve(const range_spec& spec, std::uint64_t length) noexcept {
    if (length == 0) {
        return std::nullopt;
    }
    if (!spec.first) {
        const auto suffix = std::min(*spec.last, length);
        return suffix == 0 ? std::nullopt : std::optional{byte_range{length - suffix, length - 1}};
    }
    if (*spec.first >= length) {
        return std::nullopt;
    }
    return byte_range{*spec.first, std::min(spec.last.value_or(beyond), length - 1)};
}

/// The only line with this id, or null; `several` says which of the two nulls.
const field* only(field_list fields, field_id id, bool& several) noexcept {
    several = count(fields, id) > 1;
    return several ? nullptr : find(fields, id);
}

bool is_close(const byte_range& a, const byte_range& b) noexcept {
    const auto& low = a.first <= b.first ? a : b;
    const auto& high = a.first <= b.first ? b : a;
    return high.first <= low.last || high.first - low.last - 1 < least_gap;
}

// What RFC 9110 14.2 names as signs of a broken client or an attack. Three ranges share a byte if
// and only if they do at the first byte of one of them.
bool is_greedy(std::span<const byte_range> parts) noexcept {
    const auto ascends = std::is_sorted(
        parts.begin(), parts.end(), [](const byte_range& a, const byte_range& b) {
            return a.first < b.first;
        });
    if (parts.size() > 2 && !ascends) {
        return true;
    }
    return std::any_of(parts.begin(), parts.end(), [&](const byte_range& one) {
        return std::count_if(parts.begin(), parts.end(), [&](const byte_range& other) {
                   return other.first <= one.first && one.first <= other.last;
               }) > 2;
    });
}

// They are two, or ascend (is_greedy): so only neighbours can be close.
range_set coalesced(std::span<const byte_range> parts) noexcept {
    range_set merged;
    merged.answer = range_answer::part;
    for (const auto& part : parts) {
        auto* const before = merged.count > 0 ? &merged.parts[merged.count - 1] : nullptr;
        if (before && is_close(*before, part)) {
            *before = {std::min(before->first, part.first), std::max(before->last, part.last)};
        } else {
            merged.parts[merged.count++] = part;
        }
    }
    return merged;
}

}  // namespace

std::string_view to_string(range_answer answer) noexcept {
    switch (answer) {
    case range_answer::whole: return "whole";
    case range_answer::part: return "part";
    case range_answer::unsatisfiable: return "unsatisfiable";
    }
    return "whole";
}

range_set parse_ranges(std::string_view text, std::uint64_t length) noexcept {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos || !iequals(text.substr(0, equals), "bytes")) {
        return {};
    }
    text.remove_prefix(equals + 1);

    range_set set;
    std::size_t asked = 0;
    bool wants_suffix = false;
    while (!text.empty()) {
        const auto comma = std::min(text.find(','), text.size());
        const auto member = trimmed(text.substr(0, comma));
        text.remove_prefix(std::min(comma + 1, text.size()));
        if (member.empty()) {
            continue;
        }
        const auto spec = read_spec(member);
        if (!spec || ++asked > most_ranges) {
            return {};
        }
        wants_suffix = wants_suffix || (!spec->first && *spec->last > 0);
        if (const auto part = resolve(*spec, length)) {
            set.parts[set.count++] = *part;
        }
    }
    if (asked == 0 || (length == 0 && wants_suffix)) {
        return {};
    }
    set.answer = set.count > 0 ? range_answer::part : range_answer::unsatisfiable;
    return set;
}

bool has_strong_last_modified(field_list response, wall_time now) noexcept {
    const auto* modified_line = find(response, field_id::last_modified);
    const auto* date_line = find(response, field_id::date);
    if (!modified_line || !date_line) {
        return false;
    }
    const auto modified = parse_date(modified_line->value, now);
    const auto date = parse_date(date_line->value, now);
    return modified && date && *date - *modified >= std::chrono::seconds{1};
}

bool if_range_holds(field_list request, field_list stored, wall_time now) noexcept {
    bool several = false;
    const auto* condition = only(request, field_id::if_range, several);
    if (!condition) {
        return !several;
    }
    const auto* etag = find(stored, field_id::etag);
    if (is_strong(condition->value)) {
        return etag && equal_strong(condition->value, etag->value);
    }
    if (!has_strong_last_modified(stored, now)) {
        return false;
    }
    const auto wanted = parse_date(condition->value, now);
    return wanted && *wanted == parse_date(find(stored, field_id::last_modified)->value, now);
}

range_set judge_ranges(std::string_view method,
                       field_list request,
                       field_list stored,
                       std::uint64_t length,
                       wall_time now) noexcept {
    bool several = false;
    const auto* range = only(request, field_id::range, several);
    if (!range || method != "GET") {
        return {};
    }
    const auto set = parse_ranges(range->value, length);
    if (set.answer == range_answer::whole || !if_range_holds(request, stored, now)) {
        return {};
    }
    if (set.count < 2) {
        return set;
    }
    if (is_greedy(set.ranges())) {
        return {};
    }
    const auto merged = coalesced(set.ranges());
    if (merged.count == 1) {
        return merged;
    }
    std::uint64_t bytes = 0;
    for (const auto& part : merged.ranges()) {
        bytes += part.size() + least_gap;  // the parts are disjoint, so this is below 2 x length
    }
    return bytes >= length || find(stored, field_id::content_encoding) ? range_set{} : merged;
}

content_range parse_content_range(std::string_view text) noexcept {
    constexpr std::string_view unit = "bytes ";
    if (!text.starts_with(unit)) {
        return {};
    }
    content_range out;
    const auto* at = text.data() + unit.size();
    const auto* const end = text.data() + text.size();
    const auto number = [&](std::uint64_t& into, char behind) {
        const auto [stop, error] = std::from_chars(at, end, into);
        const bool whole = error == std::errc{} &&
                           (behind == 0 ? stop == end : stop != end && *stop == behind);
        at = whole && behind != 0 ? stop + 1 : stop;
        return whole;
    };
    if (!number(out.first, '-') || !number(out.last, '/') || !number(out.total, '\0') ||
        out.first > out.last || out.last >= out.total) {
        return {};
    }
    return out;
}

void append_content_range(std::string& out, byte_range part, std::uint64_t length) {
    out.append("bytes ")
        .append(std::to_string(part.first))
        .append("-")
        .append(std::to_string(part.last))
        .append("/")
        .append(std::to_string(length));
}

void append_unsatisfied_range(std::string& out, std::uint64_t length) {
    out.append("bytes */").append(std::to_string(length));
}

}  // namespace reprise::proxy::http
