#include "proxy/http/cache_status.hpp"

#include "proxy/http/characters.hpp"
#include "proxy/http/structured_fields.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

namespace reprise::proxy::http {

namespace {

/// RFC 9651 3.3.4.
bool is_sf_token(std::string_view text) noexcept {
    constexpr std::string_view marks = "!#$%&'*+-.^_`|~:/";
    return !text.empty() && (is_alpha(text.front()) || text.front() == '*') &&
           std::all_of(text.begin(), text.end(), [&](char c) {
               return is_alpha(c) || (c >= '0' && c <= '9') ||
                      marks.find(c) != std::string_view::npos;
           });
}

/// A token as it is, anything else as a string (RFC 9651 3.3.3: printable ASCII).
void append_text(std::string& out, std::string_view text) {
    if (is_sf_token(text)) {
        out.append(text);
        return;
    }
    out.push_back('"');
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out.push_back('\\');
        }
        out.push_back(c >= ' ' && c <= '~' ? c : '?');
    }
    out.push_back('"');
}

/// RFC 9651 3.3.1: an integer has at most 15 digits.
void append_integer(std::string& out, std::int64_t value) {
    constexpr std::int64_t most = 999'999'999'999'999;
    std::array<char, 20> digits;
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), std::clamp(value, -most, most))
            .ptr;
    out.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

}  // namespace

std::string_view to_string(forward_reason reason) noexcept {
    switch (reason) {
    case forward_reason::none: return "none";
    case forward_reason::bypass: return "bypass";
    case forward_reason::method: return "method";
    case forward_reason::uri_miss: return "uri-miss";
    case forward_reason::vary_miss: return "vary-miss";
    case forward_reason::miss: return "miss";
    case forward_reason::request: return "request";
    case forward_reason::stale: return "stale";
    case forward_reason::partial: return "partial";
    }
    return "none";
}

void append_cache_status(std::string& out, std::string_view name, const cache_status& status) {
    append_text(out, name);
    if (status.hit) {
        out.append("; hit");
    } else if (status.forward != forward_reason::none) {
        out.append("; fwd=").append(to_string(status.forward));
        if (status.forward_status != 0) {
            out.append("; fwd-status=");
            append_integer(out, status.forward_status);
        }
    }
    if (status.ttl) {
        out.append("; ttl=");
        append_integer(out, status.ttl->count());
    }
    if (status.stored) {
        out.append("; stored");
    }
    if (status.collapsed) {
        out.append("; collapsed");
    }
    if (!status.detail.empty()) {
        out.append("; detail=");
        append_text(out, status.detail);
    }
}

namespace {

/// What the last cache that has its say in Cache-Status says of how it came to the response.
struct last_say {
    bool forwarded = false, collapsed = false;
    std::optional<std::int64_t> status;  ///< of the next hop
};

last_say last_say_of(field_list fields) noexcept {
    std::string_view last;
    for (const auto& line : fields) {
        if (iequals(line.name, "Cache-Status")) {
            for_each_member(line.value, [&last](std::string_view member) {
                last = member;
                return true;
            });
        }
    }
    // Behind the cache's name, a token or a string.
    std::size_t at = 0;
    for (bool quoted = false; at < last.size() && (quoted || last[at] != ';'); ++at) {
        if (last[at] == '"') {
            quoted = !quoted;
        } else if (quoted && last[at] == '\\') {
            ++at;
        }
    }
    last_say said;
    parameter_reader reader{last.substr(std::min(at, last.size()))};
    while (const auto one = reader.next()) {
        if (one->key == "collapsed") {
            said.collapsed = one->value.kind == sf_kind::boolean && one->value.number == 1;
        } else if (one->key == "fwd") {
            said.forwarded = true;
        } else if (one->key == "fwd-status" && one->value.kind == sf_kind::integer) {
            said.status = one->value.number;
        }
    }
    return reader.failed() ? last_say{} : said;
}

}  // namespace

bool was_collapsed(field_list fields) noexcept {
    return last_say_of(fields).collapsed;
}

bool was_forwarded(field_list fields, unsigned status) noexcept {
    constexpr std::int64_t not_modified = 304;
    const auto said = last_say_of(fields);
    const auto came = said.status.value_or(status);
    // A 304 of the next hop's confirmed what it answers with; a 200 of it was what the condition here asked for.
    return said.forwarded && !said.collapsed &&
           (came == status || came == not_modified || (status == not_modified && came == 200));
}

}  // namespace reprise::proxy::http
