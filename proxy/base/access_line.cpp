#include "proxy/base/access_line.hpp"

#include "proxy/base/text.hpp"
#include "proxy/base/text_pieces.hpp"

#include <algorithm>
#include <charconv>

namespace reprise::proxy {

namespace {

// "2024-05-06T07:08:09" of the second that was formatted last on this thread: most lines share it.
struct second_text {
    std::chrono::sys_seconds second{std::chrono::seconds{-1}};
    char text[20] = {};
};

// Two digits at `at`.
void put2(char* at, unsigned value) noexcept {
    at[0] = static_cast<char>('0' + value / 10 % 10);
    at[1] = static_cast<char>('0' + value % 10);
}

void format(second_text& into, std::chrono::sys_seconds second) noexcept {
    const auto day = std::chrono::floor<std::chrono::days>(second);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss clock{second - day};
    // A clock outside these years is broken; four digits keep the line well-formed.
    const auto year = static_cast<unsigned>(std::clamp(int{date.year()}, 0, 9999));
    char* const at = into.text;
    put2(at, year / 100);
    put2(at + 2, year % 100);
    at[4] = '-';
    put2(at + 5, unsigned{date.month()});
    at[7] = '-';
    put2(at + 8, unsigned{date.day()});
    at[10] = 'T';
    put2(at + 11, static_cast<unsigned>(clock.hours().count()));
    at[13] = ':';
    put2(at + 14, static_cast<unsigned>(clock.minutes().count()));
    at[16] = ':';
    put2(at + 17, static_cast<unsigned>(clock.seconds().count()));
    into.second = second;
}

void append_time(std::string& out, wall_time time) {
    thread_local second_text last;
    const auto second = std::chrono::floor<std::chrono::seconds>(time);
    if (second != last.second) {
        format(last, second);
    }
    const auto milliseconds = static_cast<unsigned>((time - second).count());
    const char rest[] = {'.',
                         static_cast<char>('0' + milliseconds / 100),
                         static_cast<char>('0' + milliseconds / 10 % 10),
                         static_cast<char>('0' + milliseconds % 10),
                         'Z'};
    out.append(last.text, 19);
    out.append(rest, sizeof rest);
}

void append_number(std::string& out, std::uint64_t number) {
    char digits[20];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

void append_hex(std::string& out, std::uint64_t number) {
    char digits[16];
    const auto end = std::to_chars(digits, digits + sizeof digits, number, 16).ptr;
    out.append(16 - static_cast<std::size_t>(end - digits), '0');
    out.append(digits, end);
}

// Milliseconds with the microseconds as decimals, without going through floating point.
void append_milliseconds(std::string& out, std::chrono::nanoseconds took) {
    const auto whole = std::chrono::floor<std::chrono::microseconds>(took).count();
    const auto microseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(whole, 0));
    append_number(out, microseconds / 1000);
    const auto rest = static_cast<unsigned>(microseconds % 1000);
    const char decimals[] = {'.',
                             static_cast<char>('0' + rest / 100),
                             static_cast<char>('0' + rest / 10 % 10),
                             static_cast<char>('0' + rest % 10)};
    out.append(decimals, sizeof decimals);
}

// `name` is the text between the values, its comma and colon included: ,"client":
void append_text(std::string& out, std::string_view name, std::string_view value) {
    if (value.empty()) {
        return;
    }
    out.append(name);
    out.push_back('"');
    append_json_escaped(out, value.substr(0, access_line_limits::text));
    out.append(value.size() > access_line_limits::text ? "...\"" : "\"");
}

void append_url(std::string& out, std::string_view url, bool query_values, std::size_t most) {
    auto left = most;
    bool cut = false;
    out.append(",\"url\":\"");
    for_each_public_piece(url, query_values, [&](std::string_view piece) {
        cut = cut || piece.size() > left;
        const auto shown = piece.substr(0, cut ? left : piece.size());
        append_json_escaped(out, shown);
        left -= shown.size();
        left = cut ? 0 : left;
    });
    out.append(cut ? "...\"" : "\"");
}

void append_duration(std::string& out,
                     std::string_view name,
                     const std::optional<std::chrono::nanoseconds>& took) {
    if (took) {
        out.append(name);
        append_milliseconds(out, *took);
    }
}

}  // namespace

void append_access_line(std::string& out,
                        const access_record& record,
                        bool query_values,
                        std::size_t most_of_url) {
    out.append("{\"time\":\"");
    append_time(out, record.time);
    out.append("\",\"id\":\"");
    append_hex(out, record.request_id);
    out.push_back('"');
    append_text(out, ",\"client\":", record.client);
    append_text(out, ",\"user\":", record.user);
    append_text(out, ",\"method\":", record.method);
    append_url(out, record.url, query_values, most_of_url);
    out.append(record.http_version == 10 ? ",\"http\":\"1.0\"" : ",\"http\":\"1.1\"");
    out.append(",\"status\":");
    append_number(out, record.status);
    append_text(out, ",\"outcome\":", to_string(record.how));
    append_text(out, ",\"reason\":", record.reason);
    append_text(out, ",\"error\":", record.error);
    out.append(",\"bytes_in\":");
    append_number(out, record.bytes_in);
    out.append(",\"bytes_out\":");
    append_number(out, record.bytes_out);
    append_duration(out, ",\"ms\":", record.total);
    append_duration(out, ",\"first_byte_ms\":", record.first_byte);
    append_duration(out, ",\"origin_ms\":", record.origin_time);
    append_text(out, ",\"origin\":", record.origin);
    append_text(out, ",\"peer\":", record.peer);
    append_text(out, ",\"user_agent\":", record.user_agent);
    append_text(out, ",\"traceparent\":", record.traceparent);
    if (record.sample > 1) {
        out.append(",\"sample\":");
        append_number(out, record.sample);
    }
    out.append("}\n");
}

}  // namespace reprise::proxy
