#pragma once
// What both plug-ins' options are read with.

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace reprise::trafficserver {

/// A word that is wrong, and what would be right. @throws std::invalid_argument
[[noreturn]] inline void refuse_word(std::string_view word, std::string_view right) {
    throw std::invalid_argument{"\"" + std::string{word} + "\": " + std::string{right}};
}

/// 1 to 40 of letters, digits, _ and -: part of a figure's name.
[[nodiscard]] inline bool is_name(std::string_view text) noexcept {
    constexpr std::size_t longest = 40;
    return !text.empty() && text.size() <= longest && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
    });
}

/// False where the text is not a number and nothing else, or one that does not fit.
template <class Number>
[[nodiscard]] bool read_number(std::string_view text, Number& out) noexcept {
    const auto* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, out);
    return read.ec == std::errc{} && read.ptr == end;
}

}  // namespace reprise::trafficserver
