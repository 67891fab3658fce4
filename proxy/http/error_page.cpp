#include "proxy/http/error_page.hpp"

#include "proxy/http/message_head.hpp"

#include <algorithm>

// What append_proxy_status() writes is looked for again by is_own_loop(), is_error_of() and
// error_told_by(), in answers that other nodes of ours have made: they change together.

namespace reprise::proxy::http {

namespace {

constexpr std::size_t most_detail_bytes = 512;

// Printable ASCII, cut: the one form that suits a header field, a terminal and a page.
std::string printable(std::string_view text) {
    std::string out{text.substr(0, most_detail_bytes)};
    std::replace_if(
        out.begin(), out.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
    return out;
}

void append_html(std::string& out, std::string_view text) {
    for (const char c : text) {
        switch (c) {
        case '&': out += "&amp;"; break;
        case '<': out += "&lt;"; break;
        case '>': out += "&gt;"; break;
        case '"': out += "&quot;"; break;
        case '\'': out += "&#39;"; break;
        default: out += c; break;
        }
    }
}

// An RFC 9651 string.
void append_sf_string(std::string& out, std::string_view printable_text) {
    out += '"';
    for (const char c : printable_text) {
        if (c == '"' || c == '\\') {
            out += '\\';
        }
        out += c;
    }
    out += '"';
}

// An RFC 9651 token where it can be one.
void append_sf_name(std::string& out, std::string_view name) {
    const bool letter_first = !name.empty() && ((name[0] >= 'a' && name[0] <= 'z') ||
                                                (name[0] >= 'A' && name[0] <= 'Z'));
    if (letter_first && is_token(name)) {
        out += name;
    } else {
        append_sf_string(out, printable(name));
    }
}

std::string text_page(const failure_facts& facts,
                      std::string_view detail,
                      std::string_view pseudonym) {
    std::string out = std::to_string(facts.status);
    out += ' ';
    out += facts.reason;
    out += "\n\n";
    out += facts.sentence;
    out += '\n';
    if (!detail.empty()) {
        out += "Seen: ";
        out += detail;
        out += '\n';
    }
    if (!facts.setting.empty()) {
        out += "Setting: ";
        out += facts.setting;
        out += '\n';
    }
    out += "\nReprise (";
    out += pseudonym;
    out += "), ";
    out += facts.name;
    out += '\n';
    return out;
}

std::string html_page(const failure_facts& facts,
                      std::string_view detail,
                      std::string_view pseudonym) {
    const auto title = std::to_string(facts.status) + ' ' + std::string{facts.reason};
    std::string out = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>";
    append_html(out, title);
    out += "</title>\n<h1>";
    append_html(out, title);
    out += "</h1>\n<p>";
    append_html(out, facts.sentence);
    out += "</p>\n";
    if (!detail.empty()) {
        out += "<p>Seen: <code>";
        append_html(out, detail);
        out += "</code></p>\n";
    }
    if (!facts.setting.empty()) {
        out += "<p>Setting: <code>";
        append_html(out, facts.setting);
        out += "</code></p>\n";
    }
    out += "<hr>\n<p>Reprise (";
    append_html(out, pseudonym);
    out += "), ";
    append_html(out, facts.name);
    out += "</p>\n</html>\n";
    return out;
}

// A list member's media type, without its parameters.
bool wants_html(std::string_view accept) noexcept {
    bool found = false;
    for_each_member(accept, [&found](std::string_view member) {
        found = iequals(member.substr(0, member.find_first_of("; \t")), "text/html");
        return !found;
    });
    return found;
}

void append_proxy_status(std::string& out,
                         const failure_facts& facts,
                         std::string_view detail,
                         std::string_view pseudonym) {
    out += "Proxy-Status: ";
    append_sf_name(out, pseudonym);
    if (!facts.proxy_status.empty()) {
        out += "; error=";
        out += facts.proxy_status;
    }
    std::string details{facts.name};
    if (!detail.empty()) {
        details += ": ";
        details += detail;
    }
    out += "; details=";
    append_sf_string(out, details);
    out += "\r\n";
}

}  // namespace

void append_error_page(std::string& out, const failure& error, const error_options& options) {
    const auto& facts = facts_of(error.code);
    const auto detail = printable(error.detail);
    const bool html = wants_html(options.accept);
    const auto page = html ? html_page(facts, detail, options.pseudonym)
                           : text_page(facts, detail, options.pseudonym);

    out += "HTTP/1.1 ";
    out += std::to_string(facts.status);
    out += ' ';
    out += facts.reason;
    out += "\r\n";
    if (!options.date.empty()) {
        append_field_line(out, "Date", options.date);
    }
    append_field_line(
        out, "Content-Type", html ? "text/html; charset=utf-8" : "text/plain; charset=utf-8");
    append_field_line(out, "Content-Length", std::to_string(page.size()));
    append_field_line(out, "Cache-Control", "no-store");
    append_field_line(out, "X-Content-Type-Options", "nosniff");
    if (html) {
        append_field_line(out, "Content-Security-Policy", "default-src 'none'");
    }
    append_proxy_status(out, facts, detail, options.pseudonym);
    if (!options.cache_status.empty()) {
        append_field_line(out, "Cache-Status", options.cache_status);
    }
    if (const auto seconds = facts.retry_after; seconds != 0) {
        append_field_line(out, "Retry-After", std::to_string(seconds));
    }
    if (facts.status == 407) {  // RFC 9110 11.7.1; a client takes the first that it knows
        if (options.basic) {
            append_field_line(
                out, "Proxy-Authenticate", "Basic realm=\"reprise\", charset=\"UTF-8\"");
        }
        if (options.bearer) {
            append_field_line(out, "Proxy-Authenticate", "Bearer realm=\"reprise\"");
        }
    }
    if (options.close) {
        append_field_line(out, "Connection", "close");
    }
    out += "\r\n";
    if (!options.head) {
        out += page;
    }
}

namespace {

// The member of Proxy-Status that a node of this name writes of an error, from its beginning.
bool says_error(field_list fields, std::string_view own, bool whole) {
    bool found = false;
    for (const auto& line : fields) {
        if (iequals(line.name, "Proxy-Status")) {
            for_each_member(line.value, [&](std::string_view member) {
                found = found ||
                        (member.starts_with(own) &&
                         (!whole || member.size() == own.size() || member[own.size()] == ';'));
                return !found;
            });
        }
    }
    return found;
}

}  // namespace

bool is_own_loop(unsigned status, field_list fields, std::string_view pseudonym) {
    const auto& loop = facts_of(failure_code::loop_detected);
    if (status != loop.status) {
        return false;
    }
    std::string own;
    append_sf_name(own, pseudonym);
    own.append("; error=").append(loop.proxy_status);
    return says_error(fields, own, true);
}

bool is_error_of(unsigned status, field_list fields, std::string_view pseudonym) {
    if (status < 400) {
        return false;
    }
    std::string begins;
    append_sf_name(begins, pseudonym);
    begins += ';';
    return says_error(fields, begins, false);
}

namespace {

// The failure whose name a member's details begin with, of those that have this status.
std::optional<failure_code> failure_named_in(std::string_view member, unsigned status) {
    constexpr std::string_view details = "; details=\"";
    const auto at = member.find(details);
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    const auto name = member.substr(at + details.size());
    const auto word = name.substr(0, name.find_first_of(":\""));
    for (unsigned i = 0; i <= static_cast<unsigned>(failure_code::internal); ++i) {
        const auto& facts = facts_of(static_cast<failure_code>(i));
        if (facts.status == status && facts.name == word) {
            return facts.code;
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<failure_code> error_told_by(unsigned status,
                                          field_list fields,
                                          std::string_view pseudonym) {
    std::string begins;
    append_sf_name(begins, pseudonym);
    begins += ';';
    std::optional<failure_code> told;
    for (const auto& line : fields) {
        if (iequals(line.name, "Proxy-Status")) {
            for_each_member(line.value, [&](std::string_view member) {
                told = member.starts_with(begins) ? failure_named_in(member, status) : std::nullopt;
                return !told;
            });
        }
        if (told) {
            break;
        }
    }
    return told;
}

}  // namespace reprise::proxy::http
