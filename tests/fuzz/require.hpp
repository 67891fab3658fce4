#pragma once
// What every fuzz target begins with: its promises, and its input as text.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace reprise::fuzz {

/// Ends the program, so that the fuzzer keeps the input, when a promise does not hold.
inline void require(bool held) {
    if (!held) {
        std::abort();
    }
}

[[nodiscard]] inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// Cuts one text into several: up to the next line feed, or its end.
[[nodiscard]] inline std::string_view take_line(std::string_view& text) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    return line;
}

}  // namespace reprise::fuzz
