#pragma once
// Settings on their way into a file: values by path, and the notes that stand beside them.

#include "tools/from_squid/notes.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace reprise::from_squid {

using ordered_json = nlohmann::ordered_json;

/// The settings as a file's text, each note a comment above the setting that it names (or above the
/// section, or at the end). What comes from outside ends no comment.
[[nodiscard]] std::string text_of(const ordered_json& settings, const notes& told);

/// Takes out of `settings` what config::load refuses, and adds a note for each; afterwards it
/// refuses nothing.
void drop_refused(ordered_json& settings, notes& told);

/// Whether this program's settings have one of this path ("access.users_file").
[[nodiscard]] bool has_setting(std::string_view path);

}  // namespace reprise::from_squid
