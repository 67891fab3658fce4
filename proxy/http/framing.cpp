#include "proxy/http/framing.hpp"

#include "proxy/http/characters.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/http/target.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

// The lines that matter are counted in one pass (read), and judged by the counts: so a second line
// of a kind is seen, however good the first one is.

namespace reprise::proxy::http {

namespace {

using boost::beast::http::verb;

// What a message's field lines say of its body, before anybody decides.
struct framing_fields {
    const field* length = nullptr;
    unsigned lengths = 0;
    const field* coding = nullptr;
    unsigned codings = 0;
    const field* host = nullptr;
    unsigned hosts = 0;
    bool has_connection = false;
};

framing_fields read(field_list fields) noexcept {
    framing_fields out;
    for (const auto& line : fields) {
        switch (line.id) {
        case field_id::content_length:
            out.length = &line;
            ++out.lengths;
            break;
        case field_id::transfer_encoding:
            out.coding = &line;
            ++out.codings;
            break;
        case field_id::host:
            out.host = &line;
            ++out.hosts;
            break;
        case field_id::connection: out.has_connection = true; break;
        default: break;
        }
    }
    return out;
}

enum class coding : std::uint8_t { chunked, malformed, other };

// One Transfer-Encoding line. chunked applied twice, or not last, is malformed; with anything else
// in the line it is a coding that is not served.
coding read_coding(std::string_view value) noexcept {
    unsigned members = 0;
    unsigned chunked = 0;
    bool chunked_last = false;
    bool parameters = false;
    for_each_member(value, [&](std::string_view member) {
        ++members;
        const auto name = member.substr(0, member.find_first_of("; \t"));
        chunked_last = iequals(name, "chunked");
        chunked += chunked_last ? 1 : 0;
        parameters = parameters || (chunked_last && name.size() != member.size());
        return true;
    });
    if (members == 1 && chunked == 1 && !parameters && iequals(value, "chunked")) {
        return coding::chunked;  // the value is compared again: ",chunked" is no canonical form
    }
    if (members == 0 || chunked > 1 || parameters || (chunked == 1 && !chunked_last) ||
        (members == 1 && chunked == 1)) {
        return coding::malformed;
    }
    return coding::other;
}

failure bad(failure_code code, const char* why) {
    return {code, why};
}

// Transfer-Encoding alone, in a version that has it. Null for chunked.
const char* check_coding(const framing_fields& said, unsigned version, coding& read_as) noexcept {
    read_as = coding::malformed;
    if (said.lengths != 0) {
        return "both Content-Length and Transfer-Encoding";
    }
    if (said.codings > 1) {
        return "more than one Transfer-Encoding field";
    }
    if (version < 11) {
        return "Transfer-Encoding in an HTTP/1.0 message";
    }
    read_as = read_coding(said.coding->value);
    switch (read_as) {
    case coding::chunked: return nullptr;
    case coding::malformed: return "Transfer-Encoding is not chunked, once and last";
    case coding::other: return "a transfer coding other than chunked";
    }
    return nullptr;
}

// Content-Length of a response, where equal values count as one (RFC 9112 6.3, 5). A member that is
// empty may be the rest of a value that another recipient reads: refused.
bool merge_lengths(field_list fields, std::uint64_t& out) noexcept {
    bool first = true;
    for (const auto& line : fields) {
        if (line.id != field_id::content_length) {
            continue;
        }
        for (std::size_t begin = 0; begin <= line.value.size();) {
            const auto comma = std::min(line.value.find(',', begin), line.value.size());
            const auto member = trimmed(line.value.substr(begin, comma - begin));
            std::uint64_t value = 0;
            if (!parse_content_length(member, value) || (!first && value != out)) {
                return false;
            }
            out = value;
            first = false;
            begin = comma + 1;
        }
    }
    return true;
}

const char* check_host(const framing_fields& said, unsigned version) noexcept {
    if (said.hosts > 1) {
        return "more than one Host field";
    }
    if (said.hosts == 0) {
        return version < 11 ? nullptr : "an HTTP/1.1 request without a Host field";
    }
    if (said.host->value.empty()) {
        return "an empty Host field";
    }
    return check_authority(said.host->value) == nullptr ? nullptr : "a malformed Host field";
}

}  // namespace

bool parse_content_length(std::string_view text, std::uint64_t& out) noexcept {
    if (text.empty() || text.front() < '0' || text.front() > '9') {  // from_chars takes a '-'
        return false;
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc{} && end == text.data() + text.size() &&
           out <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
}

attempt<body_framing> request_framing(const request_head& head) {
    const auto said = read(head.fields);
    if (const char* why = check_host(said, head.version)) {
        return bad(failure_code::bad_request, why);
    }
    if (said.has_connection && connection_options{head.fields}.too_many()) {
        return bad(failure_code::bad_request, "more than 32 connection options");
    }
    body_framing out;
    if (said.codings != 0) {
        auto read_as = coding::malformed;
        if (const char* why = check_coding(said, head.version, read_as)) {
            return bad(read_as == coding::other ? failure_code::unsupported_coding
                                                : failure_code::bad_request,
                       why);
        }
        out.kind = body_kind::chunked;
    } else if (said.lengths > 1) {
        return bad(failure_code::bad_request, "more than one Content-Length field");
    } else if (said.lengths == 1) {
        if (!parse_content_length(said.length->value, out.length)) {
            return bad(failure_code::bad_request, "a Content-Length that is not digits alone");
        }
        out.kind = body_kind::length;
    }
    if (head.method == verb::connect || head.method == verb::trace) {
        if (out.kind == body_kind::chunked || out.length != 0) {
            return bad(failure_code::bad_request, "a body with CONNECT or TRACE");
        }
        out.kind = body_kind::none;
    }
    return out;
}

attempt<body_framing> response_framing(const response_head& head, verb request_method) {
    const auto said = read(head.fields);
    if (said.has_connection && connection_options{head.fields}.too_many()) {
        return bad(failure_code::bad_response, "more than 32 connection options");
    }
    body_framing out;
    if (said.codings != 0) {
        auto read_as = coding::malformed;
        if (const char* why = check_coding(said, head.version, read_as)) {
            return bad(failure_code::bad_response, why);
        }
        out.kind = body_kind::chunked;
    } else if (said.lengths != 0) {
        if (!merge_lengths(head.fields, out.length)) {
            return bad(failure_code::bad_response, "Content-Length fields that differ or are bad");
        }
        out.kind = body_kind::length;
    } else {
        out.kind = body_kind::until_close;
    }

    const bool interim_or_204 = head.status < 200 || head.status == 204;
    const bool tunnel = request_method == verb::connect && head.status / 100 == 2;
    if (interim_or_204 || tunnel) {
        const bool framed = out.kind == body_kind::chunked || out.length != 0;
        return body_framing{.reusable = !framed};
    }
    if (request_method == verb::head || head.status == 304) {
        return body_framing{.has_stated_length = out.kind == body_kind::length,
                            .stated_length = out.length};
    }
    return out;
}

bool keep_alive(unsigned version, field_list fields) noexcept {
    bool close = false;
    bool keep = false;
    for (const auto& line : fields) {
        if (line.id != field_id::connection) {
            continue;
        }
        for_each_member(line.value, [&](std::string_view member) {
            close = close || iequals(member, "close");
            keep = keep || iequals(member, "keep-alive");
            return true;
        });
    }
    return !close && (version >= 11 || keep);
}

attempt<bool> expects_continue(const request_head& head, const body_framing& body) {
    if (head.version < 11) {
        return false;  // RFC 9110 10.1.1: ignored in an HTTP/1.0 request
    }
    bool expects = false;
    for (const auto& line : head.fields) {
        if (line.id != field_id::expect) {
            continue;
        }
        if (!iequals(line.value, "100-continue")) {
            // Details are logged, field values are not.
            return failure{failure_code::unsupported_expectation,
                           "an Expect other than 100-continue"};
        }
        expects = true;
    }
    const bool has_body = body.kind == body_kind::chunked || body.length != 0;
    return expects && has_body;
}

bool asks_websocket(const request_head& head) noexcept {
    if (head.method != verb::get || head.version < 11) {
        return false;
    }
    const auto* const upgrade = find(head.fields, field_id::upgrade);
    return upgrade != nullptr && count(head.fields, field_id::upgrade) == 1 &&
           iequals(upgrade->value, "websocket") &&
           has_token(head.fields, field_id::connection, "upgrade");
}

}  // namespace reprise::proxy::http
