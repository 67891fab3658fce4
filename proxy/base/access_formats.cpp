#include "proxy/base/access_formats.hpp"

#include "proxy/base/text_pieces.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>

// A text that is not ours gets into a line by put_field() and put_url() alone: they cut it at a
// bound and escape every byte that could end its field. Squid's codes are made of the record's
// outcome, status and reason.

namespace reprise::proxy {

namespace {

constexpr bool is_plain(unsigned char c) noexcept {
    return c > 0x20 && c < 0x7f;
}

constexpr std::string_view upper_digits = "0123456789ABCDEF";
constexpr std::string_view lower_digits = "0123456789abcdef";

void put_number(std::string& out, std::int64_t number, std::size_t width = 0, char fill = ' ') {
    char digits[24];
    const auto* end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    const auto size = static_cast<std::size_t>(end - digits);
    out.append(width > size ? width - size : 0, fill);
    out.append(digits, size);
}

// A field between spaces.
void append_percent(std::string& out, std::string_view text) {
    for (const char each : text) {
        const auto c = static_cast<unsigned char>(each);
        if (is_plain(c) && c != '"') {
            out.push_back(each);
        } else {
            out.append({'%', upper_digits[c / 16], upper_digits[c % 16]});
        }
    }
}

// Text between quotes.
void append_backslashed(std::string& out, std::string_view text) {
    for (const char each : text) {
        const auto c = static_cast<unsigned char>(each);
        if (c == '"' || c == '\\') {
            out.append({'\\', each});
        } else if (is_plain(c) || c == ' ') {
            out.push_back(each);
        } else {
            out.append({'\\', 'x', lower_digits[c / 16], lower_digits[c % 16]});
        }
    }
}

using appender = void (*)(std::string&, std::string_view);

// At most `most` bytes of it; "-" for none.
void put_field(std::string& out,
               std::string_view text,
               appender append,
               std::size_t most = access_line_limits::text) {
    append(out, text.empty() ? "-" : text.substr(0, most));
    out.append(text.size() > most ? "..." : "");
}

void put_url(std::string& out, std::string_view url, bool query_values, appender append) {
    auto left = access_line_limits::url;
    bool cut = false;
    for_each_public_piece(url, query_values, [&](std::string_view piece) {
        const auto shown = piece.substr(0, cut ? 0 : left);
        cut = cut || shown.size() < piece.size();
        append(out, shown);
        left -= shown.size();
    });
    out.append(cut ? "..." : "");
}

// "192.0.2.1:80" and "[::1]:80", and "::1:80" too, without the port and brackets.
std::string_view host_of(std::string_view address) noexcept {
    auto host = address.substr(0, std::min(address.rfind(':'), address.size()));
    if (host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
    }
    return host;
}

std::string_view hit_code(const access_record& record) noexcept {
    if (record.status == 304 && record.if_none_match) {
        return "TCP_INM_HIT";
    }
    if (record.status == 304 && record.if_modified_since) {
        return "TCP_IMS_HIT";
    }
    if (record.status >= 400 && record.reason == "negative") {
        return "TCP_NEGATIVE_HIT";
    }
    return record.from_disk ? "TCP_HIT" : "TCP_MEM_HIT";
}

std::string_view stale_code(const access_record& record) noexcept {
    const bool origin_failed = record.reason == "origin-failed" || record.reason == "origin-error";
    return origin_failed ? "TCP_REFRESH_FAIL_OLD" : hit_code(record);
}

std::string_view miss_code(const access_record& record) noexcept {
    switch (record.over) {
    case asked_over::stale: return "TCP_REFRESH_MODIFIED";
    case asked_over::reload: return "TCP_CLIENT_REFRESH_MISS";
    case asked_over::nothing: break;
    }
    return "TCP_MISS";
}

constexpr std::string_view months[]{
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// "[06/Nov/1994:08:49:37 +0000]"
void append_time_in_brackets(std::string& out, wall_time time) {
    const auto second = std::chrono::floor<std::chrono::seconds>(time);
    const auto day = std::chrono::floor<std::chrono::days>(second);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss clock{second - day};
    out.push_back('[');
    put_number(out, unsigned{date.day()}, 2, '0');
    out.append("/").append(months[(unsigned{date.month()} - 1) % 12]).append("/");
    put_number(out, std::clamp(int{date.year()}, 0, 9999), 4, '0');
    for (const auto part : {static_cast<std::int64_t>(clock.hours().count()),
                            static_cast<std::int64_t>(clock.minutes().count()),
                            static_cast<std::int64_t>(clock.seconds().count())}) {
        out.push_back(':');
        put_number(out, part, 2, '0');
    }
    out.append(" +0000]");
}

}  // namespace

std::string_view result_code(const access_record& record) noexcept {
    switch (record.how) {
    case outcome::hit: return hit_code(record);
    case outcome::stale: return stale_code(record);
    case outcome::revalidated: return "TCP_REFRESH_UNMODIFIED";
    case outcome::miss: return miss_code(record);
    case outcome::collapsed: return "TCP_CF_HIT";
    case outcome::sibling:
    case outcome::pass:
    case outcome::only_if_cached: return "TCP_MISS";
    case outcome::tunnel: return "TCP_TUNNEL";
    case outcome::refused: return "TCP_DENIED";
    case outcome::local:
    case outcome::client_error: return "NONE";
    case outcome::error:
        return record.over == asked_over::nothing ? "TCP_MISS" : "TCP_REFRESH_FAIL_ERR";
    case outcome::cut_short:
    case outcome::client_gone: return record.method.empty() ? "NONE_ABORTED" : "TCP_MISS_ABORTED";
    }
    return "NONE";
}

std::string_view hierarchy_code(const access_record& record) noexcept {
    if (record.how == outcome::sibling) {
        return "CD_SIBLING_HIT";
    }
    const bool asked = !record.origin.empty() && record.how != outcome::collapsed;
    if (!asked) {
        return "HIER_NONE";
    }
    return record.peer.empty() ? "HIER_DIRECT" : "FIRSTUP_PARENT";
}

void append_squid_line(std::string& out, const access_record& record, bool query_values) {
    const auto since = record.time.time_since_epoch();
    const auto second = std::chrono::floor<std::chrono::seconds>(since);
    put_number(out, second.count());
    out.push_back('.');
    put_number(out, (since - second).count(), 3, '0');
    out.push_back(' ');
    const auto took = std::chrono::floor<std::chrono::milliseconds>(record.total).count();
    put_number(out, std::max<std::int64_t>(took, 0), 6);
    out.push_back(' ');
    put_field(out, host_of(record.client), append_percent);
    out.append(" ").append(result_code(record)).append("/");
    put_number(out, record.status, 3, '0');
    out.push_back(' ');
    put_number(out, static_cast<std::int64_t>(record.bytes_out));
    out.push_back(' ');
    put_field(out, record.method.empty() ? "NONE" : record.method, append_percent);
    out.push_back(' ');
    if (record.url.empty()) {
        out.append("error:invalid-request");
    } else {
        put_url(out, record.url, query_values, append_percent);
    }
    out.push_back(' ');
    put_field(out, record.user, append_percent);
    const auto hierarchy = hierarchy_code(record);
    out.append(" ").append(hierarchy).append("/");
    put_field(out,
              hierarchy == "HIER_NONE" ? std::string_view{} : host_of(record.origin),
              append_percent);
    out.push_back(' ');
    // As Squid has it: without parameters.
    const auto& type = record.content_type;
    put_field(out, type.substr(0, type.find_first_of("; \t")), append_percent);
    out.push_back('\n');
}

void append_combined_line(std::string& out, const access_record& record, bool query_values) {
    put_field(out, host_of(record.client), append_percent);
    out.append(" - ");
    put_field(out, record.user, append_percent);
    out.push_back(' ');
    append_time_in_brackets(out, record.time);
    out.append(" \"");
    if (record.method.empty()) {
        out.push_back('-');
    } else {
        put_field(out, record.method, append_backslashed);
        out.push_back(' ');
        put_url(out, record.url, query_values, append_backslashed);
        out.append(record.http_version == 10 ? " HTTP/1.0" : " HTTP/1.1");
    }
    out.append("\" ");
    put_number(out, record.status, 3, '0');
    out.push_back(' ');
    if (record.bytes_out == 0) {
        out.push_back('-');
    } else {
        put_number(out, static_cast<std::int64_t>(record.bytes_out));
    }
    out.append(" \"");
    put_url(out, record.referer.empty() ? "-" : record.referer, query_values, append_backslashed);
    out.append("\" \"");
    put_field(out, record.user_agent, append_backslashed);
    out.append("\"\n");
}

}  // namespace reprise::proxy
