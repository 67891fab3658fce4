#pragma once
// What the admin listener's JSON says, as text for a terminal: pure, and total. A name that is
// missing is left out, so that a program reads what another release of it says. Names and lines come
// from strangers: no control character of theirs reaches the terminal.

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace reprise::proxy::admin {

/// /stats: is it well, and what does it save? Lines of at most `width` columns where words allow it.
[[nodiscard]] std::string status_page(const nlohmann::json& stats, std::size_t width = 80);
/// The same in one line, for whoever reads one after the other.
[[nodiscard]] std::string status_line(const nlohmann::json& stats);
/// Whether `stats` says that all is well.
[[nodiscard]] bool says_well(const nlohmann::json& stats);
/// /explain.
[[nodiscard]] std::string explanation_page(const nlohmann::json& told);
/// /purge.
[[nodiscard]] std::string purge_page(const nlohmann::json& told);

/// `text` with '?' for each control character, C1's among them, and for what is no UTF-8's beginning
/// of such a one.
[[nodiscard]] std::string for_terminal(std::string_view text);

}  // namespace reprise::proxy::admin
