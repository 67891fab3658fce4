#include "proxy/http/date.hpp"

#include "proxy/http/fields.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

// The fourth character tells the three forms apart, and each is then read by its grammar alone;
// whether there is such a day is asked at the end (checked). Times are kept within the years 0 to
// 9999, which is what the written form can say.

namespace reprise::proxy::http {

namespace {

using namespace std::chrono;

constexpr std::array<std::string_view, 7> short_days{
    "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 7> long_days{
    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> months{
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

constexpr wall_time earliest = sys_days{year{0} / January / 1};
constexpr wall_time latest = sys_days{year{9999} / December / 31} + hours{24} - milliseconds{1};

// Takes a text apart from the front. After the first mismatch every further step fails too, so the
// forms below read as their grammar does and are checked once, at the end.
class reader {
public:
    explicit reader(std::string_view text) noexcept : rest_{text} {}

    void literal(std::string_view expected) noexcept {
        if (ok_ && rest_.size() >= expected.size() &&
            iequals(rest_.substr(0, expected.size()), expected)) {
            rest_.remove_prefix(expected.size());
        } else {
            ok_ = false;
        }
    }

    unsigned digits(std::size_t how_many) noexcept {
        unsigned value = 0;
        ok_ = ok_ && rest_.size() >= how_many;
        for (std::size_t i = 0; ok_ && i < how_many; ++i) {
            const char c = rest_[i];
            ok_ = c >= '0' && c <= '9';
            value = value * 10 + static_cast<unsigned>(c - '0');
        }
        if (ok_) {
            rest_.remove_prefix(how_many);
        }
        return ok_ ? value : 0;
    }

    /// asctime's day: two digits, or a space and one.
    unsigned padded_day() noexcept {
        if (ok_ && !rest_.empty() && rest_.front() == ' ') {
            rest_.remove_prefix(1);
            return digits(1);
        }
        return digits(2);
    }

    /// Which of `names` comes next, from 0.
    unsigned one_of(std::span<const std::string_view> names) noexcept {
        for (std::size_t i = 0; ok_ && i < names.size(); ++i) {
            // Most names are told apart by their third letter, in either case of it.
            if (rest_.size() > 2 && ((rest_[2] ^ names[i][2]) & ~0x20) != 0) {
                continue;
            }
            if (iequals(rest_.substr(0, names[i].size()), names[i])) {
                rest_.remove_prefix(names[i].size());
                return static_cast<unsigned>(i);
            }
        }
        ok_ = false;
        return 0;
    }

    [[nodiscard]] bool at_end() const noexcept { return ok_ && rest_.empty(); }

private:
    std::string_view rest_;
    bool ok_ = true;
};

struct time_parts {
    unsigned year = 0, month = 0, day = 0;  ///< month from 1
    unsigned hour = 0, minute = 0, second = 0;
};

void read_time(reader& in, time_parts& parts) noexcept {
    parts.hour = in.digits(2);
    in.literal(":");
    parts.minute = in.digits(2);
    in.literal(":");
    parts.second = in.digits(2);
}

wall_time moment(const time_parts& parts) noexcept {
    const year_month_day date{
        year{static_cast<int>(parts.year)}, month{parts.month}, day{parts.day}};
    return sys_days{date} + hours{parts.hour} + minutes{parts.minute} +
           seconds{std::min(parts.second, 59u)};
}

std::optional<wall_time> checked(const time_parts& parts) noexcept {
    const year_month_day date{
        year{static_cast<int>(parts.year)}, month{parts.month}, day{parts.day}};
    if (!date.ok() || parts.hour > 23 || parts.minute > 59 || parts.second > 60) {
        return std::nullopt;
    }
    return moment(parts);
}

std::optional<wall_time> read_imf_fixdate(std::string_view text) noexcept {
    reader in{text};
    time_parts parts;
    in.one_of(short_days);
    in.literal(", ");
    parts.day = in.digits(2);
    in.literal(" ");
    parts.month = in.one_of(months) + 1;
    in.literal(" ");
    parts.year = in.digits(4);
    in.literal(" ");
    read_time(in, parts);
    in.literal(" GMT");
    return in.at_end() ? checked(parts) : std::nullopt;
}

std::optional<wall_time> read_asctime(std::string_view text) noexcept {
    reader in{text};
    time_parts parts;
    in.one_of(short_days);
    in.literal(" ");
    parts.month = in.one_of(months) + 1;
    in.literal(" ");
    parts.day = in.padded_day();
    in.literal(" ");
    read_time(in, parts);
    in.literal(" ");
    parts.year = in.digits(4);
    return in.at_end() ? checked(parts) : std::nullopt;
}

std::optional<wall_time> read_rfc850(std::string_view text, wall_time now) noexcept {
    reader in{text};
    time_parts parts;
    in.one_of(long_days);
    in.literal(", ");
    parts.day = in.digits(2);
    in.literal("-");
    parts.month = in.one_of(months) + 1;
    in.literal("-");
    parts.year = in.digits(2);
    in.literal(" ");
    read_time(in, parts);
    in.literal(" GMT");
    if (!in.at_end()) {
        return std::nullopt;
    }
    // RFC 9110 5.6.7: what would be more than 50 years ahead was meant in the past.
    now = std::clamp(now, earliest, latest);
    const auto today = floor<days>(now);
    const auto limit = std::min<wall_time>(
        sys_days{year_month_day{today} + years{50}} + (now - today), latest);
    const auto century = static_cast<unsigned>(static_cast<int>(year_month_day{today}.year())) /
                         100;
    parts.year += (century + 1) * 100;
    while (parts.year >= 100 && moment(parts) > limit) {
        parts.year -= 100;
    }
    return checked(parts);
}

}  // namespace

std::optional<wall_time> parse_date(std::string_view text, wall_time now) noexcept {
    // The shortest and the longest of the three forms; the fourth character tells them apart.
    if (text.size() < 24 || text.size() > 33) {
        return std::nullopt;
    }
    switch (text[3]) {
    case ',': return read_imf_fixdate(text);
    case ' ': return read_asctime(text);
    default: return read_rfc850(text, now);
    }
}

std::array<char, 29> format_date(wall_time when) noexcept {
    when = std::clamp(when, earliest, latest);
    const auto today = floor<days>(when);
    const year_month_day date{today};
    const hh_mm_ss time{floor<seconds>(when - today)};

    std::array<char, 29> text;
    auto at = text.begin();
    const auto put = [&](std::string_view s) { at = std::copy(s.begin(), s.end(), at); };
    const auto two = [&](unsigned value) {
        *at++ = static_cast<char>('0' + value / 10 % 10);
        *at++ = static_cast<char>('0' + value % 10);
    };
    put(short_days[weekday{today}.c_encoding()]);
    put(", ");
    two(static_cast<unsigned>(date.day()));
    put(" ");
    put(months[static_cast<unsigned>(date.month()) - 1]);
    put(" ");
    const auto full_year = static_cast<unsigned>(static_cast<int>(date.year()));
    two(full_year / 100);
    two(full_year);
    put(" ");
    two(static_cast<unsigned>(time.hours().count()));
    put(":");
    two(static_cast<unsigned>(time.minutes().count()));
    put(":");
    two(static_cast<unsigned>(time.seconds().count()));
    put(" GMT");
    return text;
}

void append_date(std::string& out, wall_time when) {
    const auto text = format_date(when);
    out.append(text.data(), text.size());
}

}  // namespace reprise::proxy::http
