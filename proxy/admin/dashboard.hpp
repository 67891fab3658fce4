#pragma once
// The dashboard: one page and what it is made of (dashboard/), all embedded in the program.
//
// The page says at once whether all is well and what is saved, with the figures of the moment it is
// asked for: whoever has no JavaScript has these and a table. The script asks /stats and /history
// every two seconds while the page is seen, and draws with Chart.js. Nothing is asked of anybody
// else, and whatever comes from strangers (names of hosts, lines of the log) is put in as text.

#include "proxy/admin/dashboard_files.hpp"
#include "proxy/admin/stats.hpp"

#include <span>
#include <string>
#include <string_view>

namespace reprise::proxy::admin {

/// What the page asks for beside itself and the figures.
struct dashboard_asset {
    std::string_view path, content_type, text;
};
[[nodiscard]] std::span<const dashboard_asset> dashboard_assets() noexcept;

/// HTML. Null: the figures can't be had just now.
[[nodiscard]] std::string dashboard_page(const stats_inputs* inputs);

}  // namespace reprise::proxy::admin
