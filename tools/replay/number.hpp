#pragma once
// A number that is the whole of a text.

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace reprise::replay {

template <class T>
[[nodiscard]] std::optional<T> number_in(std::string_view text) noexcept {
    T value{};
    const auto* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || at != end || text.empty()) {
        return std::nullopt;
    }
    return value;
}

}  // namespace reprise::replay
