#pragma once
// The table of settings as pages for people: REFERENCE.md, what --help-config prints, and the manual page reprise.json(5).
// All are made from settings.cpp's table alone, so none can tell of a default or a bound that
// the parser does not have; a test fails when the committed REFERENCE.md is stale.

#include <string>
#include <string_view>

namespace reprise::config {

/// The whole of REFERENCE.md.
[[nodiscard]] std::string reference_markdown();

/// The manual page, in the macros of man(7).
/// @param version  of the program, as the foot has it
[[nodiscard]] std::string reference_manual(std::string_view version);

/// Plain ASCII, no line over 80 columns.
[[nodiscard]] std::string reference_text();

}  // namespace reprise::config
