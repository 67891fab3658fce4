#pragma once
// Where in /stats the figures stand that scenarios look at: named once.

#include <nlohmann/json.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace reprise::tests {

namespace figure_name {
inline constexpr const char* store_objects = "/store/objects";
inline constexpr const char* store_bytes = "/store/bytes";
inline constexpr const char* admission_refused = "/admission/first_sights_refused";
inline constexpr const char* ledger_objects = "/admission/ledger/objects";
inline constexpr const char* ledger_bytes = "/admission/ledger/bytes";
inline constexpr const char* joined = "/collapsing/joined";
inline constexpr const char* hits = "/requests/hit";
inline constexpr const char* misses = "/requests/miss";
}  // namespace figure_name

/// @throws std::runtime_error when /stats has no such number
[[nodiscard]] inline std::int64_t figure(const nlohmann::json& stats, const char* name) {
    const nlohmann::json::json_pointer place{name};
    if (!stats.contains(place) || !stats.at(place).is_number()) {
        throw std::runtime_error(std::string{"/stats has no "} + name);
    }
    return stats.at(place).get<std::int64_t>();
}

}  // namespace reprise::tests
