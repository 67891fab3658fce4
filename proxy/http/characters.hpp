#pragma once
// HTTP's classes of characters (RFC 9110 5.5, 5.6), and how to get over a run of one class fast.
// Header only: these loops are most of what reading a head costs, so they have to be inlined.
// Text is skipped eight bytes at a time; a token, being short, by a table.

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace reprise::proxy::http {

constexpr std::array<bool, 256> make_tchars() {
    std::array<bool, 256> table{};
    for (const char c : std::string_view{"!#$%&'*+-.^_`|~0123456789"
                                         "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"}) {
        table[static_cast<unsigned char>(c)] = true;
    }
    return table;
}
inline constexpr auto tchars = make_tchars();

[[nodiscard]] inline bool is_tchar(char c) noexcept {
    return tchars[static_cast<unsigned char>(c)];
}
[[nodiscard]] inline bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}
[[nodiscard]] inline bool is_blank(char c) noexcept {
    return c == ' ' || c == '\t';
}
[[nodiscard]] constexpr bool is_alpha(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
[[nodiscard]] constexpr char lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

/// Without the blanks at both ends.
[[nodiscard]] inline std::string_view trimmed(std::string_view text) noexcept {
    while (!text.empty() && is_blank(text.front())) {
        text.remove_prefix(1);
    }
    while (!text.empty() && is_blank(text.back())) {
        text.remove_suffix(1);
    }
    return text;
}

[[nodiscard]] inline const char* skip_token(const char* p, const char* end) noexcept {
    while (p != end && is_tchar(*p)) {
        ++p;
    }
    return p;
}

/// The first byte below `Least`, or DEL, or `end`. The lowest flag of the word is exact, since
/// borrows only run upwards (Warren, Hacker's Delight, 6-1); hence little-endian only.
template <unsigned char Least>
[[nodiscard]] inline const char* skip_above(const char* p, const char* end) noexcept {
    if constexpr (std::endian::native == std::endian::little) {
        constexpr std::uint64_t ones = 0x0101010101010101;
        constexpr std::uint64_t highs = 0x8080808080808080;
        for (; end - p >= 8; p += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, p, 8);
            const std::uint64_t del = word ^ (ones * 0x7f);
            const std::uint64_t flags = (((word - ones * Least) & ~word) | ((del - ones) & ~del)) &
                                        highs;
            if (flags != 0) {
                return p + std::countr_zero(flags) / 8;
            }
        }
    }
    for (; p != end; ++p) {
        const auto c = static_cast<unsigned char>(*p);
        if (c < Least || c == 0x7f) {
            break;
        }
    }
    return p;
}

/// The first control character but HTAB, or `end`: the end of a field value or reason phrase.
[[nodiscard]] inline const char* skip_text(const char* p, const char* end) noexcept {
    p = skip_above<0x20>(p, end);
    while (p != end && *p == '\t') {
        p = skip_above<0x20>(p + 1, end);
    }
    return p;
}

/// The first control character, space or DEL, or `end`: the end of a target.
[[nodiscard]] inline const char* skip_visible(const char* p, const char* end) noexcept {
    return skip_above<0x21>(p, end);
}

}  // namespace reprise::proxy::http
