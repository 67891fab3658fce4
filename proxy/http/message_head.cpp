// The scanner goes forward once. Text (a target, a field value) is skipped up to the first control
// character, which then has to be the CR of a CRLF; so looking for forbidden bytes and looking for
// the end of a line is the same work.
//
// A head that arrives in pieces is scanned when its first bytes come and again when its end has
// come; in between only the new bytes are searched for line ends.

#include "proxy/http/message_head.hpp"

#include "proxy/http/characters.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

namespace reprise::proxy::http {

namespace {

constexpr const char* lone_lf = "a line ends in LF without CR";
constexpr const char* lone_cr = "a CR without LF";
constexpr const char* nul_byte = "a NUL byte";
constexpr const char* control = "a control character";

constexpr unsigned most_empty_lines =
    4;  // a client's stray CRLF behind a body; more is no accident

const char* forbidden(char c) noexcept {
    switch (c) {
    case '\n': return lone_lf;
    case '\r': return lone_cr;
    case '\0': return nul_byte;
    default: return control;
    }
}

// Where a step of the scanner came to: `at` null and `why` null means that bytes are missing.
struct position {
    const char* at = nullptr;
    const char* why = nullptr;
    failure_code code = failure_code::bad_request;
};
constexpr position missing{};

position refuse(const char* why, failure_code code = failure_code::bad_request) noexcept {
    return {nullptr, why, code};
}

// Past the CRLF that must stand at p.
position end_line(const char* p, const char* end) noexcept {
    if (p == end) {
        return missing;
    }
    if (*p != '\r') {
        return refuse(forbidden(*p));
    }
    if (end - p < 2) {
        return missing;
    }
    if (p[1] != '\n') {
        return refuse(lone_cr);
    }
    return {p + 2};
}

// Why the line from `begin` is no field line: `p` is the first byte that is not of a name.
const char* name_fault(const char* begin, const char* p, bool first) noexcept {
    if (is_blank(*p)) {
        if (p != begin) {
            return "white space in a field's name or before its colon";
        }
        return first ? "white space in front of the first field line"
                     : "a folded field line (obs-fold)";
    }
    switch (*p) {
    case ':': return "a field line without a name";
    case '\r': return "a field line without a colon";
    case '\n': return lone_lf;
    case '\0': return nul_byte;
    default: return "a character that a field's name cannot have";
    }
}

// One field line, CRLF included.
position scan_field(const char* p, const char* end, std::vector<field>& out) {
    const char* const colon = skip_token(p, end);
    if (colon == end) {
        return missing;
    }
    if (*colon != ':' || colon == p) {
        return refuse(name_fault(p, colon, out.empty()));
    }
    const char* value = colon + 1;
    while (value != end && is_blank(*value)) {
        ++value;
    }
    const char* last = skip_text(value, end);
    const auto next = end_line(last, end);
    if (next.at == nullptr) {
        return next;
    }
    while (last != value && is_blank(last[-1])) {
        --last;
    }
    const std::string_view name{p, static_cast<std::size_t>(colon - p)};
    out.push_back({boost::beast::http::string_to_field({name.data(), name.size()}),
                   name,
                   {value, static_cast<std::size_t>(last - value)}});
    return next;
}

// Field lines and the empty line that ends them.
position scan_fields(const char* p, const char* end, std::vector<field>& out, unsigned most) {
    while (p != end && *p != '\r') {
        if (out.size() == most) {
            return refuse("more field lines than limits.fields allows",
                          failure_code::too_many_fields);
        }
        const auto next = scan_field(p, end, out);
        if (next.at == nullptr) {
            return next;
        }
        p = next.at;
    }
    return end_line(p, end);
}

// "HTTP/1.1" at p: sets `version` and goes past it.
position scan_version(const char* p, const char* end, unsigned& version) noexcept {
    constexpr std::string_view prefix = "HTTP/";
    const std::string_view seen{p, std::min<std::size_t>(end - p, prefix.size() + 3)};
    if (!seen.starts_with(prefix.substr(0, seen.size()))) {
        return refuse("no HTTP version where one must stand");
    }
    if (seen.size() < prefix.size() + 3) {
        return seen.find('\n') == std::string_view::npos ? missing
                                                         : refuse("a malformed HTTP version");
    }
    if (!is_digit(p[5]) || p[6] != '.' || !is_digit(p[7])) {
        return refuse("a malformed HTTP version");
    }
    if (p[5] != '1') {
        return refuse("an HTTP version other than 1.0 and 1.1", failure_code::unsupported_version);
    }
    version = p[7] == '0' ? 10 : 11;
    return {p + 8};
}

position scan_request_line(const char* p,
                           const char* end,
                           request_head& out,
                           std::size_t most_target) noexcept {
    const char* const method_end = skip_token(p, end);
    if (method_end == end) {
        return missing;
    }
    if (*method_end != ' ' || method_end == p) {
        return refuse(is_blank(*method_end) ? "white space in front of the method"
                      : *method_end == '\r' ? "a request line without a target"
                      : *method_end == '\n' ? lone_lf
                                            : "a method that is no token");
    }
    const char* const target = method_end + 1;
    const char* const target_end = skip_visible(target, end);
    const auto target_bytes = static_cast<std::size_t>(target_end - target);
    if (target_bytes > most_target) {
        return refuse("a URL longer than limits.url_length", failure_code::url_too_long);
    }
    if (target_end == end) {
        return missing;
    }
    if (*target_end != ' ') {
        return refuse(*target_end == '\r'   ? "a request line without an HTTP version"
                      : *target_end == '\n' ? lone_lf
                                            : "a control character in the request target");
    }
    if (target_bytes == 0) {
        return refuse("two spaces in front of the request target");
    }
    out.method_text = {p, static_cast<std::size_t>(method_end - p)};
    out.method = boost::beast::http::string_to_verb(
        {out.method_text.data(), out.method_text.size()});
    out.target = {target, target_bytes};
    const auto version_end = scan_version(target_end + 1, end, out.version);
    if (version_end.at == nullptr) {
        return version_end;
    }
    if (version_end.at != end && *version_end.at != '\r' && *version_end.at != '\n') {
        return refuse("something behind the request line's HTTP version");
    }
    return end_line(version_end.at, end);
}

position scan_status_line(const char* p, const char* end, response_head& out) noexcept {
    const auto version_end = scan_version(p, end, out.version);
    if (version_end.at == nullptr) {
        return version_end;
    }
    p = version_end.at;
    if (end - p < 5) {
        return std::memchr(p, '\n', static_cast<std::size_t>(end - p)) == nullptr
                   ? missing
                   : refuse("a status line without a status");
    }
    if (*p != ' ' || !is_digit(p[1]) || !is_digit(p[2]) || !is_digit(p[3])) {
        return refuse("a status that is not three digits");
    }
    out.status = static_cast<unsigned>((p[1] - '0') * 100 + (p[2] - '0') * 10 + (p[3] - '0'));
    if (out.status < 100 || out.status > 599) {
        return refuse("a status that is not from 100 to 599");
    }
    p += 4;
    out.reason = {};
    if (*p == ' ') {  // the space may be missing where there is no phrase: many servers do that
        const char* const reason = p + 1;
        p = skip_text(reason, end);
        out.reason = {reason, static_cast<std::size_t>(p - reason)};
    } else if (*p != '\r') {
        return refuse("a status that is not three digits");
    }
    return end_line(p, end);
}

position skip_empty_lines(const char* p, const char* end) noexcept {
    for (unsigned lines = 0; p != end && (*p == '\r' || *p == '\n'); ++lines) {
        if (lines == most_empty_lines) {
            return refuse("more than four empty lines before the request line");
        }
        const auto next = end_line(p, end);
        if (next.at == nullptr) {
            return next;
        }
        p = next.at;
    }
    return p == end ? missing : position{p};
}

position scan(const char* p, const char* end, request_head& out, const head_limits& limits) {
    const auto start = skip_empty_lines(p, end);
    if (start.at == nullptr) {
        return start;
    }
    const auto fields = scan_request_line(start.at, end, out, limits.target);
    return fields.at == nullptr ? fields : scan_fields(fields.at, end, out.fields, limits.fields);
}

position scan(const char* p, const char* end, response_head& out, const head_limits& limits) {
    const auto fields = scan_status_line(p, end, out);
    return fields.at == nullptr ? fields : scan_fields(fields.at, end, out.fields, limits.fields);
}

// Whether the bytes from `resume` on are worth a whole scan, after one that found bytes missing:
// they hold an empty line, or the end of the start line (a bad one is answered without waiting for
// the rest). A line without CR is refused here.
position search_end(std::string_view bytes, std::size_t resume) noexcept {
    const char* const begin = bytes.data();
    const char* const end = begin + bytes.size();
    const auto line_end = [end](const char* from) {
        return static_cast<const char*>(
            std::memchr(from, '\n', static_cast<std::size_t>(end - from)));
    };
    const char* lf = line_end(begin + resume);
    if (lf != nullptr &&
        std::memchr(begin, '\n', static_cast<std::size_t>(lf - begin)) == nullptr) {
        return {begin};
    }
    for (; lf != nullptr; lf = line_end(lf + 1)) {
        if (lf[-1] != '\r') {
            return refuse(lone_lf);
        }
        if (lf - begin >= 2 && lf[-2] == '\n') {
            return {begin};
        }
    }
    return missing;
}

// What failures of a head are called, by direction.
struct codes {
    failure_code bad, too_large, too_many;
};
constexpr codes codes_of(const request_head& /*unused*/) noexcept {
    return {failure_code::bad_request, failure_code::head_too_large, failure_code::too_many_fields};
}
constexpr codes codes_of(const response_head& /*unused*/) noexcept {
    return {failure_code::bad_response,
            failure_code::response_head_too_large,
            failure_code::response_head_too_large};
}

template <class Head>
head_result parse(std::string_view bytes,
                  Head& out,
                  const head_limits& limits,
                  std::size_t resume) {
    constexpr bool is_request = std::is_same_v<Head, request_head>;
    const auto names = codes_of(out);
    const head_result too_large{
        head_state::bad, names.too_large, "a head larger than limits.head_size", 0};

    position where;
    const bool seen = resume != 0 && resume <= bytes.size();
    if (seen) {
        where = search_end(bytes, resume);
    }
    if (!seen || where.at != nullptr) {
        out.fields.clear();
        out.fields.reserve(16);  // one allocation, if any: most heads have no more
        where = scan(bytes.data(), bytes.data() + bytes.size(), out, limits);
    }
    if (where.at != nullptr) {
        out.bytes = static_cast<std::size_t>(where.at - bytes.data());
        if (out.bytes > limits.bytes) {
            return too_large;
        }
        return {.state = head_state::done};
    }
    if (where.why != nullptr) {
        auto code = where.code;
        if (code == failure_code::too_many_fields) {
            code = names.too_many;
        } else if (!is_request || code == failure_code::bad_request) {
            code = names.bad;
        }
        return {head_state::bad, code, where.why, 0};
    }
    if (bytes.size() >= limits.bytes) {
        if (is_request && bytes.find('\n') == std::string_view::npos) {
            return {head_state::bad,
                    failure_code::url_too_long,
                    "a request line larger than limits.head_size",
                    0};
        }
        return too_large;
    }
    return {.state = head_state::need_more, .resume = bytes.size()};
}

// RFC 9110 8.6, 9112 6.1: a 1xx frames nothing. Where one does, one recipient takes what follows
// for its body and another for the final response.
bool frames_a_body(field_list fields) noexcept {
    return std::any_of(fields.begin(), fields.end(), [](const field& line) {
        return line.id == field_id::transfer_encoding ||
               (line.id == field_id::content_length && line.value != "0");
    });
}

}  // namespace

head_result parse_request_head(std::string_view bytes,
                               request_head& out,
                               const head_limits& limits,
                               std::size_t resume) {
    return parse(bytes, out, limits, resume);
}

boost::beast::http::verb method_in_other_case(const request_head& head) noexcept {
    using boost::beast::http::verb;
    constexpr std::array<std::pair<std::string_view, verb>, 6> acted_upon{
        {{"GET", verb::get},
         {"HEAD", verb::head},
         {"OPTIONS", verb::options},
         {"TRACE", verb::trace},
         {"CONNECT", verb::connect},
         {"PURGE", verb::purge}}};
    if (head.method != verb::unknown) {
        return verb::unknown;
    }
    const auto* const found = std::find_if(
        acted_upon.begin(), acted_upon.end(), [&](const auto& one) {
            return iequals(one.first, head.method_text);
        });
    return found == acted_upon.end() ? verb::unknown : found->second;
}

head_result parse_response_head(std::string_view bytes,
                                response_head& out,
                                const head_limits& limits,
                                std::size_t resume) {
    const auto read = parse(bytes, out, limits, resume);
    if (read.state == head_state::done && out.status < 200 && frames_a_body(out.fields)) {
        return {.state = head_state::bad,
                .code = failure_code::bad_response,
                .why = "a 1xx response with a body"};
    }
    return read;
}

const char* parse_field_lines(std::string_view bytes, std::vector<field>& out, unsigned most) {
    const char* p = bytes.data();
    const char* const end = p + bytes.size();
    while (p != end) {
        if (out.size() >= most) {
            return "more field lines than limits.fields allows";
        }
        const auto next = scan_field(p, end, out);
        if (next.at == nullptr) {
            return next.why == nullptr ? "a field line without its end" : next.why;
        }
        p = next.at;
    }
    return nullptr;
}

bool is_token(std::string_view text) noexcept {
    return !text.empty() &&
           skip_token(text.data(), text.data() + text.size()) == text.data() + text.size();
}

void append_field_line(std::string& out, std::string_view name, std::string_view value) {
    out += name;
    out += ": ";
    out += value;
    out += "\r\n";
}

}  // namespace reprise::proxy::http
