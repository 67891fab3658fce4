#pragma once
// JSON text with comments -> a small tree of values, within limits.
// The settings have a tree of their own because nlohmann_json's keeps only the last of two members
// with one name, and because a parser that builds while it reads can stop at a limit before the
// memory is spent. Members stay in the file's order, doubles included.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace reprise::config {

enum class json_kind { null, boolean, integer, real, text, array, object };

struct json_value {
    json_kind kind = json_kind::null;
    bool truth = false;              ///< boolean
    bool negative = false;           ///< integer below zero; `whole` is then unused
    std::uint64_t whole = 0;         ///< integer
    double number = 0;               ///< real, and integer as near as a double comes
    std::string text;                ///< text: valid UTF-8; integer and real: as they were written
    std::vector<json_value> items;   ///< array, object
    std::vector<std::string> names;  ///< object: the name of the item with the same index
};

struct json_limits {
    std::size_t bytes = 1 << 20;
    std::size_t depth = 16;  ///< nested arrays and objects
    std::size_t values = 100'000;
};

/// Why a text is not JSON, or over a limit.
struct json_error {
    std::size_t line = 0, column = 0;  ///< from 1; column in bytes; 0: concerns the whole text
    std::string reason;                ///< printable ASCII, at most about 200 characters
};

/// Every text yields a value or a reason. O(text) time and memory; throws std::bad_alloc alone.
[[nodiscard]] std::variant<json_value, json_error> parse_json(std::string_view text,
                                                              const json_limits& limits = {});

/// `value` as JSON on one line, control characters escaped. What would be longer than `most`
/// bytes is cut and ends in "...". O(most).
[[nodiscard]] std::string brief(const json_value& value, std::size_t most = 60);

/// `text` as a JSON string, cut in the same way.
[[nodiscard]] std::string in_quotes(std::string_view text, std::size_t most = 60);

}  // namespace reprise::config
