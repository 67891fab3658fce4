#include "tools/from_squid/draft.hpp"

#include "config/quantity.hpp"

#include <charconv>
#include <chrono>
#include <limits>

namespace reprise::from_squid {

namespace {

std::optional<double> number_of(std::string_view text) {
    double value = 0;
    const auto* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    const bool good = read.ec == std::errc{} && read.ptr == end && value >= 0 && value < 1e15;
    return good ? std::optional{value} : std::nullopt;
}

struct unit {
    std::string_view name;  ///< in lower case
    double worth;
};

// Squid compares units without case, and no farther than its own word for one goes: "mb" and "MBytes"
// are MB, "Hours" an hour. Without any it is `bare`.
std::optional<double> worth_of(const std::string& written,
                               double bare,
                               std::initializer_list<unit> units) {
    if (written.empty()) {
        return bare;
    }
    const auto name = lower_case(written);
    for (const auto& one : units) {
        if (name.starts_with(one.name)) {
            return one.worth;
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> option_of(const statement& from, std::string_view name) {
    for (const auto& each : from.words) {
        if (each.text.size() > name.size() && each.text.starts_with(name) &&
            each.text[name.size()] == '=') {
            return each.text.substr(name.size() + 1);
        }
    }
    return std::nullopt;
}

bool has_word(const statement& from, std::string_view text) {
    for (const auto& each : from.words) {
        if (each.text == text) {
            return true;
        }
    }
    return false;
}

std::optional<std::uint64_t> bytes_at(const statement& from, std::size_t index) {
    const auto number = number_of(word_at(from, index));
    const auto worth = worth_of(
        word_at(from, index + 1),
        1,
        {{"bytes", 1}, {"kb", 1024}, {"mb", 1048576}, {"gb", 1073741824.0}});
    if (!number || !worth || *number * *worth > 9e18) {
        return std::nullopt;
    }
    return static_cast<std::uint64_t>(*number * *worth);
}

std::optional<std::string> duration_at(const statement& from, std::size_t index) {
    const auto number = number_of(word_at(from, index));
    const auto worth = worth_of(word_at(from, index + 1),
                                1e3,
                                {{"millisecond", 1},
                                 {"second", 1e3},
                                 {"minute", 6e4},
                                 {"hour", 3.6e6},
                                 {"day", 8.64e7},
                                 {"week", 6.048e8},
                                 {"fortnight", 1.2096e9},
                                 {"month", 2.592e9}});
    if (!number || !worth || *number * *worth > 1e15) {
        return std::nullopt;
    }
    return config::duration_to_string(
        std::chrono::milliseconds{static_cast<std::int64_t>(*number * *worth)});
}

std::string minutes_text(std::uint64_t minutes) {
    return config::duration_to_string(std::chrono::minutes{
        static_cast<std::int64_t>(std::min<std::uint64_t>(minutes, 1u << 30))});
}

}  // namespace reprise::from_squid
