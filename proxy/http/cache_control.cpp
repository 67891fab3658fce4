#include "proxy/http/cache_control.hpp"

#include "proxy/http/characters.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

// One pass cuts each line into directives (for_each_directive); what one means is decided where it
// is met, requests' and responses' apart.

namespace reprise::proxy::http {

namespace {

struct directive {
    std::string_view name;      ///< without white space around it
    std::string_view argument;  ///< what follows "=", raw: quotes and white space kept
    bool has_argument = false;
    bool spaced = false;  ///< white space before "="

    /// The argument as a time; none if it isn't one.
    [[nodiscard]] std::optional<seconds> time() const noexcept {
        if (!has_argument || spaced) {
            return std::nullopt;
        }
        auto text = argument;
        if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
            text = text.substr(1, text.size() - 2);
        }
        return parse_delta_seconds(text);
    }
};

/// Where the quoted string that opens at `open` closes, or npos.
std::size_t closing_quote(std::string_view line, std::size_t open) noexcept {
    for (std::size_t i = open + 1; i < line.size(); ++i) {
        if (line[i] == '\\') {
            ++i;
        } else if (line[i] == '"') {
            return i;
        }
    }
    return std::string_view::npos;
}

directive split(std::string_view member, std::size_t equals) noexcept {
    directive found;
    found.name = member;
    if (equals != std::string_view::npos) {
        found.has_argument = true;
        found.name = member.substr(0, equals);
        found.argument = member.substr(equals + 1);
        while (!found.argument.empty() && is_blank(found.argument.back())) {
            found.argument.remove_suffix(1);
        }
    }
    while (!found.name.empty() && is_blank(found.name.back())) {
        found.name.remove_suffix(1);
        found.spaced = found.has_argument;
    }
    return found;
}

// One pass. A quoted string opens only as an argument, that is after "=" and white space: a quote
// elsewhere means nothing in this grammar and must not swallow the directives behind it. The first
// quote that isn't closed ends quoting for the line, which keeps the pass linear.
template <class Each>
void for_each_directive(std::string_view line, Each&& each) {
    bool quoting = true;
    std::size_t at = 0;
    while (at < line.size()) {
        if (line[at] == ',' || is_blank(line[at])) {
            ++at;
            continue;
        }
        const auto begin = at;
        auto equals = std::string_view::npos;
        for (; at < line.size() && line[at] != ','; ++at) {
            if (line[at] != '=' || equals != std::string_view::npos) {
                continue;
            }
            equals = at - begin;
            auto next = at + 1;
            while (next < line.size() && is_blank(line[next])) {
                ++next;
            }
            if (quoting && next < line.size() && line[next] == '"') {
                const auto close = closing_quote(line, next);
                quoting = close != std::string_view::npos;
                at = quoting ? close : next;
            }
        }
        each(split(line.substr(begin, at - begin), equals));
    }
}

/// The first time counts; what is no time reads as zero.
void keep_first(std::optional<seconds>& time, const directive& found) noexcept {
    if (!time) {
        time = found.time().value_or(seconds{0});
    }
}

/// The first valid time counts.
void keep_first_valid(std::optional<seconds>& time, const directive& found) noexcept {
    if (!time) {
        time = found.time();
    }
}

void apply(request_directives& into, const directive& found) noexcept {
    const auto is = [&](std::string_view name) { return iequals(found.name, name); };
    if (is("max-age")) {
        keep_first(into.max_age, found);
    } else if (is("min-fresh")) {
        keep_first_valid(into.min_fresh, found);
    } else if (is("max-stale")) {
        if (found.has_argument) {
            keep_first_valid(into.max_stale, found);
        } else {
            into.max_stale_any = true;
        }
    } else if (is("no-cache")) {
        into.no_cache = true;
    } else if (is("no-store")) {
        into.no_store = true;
    } else if (is("only-if-cached")) {
        into.only_if_cached = true;
    } else if (is("no-transform")) {
        into.no_transform = true;
    }
}

/// What a response can't be stored, reused or sent without.
bool is_needed(std::string_view name) noexcept {
    constexpr std::array<std::string_view, 15> needed{"age",
                                                      "cache-control",
                                                      "content-encoding",
                                                      "content-length",
                                                      "content-range",
                                                      "content-type",
                                                      "date",
                                                      "etag",
                                                      "expires",
                                                      "last-modified",
                                                      "location",
                                                      "transfer-encoding",
                                                      "trailer",
                                                      "vary",
                                                      "via"};
    return std::any_of(
        needed.begin(), needed.end(), [name](std::string_view one) { return iequals(one, name); });
}

/// Calls each(name) for what a qualified directive names. False: that is nothing, or no list of
/// field names.
template <class Each>
bool for_each_named(const directive& found, Each&& each) {
    auto list = found.argument;
    if (found.spaced) {
        return false;
    }
    if (list.size() >= 2 && list.front() == '"' && list.back() == '"') {
        list = list.substr(1, list.size() - 2);
    }
    bool any = false;
    while (!list.empty()) {
        const auto comma = std::min(list.find(','), list.size());
        auto name = list.substr(0, comma);
        list.remove_prefix(std::min(comma + 1, list.size()));
        while (!name.empty() && is_blank(name.front())) {
            name.remove_prefix(1);
        }
        while (!name.empty() && is_blank(name.back())) {
            name.remove_suffix(1);
        }
        if (name.empty()) {
            continue;
        }
        if (!std::all_of(name.begin(), name.end(), is_tchar)) {
            return false;
        }
        any = true;
        each(name);
    }
    return any;
}

/// How a directive that may be qualified by field names was seen so far.
struct qualified_directive {
    bool plain = false, with_fields = false;
    bool whole_for_argument = false;  ///< plain, by one that has an argument
    /// @param names_before  of all such directives of the message
    void note(const directive& found, std::size_t& names_before) noexcept {
        bool needed = false;
        const auto look = [&](std::string_view name) {
            ++names_before;
            needed = needed || names_before > withheld_names::most || is_needed(name);
        };
        const bool names = found.has_argument && for_each_named(found, look);
        const bool can_be_left_out = names && !needed;
        (can_be_left_out ? with_fields : plain) = true;
        whole_for_argument = whole_for_argument || (found.has_argument && !can_be_left_out);
    }
};

struct response_reader {
    response_directives into;
    qualified_directive no_cache, private_;
    std::size_t names = 0;

    void apply(const directive& found) noexcept {
        const auto is = [&](std::string_view name) { return iequals(found.name, name); };
        switch (found.name.size()) {
        case 6: into.public_ |= is("public"); break;
        case 7:
            if (is("max-age")) {
                keep_first(into.max_age, found);
            } else if (is("private")) {
                private_.note(found, names);
            }
            break;
        case 8:
            if (is("s-maxage")) {
                keep_first(into.s_maxage, found);
            } else if (is("no-cache")) {
                no_cache.note(found, names);
            } else {
                into.no_store |= is("no-store");
            }
            break;
        case 9: into.immutable |= is("immutable"); break;
        case 12: into.no_transform |= is("no-transform"); break;
        case 14:
            if (is("stale-if-error")) {
                keep_first(into.stale_if_error, found);
            }
            break;
        case 15:
            into.must_revalidate |= is("must-revalidate");
            into.must_understand |= is("must-understand");
            break;
        case 16: into.proxy_revalidate |= is("proxy-revalidate"); break;
        case 22:
            if (is("stale-while-revalidate")) {
                keep_first(into.stale_while_revalidate, found);
            }
            break;
        default: break;  // an extension that we don't know (5.2.3)
        }
    }
};

}  // namespace

std::optional<seconds> parse_delta_seconds(std::string_view text) noexcept {
    if (text.empty()) {
        return std::nullopt;
    }
    std::int64_t value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') {
            return std::nullopt;
        }
        value = std::min<std::int64_t>(value * 10 + (c - '0'), longest_delta.count());
    }
    return seconds{value};
}

request_directives read_request_directives(field_list request) noexcept {
    request_directives asked;
    bool has_cache_control = false;
    bool has_pragma = false;
    for (const auto& line : request) {
        if (line.id == field_id::cache_control) {
            has_cache_control = true;
            for_each_directive(line.value, [&](const directive& found) { apply(asked, found); });
        }
        has_pragma = has_pragma || line.id == field_id::pragma;
    }
    if (has_pragma && !has_cache_control) {
        asked.no_cache = has_token(request, field_id::pragma, "no-cache");
    }
    return asked;
}

response_directives read_response_directives(field_list response) noexcept {
    response_reader reader;
    for (const auto& line : response) {
        if (line.id == field_id::cache_control) {
            for_each_directive(line.value, [&](const directive& found) { reader.apply(found); });
        }
    }
    auto& allowed = reader.into;
    allowed.no_cache = reader.no_cache.plain;
    allowed.no_cache_fields = reader.no_cache.with_fields;
    allowed.no_cache_argument = reader.no_cache.whole_for_argument;
    allowed.private_ = reader.private_.plain;
    allowed.private_fields = reader.private_.with_fields;
    allowed.private_argument = reader.private_.whole_for_argument;
    return allowed;
}

withheld_names::withheld_names(field_list response) noexcept {
    const auto look = [&](const directive& found) {
        if (found.has_argument &&
            (iequals(found.name, "no-cache") || iequals(found.name, "private"))) {
            (void)for_each_named(found, [&](std::string_view name) {
                if (count_ < most && !is_needed(name)) {
                    names_[count_++] = name;
                }
            });
        }
    };
    for (const auto& one : response) {
        if (one.id == field_id::cache_control) {
            for_each_directive(one.value, look);
        }
    }
}

bool withheld_names::has(const field& line) const noexcept {
    const auto end = names_.begin() + static_cast<std::ptrdiff_t>(count_);
    return std::any_of(
        names_.begin(), end, [&](std::string_view name) { return iequals(name, line.name); });
}

}  // namespace reprise::proxy::http
