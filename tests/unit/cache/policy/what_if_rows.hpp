#pragma once
// What tests of the ghosts' report look at.

#include "proxy/cache/policy/what_if.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string_view>

namespace reprise::proxy::cache::test {

inline constexpr steady_time start{std::chrono::hours{1'000}};

inline const what_if_row& row_of(const what_if_report& report,
                                 std::string_view name,
                                 what_if_row::group of = what_if_row::group::admission) {
    const auto it = std::find_if(report.rows.begin(), report.rows.end(), [&](const auto& row) {
        return row.of == of && row.name == name;
    });
    REQUIRE(it != report.rows.end());
    return *it;
}

}  // namespace reprise::proxy::cache::test
