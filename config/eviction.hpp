#pragma once
// The eviction policies by name: what an operator may write, what reports say, and what
// proxy/cache/policy makes. A policy that is not in this table does not exist.

#include <array>
#include <cstddef>
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

static_assert(
    [] {
        for (std::size_t i = 0; i < eviction_names.size(); ++i) {
            if (static_cast<std::size_t>(eviction_names[i].second) != i) {
                return false;
            }
        }
        return eviction_names.size() == static_cast<std::size_t>(eviction_kind::lfu_da) + 1;
    }(),
    "a row per enumerator, in their order");

[[nodiscard]] constexpr std::string_view to_string(eviction_kind kind) noexcept {
    return eviction_names[static_cast<std::size_t>(kind)].first;
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
