#include "proxy/http/forwarding.hpp"

#include <algorithm>
#include <array>
#include <charconv>

// Two questions are asked of each of a request's lines: does it end here (is_hop_by_hop), and does
// a line of ours take its place (is_replaced)? The others pass as they stand. What is meant for
// every recipient passes even where Connection names it (is_for_all).

namespace reprise::proxy::http {

namespace {

using boost::beast::http::verb;

void append_number(std::string& out, std::uint64_t number) {
    std::array<char, 20> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
    out.append(text.data(), end);
}

// "name: first, second": the values of all lines with this name, ready for one more.
template <class Matches>
void begin_list(std::string& out, std::string_view name, field_list fields, Matches&& matches) {
    out += name;
    out += ": ";
    for (const auto& line : fields) {
        if (matches(line) && !line.value.empty()) {
            out += line.value;
            out += ", ";
        }
    }
}

void append_via(std::string& out, field_list fields, unsigned version, std::string_view pseudonym) {
    begin_list(out, "Via", fields, [](const field& line) { return line.id == field_id::via; });
    out += version >= 11 ? "1.1 " : "1.0 ";
    out += pseudonym;
    out += "\r\n";
}

bool is_x_forwarded_for(const field& line) noexcept {
    return line.id == field_id::unknown && iequals(line.name, "X-Forwarded-For");
}

// Where each string in it ends is clear to everybody: behind another one what follows may be read as its inside.
bool has_clear_strings(std::string_view element) noexcept {
    return std::count(element.begin(), element.end(), '"') % 2 == 0 &&
           element.find('\\') == std::string_view::npos;
}

// One of Forwarded's elements with nothing left in it but who sent and who received: "for", "by"
// (RFC 7239 4). Its parameters are separated by semicolons outside quoted strings.
void append_parties(std::string& out, std::string_view element) {
    bool any = false;
    bool quoted = false;
    for (std::size_t begin = 0, at = 0; at <= element.size(); ++at) {
        if (at < element.size()) {
            quoted = quoted != (element[at] == '"');
            if (quoted || element[at] != ';') {
                continue;
            }
        }
        auto part = element.substr(begin, at - begin);
        begin = at + 1;
        part.remove_prefix(std::min(part.find_first_not_of(" \t"), part.size()));
        part = part.substr(0, part.find_last_not_of(" \t") + 1);
        const auto name = part.substr(0, part.find('='));
        if (iequals(name, "for") || iequals(name, "by")) {
            out += any ? ";" : "";
            out += part;
            any = true;
        }
    }
    out += any ? ", " : "";
}

void append_forwarded(std::string& out, field_list fields, const request_options& options) {
    const auto begin = out.size();
    constexpr std::string_view name = "Forwarded: ";
    out += name;
    for (const auto& line : fields) {
        if (line.id != field_id::forwarded) {
            continue;
        }
        for_each_member(line.value, [&](std::string_view element) {
            if (!has_clear_strings(element)) {
                return true;
            }
            if (options.scheme.empty()) {
                out += element;
                out += ", ";
            } else {
                append_parties(out, element);
            }
            return true;
        });
    }
    if (options.forwarded) {
        const bool ipv6 = options.client_address.find(':') != std::string_view::npos;
        out += ipv6 ? "for=\"[" : "for=";
        out += options.client_address;
        out += ipv6 ? "]\"" : "";
        if (!options.scheme.empty()) {
            out += ";proto=";
            out += options.scheme;
        }
    } else if (out.size() == begin + name.size()) {
        out.resize(begin);
        return;
    } else {
        out.resize(out.size() - 2);  // behind the last comes none of ours
    }
    out += "\r\n";
}

void append_client(std::string& out, field_list fields, const request_options& options) {
    if (options.forwarded || !options.scheme.empty()) {
        append_forwarded(out, fields, options);
    }
    if (options.x_forwarded_for) {
        begin_list(out, "X-Forwarded-For", fields, is_x_forwarded_for);
        out += options.client_address;
        out += "\r\n";
    }
    if (!options.scheme.empty()) {
        out += "X-Forwarded-Proto: ";
        out += options.scheme;
        out += "\r\n";
    }
}

// Meant for every recipient, whatever Connection says.
bool is_for_all(const field& line) noexcept {
    switch (line.id) {
    // who is asked for what, and by whom
    case field_id::host:
    case field_id::authorization:
    case field_id::cookie:
    case field_id::set_cookie:
    case field_id::www_authenticate:
    case field_id::origin:
    case field_id::via:
    case field_id::forwarded:
    case field_id::max_forwards:
    case field_id::expect:
    // which part of it, and on which condition
    case field_id::range:
    case field_id::if_range:
    case field_id::if_match:
    case field_id::if_none_match:
    case field_id::if_modified_since:
    case field_id::if_unmodified_since:
    case field_id::location:
    // whether it may be stored, and for how long
    case field_id::cache_control:
    case field_id::pragma:
    case field_id::vary:
    case field_id::date:
    case field_id::age:
    case field_id::expires:
    case field_id::etag:
    case field_id::last_modified: return true;
    default: break;
    }
    constexpr std::string_view content = "Content-";
    return iequals(line.name.substr(0, content.size()), content) || is_x_forwarded_for(line);
}

// What the request's own statement takes the place of, or the caller does not want.
bool is_replaced(const field& line, const request_head& head, const request_options& options) {
    switch (line.id) {
    case field_id::host:
    case field_id::content_length: return true;
    case field_id::via: return !options.via.empty();
    case field_id::forwarded: return options.forwarded || !options.scheme.empty();
    case field_id::max_forwards: return options.max_forwards.has_value();
    case field_id::expect: return options.drop_expect || head.version < 11;
    case field_id::range:
    case field_id::if_range: return options.drop_range;
    case field_id::if_match:
    case field_id::if_none_match:
    case field_id::if_modified_since:
    case field_id::if_unmodified_since:
    // What is asked for by this is the difference to what If-None-Match names (RFC 3229 10.5.3): it goes with that line.
    case field_id::a_im: return options.drop_conditionals;
    default: return options.x_forwarded_for && is_x_forwarded_for(line);
    }
}

void append_request_line(std::string& out,
                         const request_head& head,
                         const target& t,
                         bool to_proxy) {
    out += head.method_text;
    out += ' ';
    if (to_proxy) {
        out += t.secure ? "https://" : "http://";
        append_authority(out, t);
        if (head.method != verb::options && !t.path_and_query.starts_with('/')) {
            out += '/';  // OPTIONS of a whole server has no path (RFC 9112 3.2.4)
        }
        out += t.path_and_query;
        out += " HTTP/1.1\r\nHost: ";
        append_authority(out, t);
        out += "\r\n";
        return;
    }
    const bool whole_server = t.form == target_form::asterisk ||
                              (head.method == verb::options && t.path_and_query.empty());
    if (whole_server) {
        out += '*';
    } else if (!t.path_and_query.starts_with('/')) {
        out += '/';
    }
    out += t.path_and_query;
    out += " HTTP/1.1\r\nHost: ";
    append_authority(out, t);
    out += "\r\n";
}

void append_connection(std::string& out, const request_options& options) {
    if (options.websocket) {
        out += "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    } else if (options.te_trailers) {
        out += options.close ? "Connection: close, TE\r\nTE: trailers\r\n"
                             : "Connection: TE\r\nTE: trailers\r\n";
    } else if (options.close) {
        out += "Connection: close\r\n";
    }
}

}  // namespace

connection_options::connection_options(field_list fields) noexcept {
    for (const auto& line : fields) {
        if (line.id != field_id::connection) {
            continue;
        }
        for_each_member(line.value, [this](std::string_view member) {
            too_many_ = count_ == names_.size();
            if (!too_many_) {
                names_[count_++] = member;
            }
            return !too_many_;
        });
    }
}

bool connection_options::has(std::string_view name) const noexcept {
    return std::any_of(names_.begin(), names_.begin() + count_, [name](std::string_view one) {
        return iequals(one, name);
    });
}

bool is_hop_by_hop(const field& line, const connection_options& named) noexcept {
    switch (line.id) {
    case field_id::connection:
    case field_id::keep_alive:
    case field_id::proxy_connection:
    case field_id::te:
    case field_id::trailer:
    case field_id::transfer_encoding:
    case field_id::upgrade:
    case field_id::http2_settings:
    case field_id::proxy_authenticate:
    case field_id::proxy_authorization:
    case field_id::proxy_authentication_info: return true;
    default: return named.has(line.name) && !is_for_all(line);
    }
}

void strip_hop_by_hop(std::vector<field>& fields) {
    const connection_options named{fields};
    std::erase_if(fields, [&named](const field& line) {
        const bool asked_for_again = line.id == field_id::te || line.id == field_id::trailer;
        return !asked_for_again && is_hop_by_hop(line, named);
    });
}

void strip_url_claims(std::vector<field>& fields) {
    constexpr std::array<std::string_view, 20> claims{"X-Forwarded-Proto",
                                                      "X-Forwarded-Protocol",
                                                      "X-Forwarded-Scheme",
                                                      "X-Forwarded-Ssl",
                                                      "X-Forwarded-Host",
                                                      "X-Forwarded-Server",
                                                      "X-Forwarded-Port",
                                                      "X-Forwarded-Prefix",
                                                      "X-Forwarded-Path",
                                                      "X-Forwarded-Uri",
                                                      "X-Original-Proto",
                                                      "X-Original-Host",
                                                      "X-Original-URL",
                                                      "X-Rewrite-URL",
                                                      "X-Url-Scheme",
                                                      "X-Scheme",
                                                      "X-Host",
                                                      "X-Script-Name",
                                                      "Front-End-Https",
                                                      "CloudFront-Forwarded-Proto"};
    // To what reads fields as variables of its environment (CGI) the two are one.
    const auto same = [](char a, char b) {
        const auto plain = [](char c) {
            return c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
        };
        return plain(a) == plain(b);
    };
    std::erase_if(fields, [&](const field& line) {
        if (line.id != field_id::unknown) {
            return false;  // most of a request's lines
        }
        return std::any_of(claims.begin(), claims.end(), [&](std::string_view claim) {
            return std::equal(claim.begin(), claim.end(), line.name.begin(), line.name.end(), same);
        });
    });
}

void append_request_head(std::string& out,
                         const request_head& head,
                         const target& t,
                         const request_options& options) {
    append_request_line(out, head, t, options.to_proxy);
    const connection_options named{head.fields};
    for (const auto& line : head.fields) {
        const bool kept_trailer = options.trailers && line.id == field_id::trailer;
        if (kept_trailer || (!is_hop_by_hop(line, named) && !is_replaced(line, head, options))) {
            append_field_line(out, line.name, line.value);
        }
    }
    if (!options.via.empty()) {
        append_via(out, head.fields, head.version, options.via);
    }
    append_client(out, head.fields, options);
    if (options.max_forwards) {
        out += "Max-Forwards: ";
        append_number(out, *options.max_forwards);
        out += "\r\n";
    }
    append_framing(out, options.body);
    append_connection(out, options);
    out += options.extra;
    out += "\r\n";
}

void append_response_fields(std::string& out,
                            const response_head& head,
                            const response_options& options) {
    out += "HTTP/1.1 ";
    append_number(out, head.status);
    out += ' ';
    out += head.reason;
    out += "\r\n";
    const connection_options named{head.fields};
    bool dated = head.status < 200;
    for (const auto& line : head.fields) {
        switch (line.id) {
        case field_id::content_length: continue;
        case field_id::date: dated = true; break;
        case field_id::age:
            if (!options.keep_age) {
                continue;
            }
            break;
        case field_id::via:
            if (!options.via.empty()) {
                continue;
            }
            break;
        case field_id::trailer:
            if (options.trailers) {
                append_field_line(out, line.name, line.value);
            }
            continue;
        default: break;
        }
        const bool leads_past_us = options.drop_alt_svc && iequals(line.name, "Alt-Svc");
        if (!is_hop_by_hop(line, named) && !leads_past_us) {
            append_field_line(out, line.name, line.value);
        }
    }
    if (!dated && !options.date.empty()) {
        append_field_line(out, "Date", options.date);
    }
    if (!options.via.empty()) {
        append_via(out, head.fields, head.version, options.via);
    }
    if (options.websocket) {
        out += "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    }
}

void append_framing(std::string& out, const body_framing& body, unsigned client_version) {
    switch (body.kind) {
    case body_kind::none:
        if (!body.has_stated_length) {
            return;
        }
        out += "Content-Length: ";
        append_number(out, body.stated_length);
        out += "\r\n";
        return;
    case body_kind::length:
        out += "Content-Length: ";
        append_number(out, body.length);
        out += "\r\n";
        return;
    case body_kind::chunked:
        if (client_version >= 11) {
            out += "Transfer-Encoding: chunked\r\n";
        }
        return;
    case body_kind::until_close: return;
    }
}

// Commas separate here whatever stands around them: a comment or a quoted string that is never
// closed would otherwise hide every later member, ours too, and a loop would not be seen.
bool via_has(field_list fields, std::string_view pseudonym) noexcept {
    for (const auto& line : fields) {
        if (line.id != field_id::via) {
            continue;
        }
        for (auto rest = line.value; !rest.empty();) {
            const auto comma = rest.find(',');
            auto member = rest.substr(0, comma);
            rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
            const auto skip = [&member](std::string_view set) {
                member.remove_prefix(std::min(member.find_first_not_of(set), member.size()));
            };
            skip(" \t");
            member.remove_prefix(std::min(member.find_first_of(" \t"), member.size()));
            skip(" \t");
            const auto received_by = member.substr(0, member.find_first_of(" \t("));
            if (iequals(received_by, pseudonym)) {
                return true;
            }
        }
    }
    return false;
}

attempt<hop_verdict> judge_hops(const request_head& head) {
    hop_verdict out;
    if (head.method != verb::options && head.method != verb::trace) {
        return out;
    }
    const auto* const line = find(head.fields, field_id::max_forwards);
    if (line == nullptr) {
        return out;
    }
    constexpr std::uint32_t most = 1u << 31;
    const auto digits = line->value;
    const bool number = !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) {
        return c >= '0' && c <= '9';
    });
    if (!number || count(head.fields, field_id::max_forwards) != 1) {
        return failure{failure_code::bad_request, "a malformed Max-Forwards field"};
    }
    std::uint32_t hops_left = 0;
    const auto error = std::from_chars(digits.data(), digits.data() + digits.size(), hops_left).ec;
    if (error != std::errc{} || hops_left > most) {
        hops_left = most;
    }
    if (hops_left == 0) {
        out.what = hops::answer_here;
    } else {
        out.left = hops_left - 1;
    }
    return out;
}

void append_trace(std::string& out, const request_head& head) {
    out += head.method_text;
    out += ' ';
    out += head.target;
    out += head.version >= 11 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n";
    for (const auto& line : head.fields) {
        const bool credentials = line.id == field_id::authorization ||
                                 line.id == field_id::proxy_authorization ||
                                 line.id == field_id::cookie;
        if (!credentials) {
            append_field_line(out, line.name, line.value);
        }
    }
    out += "\r\n";
}

}  // namespace reprise::proxy::http
