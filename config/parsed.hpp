#pragma once
// What a pure parser of one text answers: the value, or a sentence for the operator.

#include <string>
#include <utility>
#include <variant>

namespace reprise::config {

/// Why a text is refused: what is wrong with it and what would be right.
struct refusal {
    std::string right;
    bool operator==(const refusal&) const = default;
};

template <class T>
using parsed = std::variant<T, refusal>;

/// The value, or null.
template <class T>
[[nodiscard]] const T* value_of(const parsed<T>& answer) noexcept {
    return std::get_if<T>(&answer);
}

}  // namespace reprise::config
