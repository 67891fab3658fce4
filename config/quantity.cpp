#include "config/quantity.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <system_error>

namespace reprise::config {
namespace {

struct unit {
    std::string_view name;
    std::uint64_t factor;
};
constexpr std::array size_units{
    unit{"B", 1},
    unit{"KB", 1'000},
    unit{"MB", 1'000'000},
    unit{"GB", 1'000'000'000},
    unit{"TB", 1'000'000'000'000},
    unit{"KiB", 1ull << 10},
    unit{"MiB", 1ull << 20},
    unit{"GiB", 1ull << 30},
    unit{"TiB", 1ull << 40},
};
constexpr std::array time_units{
    unit{"ms", 1},
    unit{"s", 1'000},
    unit{"m", 60'000},
    unit{"h", 3'600'000},
    unit{"d", 86'400'000},
};

// Digits and one of the units; `example` and `named` end the sentence when it is neither.
parsed<std::uint64_t> parse_quantity(std::string_view text,
                                     std::span<const unit> units,
                                     std::uint64_t most,
                                     const std::string& example,
                                     const std::string& named) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (digits == 0) {
        return refusal{"write digits and a unit, such as " + example};
    }
    auto name = text.substr(digits);
    if (name.size() > 1 && name.front() == ' ') {
        name.remove_prefix(1);  // "50 GB", as people write it
    }
    for (const auto& [known, factor] : units) {
        if (known == name) {
            if (error != std::errc{} || number > most / factor) {
                return refusal{"too large to be counted"};
            }
            return number * factor;
        }
    }
    if (name.starts_with('.')) {
        return refusal{"write a whole number of a smaller unit, such as " + example};
    }
    return refusal{(name.empty() ? "the unit is missing: write " : "no such unit: write ") + named};
}

std::string in_largest_unit(std::uint64_t number, std::span<const unit> units) {
    const unit* largest = &units.front();
    for (const auto& candidate : units) {
        if (number != 0 && number % candidate.factor == 0 && candidate.factor > largest->factor) {
            largest = &candidate;
        }
    }
    return std::to_string(number / largest->factor) + std::string{largest->name};
}

}  // namespace

parsed<byte_count> parse_size(std::string_view text) {
    return parse_quantity(text,
                          size_units,
                          std::numeric_limits<std::uint64_t>::max(),
                          "\"256MiB\"",
                          "B, KB, MB, GB, TB or KiB, MiB, GiB, TiB");
}

parsed<std::chrono::milliseconds> parse_duration(std::string_view text) {
    const auto most = std::numeric_limits<std::chrono::milliseconds::rep>::max();
    const auto count = parse_quantity(
        text, time_units, static_cast<std::uint64_t>(most), "\"10s\"", "ms, s, m, h or d");
    if (const auto* number = value_of(count)) {
        return std::chrono::milliseconds{*number};
    }
    return std::get<refusal>(count);
}

parsed<double> parse_percentage(std::string_view text) {
    const refusal wrong{"write a number from 0 to 100 and a percent sign, such as \"2%\""};
    if (!text.ends_with('%')) {
        return wrong;
    }
    text.remove_suffix(1);
    double percent = 0;
    const auto [end, error] = std::from_chars(
        text.data(), text.data() + text.size(), percent, std::chars_format::fixed);
    // Negated, so that what is no number is refused too.
    if (error != std::errc{} || end != text.data() + text.size() ||
        !(percent >= 0 && percent <= 100)) {
        return wrong;
    }
    return percent / 100;
}

std::string percentage_to_string(double share) {
    std::array<char, 64> digits{};
    // Rounded: what dividing by 100 and multiplying again leave is none of the operator's digits.
    const double percent = std::round(share * 1e11) / 1e9;
    auto* const end = std::to_chars(digits.data(),
                                    digits.data() + digits.size(),
                                    percent,
                                    std::chars_format::fixed)
                          .ptr;
    return std::string{digits.data(), end} + '%';
}

std::string size_to_string(byte_count size) {
    const std::array binary{
        size_units[0], size_units[5], size_units[6], size_units[7], size_units[8]};
    return in_largest_unit(size, binary);
}

std::string duration_to_string(std::chrono::milliseconds time) {
    if (time.count() == 0) {
        return "0s";
    }
    const bool in_days = time >= std::chrono::hours{100};
    const auto units = std::span{time_units}.first(in_days ? 5 : 4);
    return in_largest_unit(static_cast<std::uint64_t>(time.count()), units);
}

}  // namespace reprise::config
