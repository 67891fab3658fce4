#pragma once
// Squid's configuration as statements: what is left when continuation lines, comments, conditionals,
// macros and included files have been worked through.
// What a directive means is nobody's business here. Files are read by whoever calls, so that tests
// and the fuzzer bring their own.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::from_squid {

struct word {
    std::string text;
    bool quoted = false;  ///< it stood in "double quotes": a file's name where Squid takes one
    bool operator==(const word&) const = default;
};

/// Where a statement stands: "squid.conf:12".
struct position {
    std::string file;
    std::size_t line = 0;  ///< of its first line, from 1
    bool operator==(const position&) const = default;
};
[[nodiscard]] std::string to_string(const position& where);

struct statement {
    position where;
    std::vector<word> words;  ///< at least the directive's name
    [[nodiscard]] const std::string& name() const noexcept { return words.front().text; }
};

/// The files that a configuration names. Both give nothing for what can't be read.
struct file_source {
    std::function<std::optional<std::string>(const std::string& path)> read;
    /// The files that a pattern of `include` means (glob(7)), in order.
    std::function<std::vector<std::string>(const std::string& pattern)> matches;
};

struct conf_limits {
    std::size_t bytes = std::size_t{16} << 20;  ///< of all files together
    std::size_t depth = 16;                     ///< includes within includes
    std::size_t files = 10'000;  ///< read in all, one that is named twice counted twice
};

struct problem {
    position where;
    std::string what;
    bool hides = false;  ///< statements that Squid has in force may not be among ours
};

struct squid_conf {
    std::vector<statement> statements;
    std::vector<problem> problems;  ///< what was skipped: a missing file, an `if` without its endif
};

/// Total: every text yields statements and problems, within the limits; what is beyond them is a
/// problem. Conditionals are decided as for the only process (${process_number} is 1), a macro that
/// is none of Squid's stays as it is written. O(bytes).
[[nodiscard]] squid_conf read_squid_conf(const std::string& path,
                                         const file_source& files,
                                         const conf_limits& limits = {});

/// The words of one line, up to a word that begins with #. A quote that is not closed ends with the
/// line.
[[nodiscard]] std::vector<word> words_of(std::string_view line);

/// The lines of a file that a list's "quoted" word names: comments and blank lines left out, spaces
/// around them cut.
[[nodiscard]] std::vector<std::string> values_of(std::string_view text);

}  // namespace reprise::from_squid
