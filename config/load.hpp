#pragma once
// A file of settings -> options, or every mistake in it at once.
// The file is JSON with // and /* */ comments. Which settings there are, their bounds and what
// each means stand in settings.cpp's table; what is added here is the file: its size, its syntax.

#include "config/mistake.hpp"
#include "config/options.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace reprise::config {

/// What a text says, and every mistake in it. Where there are some, the options are what could be
/// read of the rest: a member that is wrong has its default. They are for looking on, whether the
/// files that they name can be used, and for finding whom to ask (admin/commands): nothing is to run by them.
struct reading {
    options wanted;
    std::vector<mistake> mistakes;
};

/// What `section`, a member of the whole, says may not have been read because of this mistake: then it has its
/// default in the place of what was meant. So where nothing was read at all, and where its name is misspelt.
[[nodiscard]] bool leaves_open(const mistake& wrong, std::string_view section);

/// The options, or at least one mistake: never half of each.
using loaded = std::variant<options, std::vector<mistake>>;

/// A file is read up to here; a longer one is a mistake.
inline constexpr std::size_t most_file_bytes = 1 << 20;

/// What `json_text` does not mention keeps its default. Total: every text yields one or the other,
/// in time and memory bounded by most_file_bytes. Throws std::bad_alloc alone. Reads nothing but
/// its argument: whether the files and addresses that it names exist is found out by their users.
[[nodiscard]] reading read(std::string_view json_text);
[[nodiscard]] loaded load(std::string_view json_text);

/// The same for a file. One that cannot be read is a mistake, whose path is empty and whose text
/// names the file. Blocks on the file system.
[[nodiscard]] reading read_file(const std::string& path);
[[nodiscard]] loaded load_file(const std::string& path);

}  // namespace reprise::config
