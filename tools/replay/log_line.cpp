#include "tools/replay/log_line.hpp"

#include "tools/replay/number.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <limits>

namespace reprise::replay {

namespace {

/// What is left of a line, read from its front.
class cursor {
public:
    explicit cursor(std::string_view text) noexcept : left_{text} {}

    /// Up to the next `end`, which is skipped; the rest if there is none.
    std::string_view until(char end) noexcept {
        const auto at = std::min(left_.find(end), left_.size());
        const auto out = left_.substr(0, at);
        left_.remove_prefix(std::min(at + 1, left_.size()));
        return out;
    }

    /// The next word between runs of spaces.
    std::string_view word() noexcept {
        left_.remove_prefix(std::min(left_.find_first_not_of(' '), left_.size()));
        return until(' ');
    }

    [[nodiscard]] std::string_view rest() const noexcept { return left_; }

private:
    std::string_view left_;
};

struct clock_time {
    unsigned hour, minute, second;
};

// A date as read, to seconds; none if there is no such day or hour.
std::optional<std::int64_t> seconds_of(int year,
                                       unsigned month,
                                       unsigned day,
                                       const clock_time& time) noexcept {
    const std::chrono::year_month_day date{
        std::chrono::year{year}, std::chrono::month{month}, std::chrono::day{day}};
    if (!date.ok() || time.hour > 23 || time.minute > 59 || time.second > 60) {
        return std::nullopt;
    }
    const auto days = std::chrono::sys_days{date}.time_since_epoch().count();
    return std::int64_t{days} * 86'400 + time.hour * 3'600 + time.minute * 60 + time.second;
}

// "07:08:09" from `at` on.
std::optional<clock_time> clock_at(std::string_view text, std::size_t at) noexcept {
    const auto hour = number_in<unsigned>(text.substr(at, 2));
    const auto minute = number_in<unsigned>(text.substr(at + 3, 2));
    const auto second = number_in<unsigned>(text.substr(at + 6, 2));
    return hour && minute && second ? std::optional{clock_time{*hour, *minute, *second}}
                                    : std::nullopt;
}

// "2024-05-06T07:08:09.123Z"; what follows the seconds is not read.
std::optional<std::int64_t> iso_time(std::string_view text) noexcept {
    if (text.size() < 19) {
        return std::nullopt;
    }
    const auto year = number_in<int>(text.substr(0, 4));
    const auto month = number_in<unsigned>(text.substr(5, 2));
    const auto day = number_in<unsigned>(text.substr(8, 2));
    const auto time = clock_at(text, 11);
    if (!year || !month || !day || !time) {
        return std::nullopt;
    }
    return seconds_of(*year, *month, *day, *time);
}

// "10/Oct/2020:13:55:36 -0700"
std::optional<std::int64_t> log_time(std::string_view text) noexcept {
    constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (text.size() != 26) {
        return std::nullopt;
    }
    const auto month = months.find(text.substr(3, 3));
    const auto day = number_in<unsigned>(text.substr(0, 2));
    const auto year = number_in<int>(text.substr(7, 4));
    const auto time = clock_at(text, 12);
    const auto zone_hours = number_in<unsigned>(text.substr(22, 2));
    const auto zone_minutes = number_in<unsigned>(text.substr(24, 2));
    if (month == std::string_view::npos || month % 3 != 0 || !day || !year || !time ||
        !zone_hours || !zone_minutes || (text[21] != '+' && text[21] != '-')) {
        return std::nullopt;
    }
    const auto local = seconds_of(*year, static_cast<unsigned>(month / 3 + 1), *day, *time);
    if (!local) {
        return std::nullopt;
    }
    const std::int64_t offset = *zone_hours * 3'600 + *zone_minutes * 60;
    return text[21] == '+' ? *local - offset : *local + offset;
}

/// Microseconds of milliseconds, an hour at most.
template <class Number>
std::uint64_t thousandfold(Number milliseconds) noexcept {
    constexpr Number hour = 3'600'000;
    return static_cast<std::uint64_t>(std::min(milliseconds, hour) * 1000);
}

// Method and status decide, in every format but the trace's.
log_line judged(std::int64_t seconds,
                std::string_view client,
                std::string_view method,
                std::string_view key,
                unsigned status,
                std::uint64_t bytes) noexcept {
    log_line out{.kind = line_kind::request,
                 .seconds = seconds,
                 .key = key,
                 .bytes = bytes,
                 .client = client};
    if (method != "GET") {
        out.kind = line_kind::other_method;
        return out;
    }
    switch (status) {
    case 206:
    case 304: out.whole = false; return out;
    case 200:
    case 203:
    case 204:
    case 300:
    case 301:
    case 308:
    case 404:
    case 405:
    case 410:
    case 414:
    case 501: return out;
    default: out.kind = line_kind::other_status; return out;
    }
}

log_line parse_trace(std::string_view line) noexcept {
    cursor in{line};
    const auto seconds = number_in<std::int64_t>(in.until(','));
    const auto key = in.until(',');
    const auto bytes = number_in<std::uint64_t>(in.until(','));
    const auto told = in.rest();
    const auto wait = told.empty() ? std::nullopt : number_in<std::uint64_t>(told);
    if (!seconds || key.empty() || !bytes || line.ends_with(',') || (!told.empty() && !wait)) {
        return {};
    }
    return {
        .kind = line_kind::request, .seconds = *seconds, .key = key, .bytes = *bytes, .wait = wait};
}

log_line parse_squid(std::string_view line) noexcept {
    cursor in{line};
    const auto time = in.word();
    const auto seconds = number_in<std::int64_t>(time.substr(0, time.find('.')));
    const auto elapsed = number_in<std::int64_t>(in.word());
    const auto client = in.word();
    cursor result{in.word()};
    const auto how = result.until(
        '/');  // TCP_MISS and the like: what another cache did is its affair
    const auto status = number_in<unsigned>(result.rest());
    const auto bytes = number_in<std::uint64_t>(in.word());
    const auto method = in.word();
    const auto url = in.word();
    if (!seconds || !elapsed || !status || !bytes || method.empty() || url.empty()) {
        return {};
    }
    auto read = judged(*seconds, client, method, url, *status, *bytes);
    if (how.ends_with("_MISS") && read.whole && *elapsed >= 0) {
        read.wait = thousandfold(static_cast<std::uint64_t>(*elapsed));
    }
    return read;
}

log_line parse_combined(std::string_view line) noexcept {
    cursor in{line};
    const auto client = in.word();
    (void)in.until('[');  // identity, user: anything, the user's name even with spaces
    const auto seconds = log_time(in.until(']'));
    (void)in.until('"');
    // A quotation mark in the request is escaped (\" or \x22), so the next bare one ends it.
    const auto quoted = in.rest();
    std::size_t end = 0;
    while (end < quoted.size() && quoted[end] != '"') {
        end += quoted[end] == '\\' ? 2 : 1;
    }
    if (!seconds || end >= quoted.size()) {
        return {};
    }
    cursor request{quoted.substr(0, end)};
    const auto method = request.word();
    const auto target = request.word();
    cursor after{quoted.substr(end + 1)};
    const auto status = number_in<unsigned>(after.word());
    const auto size = after.word();
    const auto bytes = size == "-" ? std::optional<std::uint64_t>{0}
                                   : number_in<std::uint64_t>(size);
    if (!status || !bytes || method.empty()) {
        return {};
    }
    if (target.empty()) {  // bytes that were no request ("-"): answered 400, or not at all
        return {.kind = line_kind::other_method, .seconds = *seconds};
    }
    return judged(*seconds, client, method, target, *status, *bytes);
}

// The members of a flat object, one after the other. Values come as written: a string without its
// quotation marks but with its escapes.
class members {
public:
    explicit members(std::string_view line) noexcept : left_{line} {
        skip_spaces();
        is_open_ = take('{');
    }

    struct member {
        std::string_view name, value;
    };

    /// The next; none at the end, and where it is not a flat object.
    std::optional<member> next() noexcept {
        skip_spaces();
        if (!is_open_ || take('}')) {
            is_whole_ = is_open_;
            is_open_ = false;
            return std::nullopt;
        }
        const auto name = text();
        skip_spaces();
        if (!name || !take(':')) {
            is_open_ = false;
            return std::nullopt;
        }
        skip_spaces();
        const auto value = !left_.empty() && left_.front() == '"' ? text() : plain();
        skip_spaces();
        if (!value || (!take(',') && (left_.empty() || left_.front() != '}'))) {
            is_open_ = false;
            return std::nullopt;
        }
        return member{*name, *value};
    }

    /// After next() gave none: whether the object was read to its end.
    [[nodiscard]] bool is_whole() const noexcept { return is_whole_; }

private:
    void skip_spaces() noexcept {
        left_.remove_prefix(std::min(left_.find_first_not_of(" \t"), left_.size()));
    }

    bool take(char wanted) noexcept {
        if (left_.empty() || left_.front() != wanted) {
            return false;
        }
        left_.remove_prefix(1);
        return true;
    }

    std::optional<std::string_view> text() noexcept {
        if (!take('"')) {
            return std::nullopt;
        }
        std::size_t end = 0;
        while (end < left_.size() && left_[end] != '"') {
            end += left_[end] == '\\' ? 2 : 1;
        }
        if (end >= left_.size()) {
            return std::nullopt;
        }
        const auto out = left_.substr(0, end);
        left_.remove_prefix(end + 1);
        return out;
    }

    std::optional<std::string_view> plain() noexcept {
        const auto end = left_.find_first_of(",}[]{ \t");
        if (end == 0 || end == std::string_view::npos) {
            return std::nullopt;
        }
        const auto out = left_.substr(0, end);
        left_.remove_prefix(end);
        return out;
    }

    std::string_view left_;
    bool is_open_ = false;
    bool is_whole_ = false;
};

log_line parse_json(std::string_view line) noexcept {
    std::optional<std::int64_t> seconds;
    std::optional<unsigned> status;
    std::optional<std::uint64_t> bytes;
    std::string_view client, method, url, outcome;
    std::optional<double> origin_ms;
    members in{line};
    while (const auto member = in.next()) {
        const auto& [name, value] = *member;
        if (name == "time") {
            seconds = iso_time(value);
        } else if (name == "client") {
            client = value.substr(0, std::min(value.rfind(':'), value.size()));
        } else if (name == "method") {
            method = value;
        } else if (name == "url") {
            url = value;
        } else if (name == "status") {
            status = number_in<unsigned>(value);
        } else if (name == "bytes_out") {
            bytes = number_in<std::uint64_t>(value);
        } else if (name == "outcome") {
            outcome = value;
        } else if (name == "origin_ms") {
            origin_ms = number_in<double>(value);
        }
    }
    if (!in.is_whole() || !seconds || !status || !bytes || method.empty()) {
        return {};
    }
    if (url.empty()) {
        return {.kind = line_kind::other_method, .seconds = *seconds};
    }
    auto read = judged(*seconds, client, method, url, *status, *bytes);
    if (outcome == "miss" && read.whole && origin_ms && *origin_ms >= 0) {
        read.wait = thousandfold(*origin_ms);
    }
    return read;
}

}  // namespace

std::string_view to_string(log_format format) noexcept {
    switch (format) {
    case log_format::trace: return "trace";
    case log_format::squid: return "squid";
    case log_format::combined: return "combined";
    case log_format::json: return "json";
    }
    return "?";
}

std::optional<log_format> format_of(std::string_view name) noexcept {
    for (const auto format : every_format) {
        if (to_string(format) == name) {
            return format;
        }
    }
    return std::nullopt;
}

log_line parse_line(log_format format, std::string_view line) noexcept {
    if (line.ends_with('\r')) {
        line.remove_suffix(1);
    }
    switch (format) {
    case log_format::trace: return parse_trace(line);
    case log_format::squid: return parse_squid(line);
    case log_format::combined: return parse_combined(line);
    case log_format::json: return parse_json(line);
    }
    return {};
}

bool hides_query(log_format format, std::string_view key) noexcept {
    switch (format) {
    case log_format::json: {
        const auto query = key.find('?');
        return query != std::string_view::npos && key.find('*', query) != std::string_view::npos;
    }
    case log_format::squid: return key.ends_with('?');
    case log_format::trace:
    case log_format::combined: return false;
    }
    return false;
}

std::optional<log_format> detect_format(std::span<const std::string_view> lines) noexcept {
    std::optional<log_format> best;
    std::size_t most = 0;
    for (const auto format : every_format) {
        const auto fits = static_cast<std::size_t>(
            std::count_if(lines.begin(), lines.end(), [format](std::string_view line) {
                return parse_line(format, line).kind != line_kind::malformed;
            }));
        if (fits > most) {
            most = fits;
            best = format;
        }
    }
    return 2 * most >= lines.size() ? best : std::nullopt;
}

}  // namespace reprise::replay
