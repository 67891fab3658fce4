#pragma once
// The dashboard's files as they stand in the program (dashboard_embedded.cpp). Apart from dashboard.hpp, so that what
// embeds them reads no more than it needs.

#include <string_view>

namespace reprise::proxy::admin::embedded {

/// dashboard/dashboard.html, with names in double braces where dashboard_page puts something.
[[nodiscard]] std::string_view page_template() noexcept;
[[nodiscard]] std::string_view style() noexcept;
[[nodiscard]] std::string_view script() noexcept;
[[nodiscard]] std::string_view icon() noexcept;
/// Chart.js below the notice that its licence wants.
[[nodiscard]] std::string_view charts() noexcept;

}  // namespace reprise::proxy::admin::embedded
