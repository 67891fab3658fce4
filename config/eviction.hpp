#pragma once
// The eviction policies by name: what an operator may write, what reports say, and what
// proxy/cache/policy makes. A policy that is not in this table does not exist.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace reprise::config {

enum class eviction_kind : std::uint8_t {
    lru,
    sieve,
    s3_fifo,
    w_tinylfu,
    gdsf,    ///< small objects stay longer, as much so as its exponent of size says
    lfu_da,  ///< gdsf of exponent 0: an object is worth its requests, whatever its size
};

inline constexpr auto eviction_names = std::to_array<std::pair<std::string_view, eviction_kind>>({
    {"lru", eviction_kind::lru},
    {"sieve", eviction_kind::sieve},
    {"s3-fifo", eviction_kind::s3_fifo},
    {"w-tinylfu", eviction_kind::w_tinylfu},
    {"gdsf", eviction_kind::gdsf},
    {"lfu-da", eviction_kind::lfu_da},
});

[[nodiscard]] constexpr std::string_view to_string(eviction_kind kind) noexcept {
    return std::ranges::find(eviction_names, kind, [](const auto& one) { return one.second; })
        ->first;
}

[[nodiscard]] constexpr std::optional<eviction_kind> eviction_kind_of(
    std::string_view name) noexcept {
    for (const auto& [known, kind] : eviction_names) {
        if (known == name) {
            return kind;
        }
    }
    return std::nullopt;
}

}  // namespace reprise::config
