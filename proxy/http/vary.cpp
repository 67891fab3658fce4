#include "proxy/http/vary.hpp"

#include "proxy/http/characters.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/http/preferences.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

// emit() walks a request's values for two kinds of sink: one writes the text, the other compares
// each piece with a stored text and stops at the first that differs. So key and match can't
// disagree, and a match makes no text.

namespace reprise::proxy::http {

namespace {

bool is_before(std::string_view a, std::string_view b) noexcept {
    return std::lexicographical_compare(
        a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) < lower(y); });
}

/// The names as they stand in the response, each once; `any` as in vary_spec.
struct gathered_names {
    std::array<std::string_view, vary_spec::most_names> names{};
    std::size_t count = 0;
    std::size_t bytes = 0;
    bool any = false;

    /// False when nothing more can change the outcome.
    bool add(std::string_view name) noexcept {
        if (name == "*" || !is_token(name)) {
            any = true;
            return false;
        }
        for (std::size_t i = 0; i < count; ++i) {
            if (iequals(names[i], name)) {
                return true;
            }
        }
        bytes += name.size() + 1;
        if (count == names.size() || bytes > vary_spec::most_bytes) {
            any = true;
            return false;
        }
        names[count++] = name;
        return true;
    }
};

gathered_names gather(field_list response) noexcept {
    gathered_names found;
    for (const auto& line : response) {
        if (line.id == field_id::vary && !found.any) {
            for_each_member(line.value, [&](std::string_view name) { return found.add(name); });
        }
    }
    return found;
}

/// Fields whose list members have no case and no order (RFC 9110 12.5.2 to 12.5.4).
bool is_preference(std::string_view name) noexcept {
    return name == "accept-language" || name == "accept-encoding" || name == "accept-charset";
}

/// Whether a field may be a list: of those that are none by their definition what is beside a comma is
/// content, in a comment (User-Agent), a URL (Referer) or what an origin made up (Cookie).
bool may_be_list(std::string_view name) noexcept {
    constexpr std::array<std::string_view, 10> none{"authorization",
                                                    "content-type",
                                                    "cookie",
                                                    "date",
                                                    "from",
                                                    "host",
                                                    "origin",
                                                    "proxy-authorization",
                                                    "referer",
                                                    "user-agent"};
    return std::find(none.begin(), none.end(), name) == none.end();
}

/// Gives `sink` the value, a list's without the white space around its unquoted commas, in pieces. False
/// if the sink has heard enough.
template <class Sink>
bool emit_value(std::string_view value, bool caseless, bool list, Sink& sink) {
    if (!list) {
        return sink.put(value, caseless);
    }
    bool quoted = false;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= value.size(); ++i) {
        if (i < value.size()) {
            if (quoted && value[i] == '\\' && i + 1 < value.size()) {
                ++i;
                continue;
            }
            quoted = quoted != (value[i] == '"');
            if (quoted || value[i] != ',') {
                continue;
            }
        }
        auto piece = value.substr(begin, i - begin);
        while (!piece.empty() && is_blank(piece.front())) {
            piece.remove_prefix(1);
        }
        while (!piece.empty() && is_blank(piece.back())) {
            piece.remove_suffix(1);
        }
        if ((begin != 0 && !sink.put(",", false)) || !sink.put(piece, caseless)) {
            return false;
        }
        begin = i + 1;
    }
    return true;
}

template <class Sink>
bool emit_preferences(const preference_list& list, Sink& sink) {
    std::string_view before = "=";
    for (const auto& [name, weight] : list.members()) {
        if (!sink.put(before, false) || !sink.put(name, true) ||
            (!weight.empty() && (!sink.put(";q=", false) || !sink.put(weight, false)))) {
            return false;
        }
        before = ",";
    }
    return list.members().empty() ? sink.put(before, false) : true;
}

/// Every line of `name`, joined: a list's by a comma, others' by what is in no value. `present` says if
/// there is one.
template <class Sink>
bool emit_lines(
    field_list request, std::string_view name, bool caseless, Sink& sink, bool& present) {
    const bool list = may_be_list(name);
    for (const auto& line : request) {
        if (!iequals(line.name, name)) {
            continue;
        }
        if (!sink.put(present ? (list ? "," : "\r") : "=", false) ||
            !emit_value(line.value, caseless, list, sink)) {
            return false;
        }
        present = true;
    }
    return true;
}

// For each name: "-" if the request lacks it, else "=" and the joined value; then a line feed,
// which no value contains. So a value can never imitate the end of its field or the absence of the
// next. What preference_list sorted can't be mistaken for what it left as it stands: the one is
// plain when it is read again, the other is not.
template <class Sink>
void emit(vary_view spec, field_list request, Sink& sink) {
    std::string_view names = spec.names;
    while (!names.empty()) {
        const auto comma = names.find(',');
        const auto name = names.substr(0, comma);
        names = comma == std::string_view::npos ? std::string_view{} : names.substr(comma + 1);

        bool present = false;
        bool more = true;
        if (is_preference(name) && find(request, name)) {
            present = true;
            const preference_list list{request, name};
            bool joined = false;
            more = list.is_plain() ? emit_preferences(list, sink)
                                   : emit_lines(request, name, true, sink, joined);
        } else {
            more = emit_lines(request, name, false, sink, present);
        }
        if (!more) {
            return;
        }
        if (!sink.put(present ? "\n" : "-\n", false)) {
            return;
        }
    }
}

struct appender {
    std::string text;
    bool put(std::string_view piece, bool caseless) {
        const auto old_size = text.size();
        text.append(piece);
        if (caseless) {
            std::transform(text.begin() + static_cast<std::ptrdiff_t>(old_size),
                           text.end(),
                           text.begin() + static_cast<std::ptrdiff_t>(old_size),
                           lower);
        }
        return true;
    }
};

struct comparer {
    std::string_view rest;
    bool same = true;
    bool put(std::string_view piece, bool caseless) noexcept {
        const auto expected = rest.substr(0, piece.size());
        same = caseless ? std::equal(piece.begin(),
                                     piece.end(),
                                     expected.begin(),
                                     expected.end(),
                                     [](char x, char y) { return lower(x) == y; })
                        : piece == expected;
        rest.remove_prefix(expected.size());
        return same;
    }
};

}  // namespace

bool vary_spec::has(std::string_view name) const noexcept {
    for (std::string_view left = names; !left.empty();) {
        const auto comma = std::min(left.find(','), left.size());
        if (left.substr(0, comma) == name) {
            return true;
        }
        left.remove_prefix(std::min(comma + 1, left.size()));
    }
    return false;
}

vary_spec read_vary(field_list response) {
    auto found = gather(response);
    vary_spec spec;
    spec.any = found.any;
    if (found.any || found.count == 0) {
        return spec;
    }
    const auto end = found.names.begin() + static_cast<std::ptrdiff_t>(found.count);
    std::sort(found.names.begin(), end, is_before);
    spec.names.reserve(found.bytes);
    for (auto name = found.names.begin(); name != end; ++name) {
        if (!spec.names.empty()) {
            spec.names.push_back(',');
        }
        std::transform(name->begin(), name->end(), std::back_inserter(spec.names), lower);
    }
    return spec;
}

bool varies_by_anything(field_list response) noexcept {
    return gather(response).any;
}

std::string selecting_values(vary_view spec, field_list request) {
    appender out;
    emit(spec, request, out);
    return std::move(out.text);
}

bool matches(vary_view spec, std::string_view stored_values, field_list request) noexcept {
    if (spec.any) {
        return false;
    }
    comparer out{stored_values};
    emit(spec, request, out);
    return out.same && out.rest.empty();
}

}  // namespace reprise::proxy::http
