#pragma once
// Letters of ASCII, whatever the locale: what is not one stays as it is.

namespace reprise::proxy {

[[nodiscard]] constexpr char ascii_lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace reprise::proxy
