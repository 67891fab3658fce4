#pragma once
// The table of settings as pages for people: REFERENCE.md, and what --help-config prints.
// Both are made from settings.cpp's table alone, so neither can tell of a default or a bound that
// the parser does not have; a test fails when the committed REFERENCE.md is stale.

#include <string>

namespace reprise::config {

/// The whole of REFERENCE.md.
[[nodiscard]] std::string reference_markdown();

/// Plain ASCII, no line over 80 columns.
[[nodiscard]] std::string reference_text();

}  // namespace reprise::config
