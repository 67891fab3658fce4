#pragma once
// Structured fields (RFC 9651, which obsoletes RFC 8941): dictionaries, and what their members are
// made of, read where they stand.
// A reader gives out views of the text and forgets everything else: no tree, no allocation, no
// recursion (an inner list holds items alone), one pass. The grammar is strict, as section 4.2
// asks: what does not parse is no field, so a caller that acts on members must first have walked
// the line to its end and found that it did not fail, lest it act on the front half of nonsense.
//
// Lists and items at the top are not read; nothing here has a use for one.

#include <cstdint>
#include <optional>
#include <string_view>

namespace reprise::proxy::http {

enum class sf_kind : std::uint8_t {
    integer,         ///< `number`, at most 15 digits
    decimal,         ///< `number` in thousandths: 12 digits, a point, 1 to 3 digits
    string,          ///< `text` between the quotes, escapes kept
    token,           ///< `text`
    byte_sequence,   ///< `text` between the colons: base64
    boolean,         ///< `number`: 0 or 1
    date,            ///< `number`: seconds since 1970 (RFC 9651 3.3.7)
    display_string,  ///< `text` between the quotes, percent-encoded (RFC 9651 3.3.8)
    inner_list,      ///< `text` between the parentheses
};

/// One value with its parameters, as views of what was read.
struct sf_value {
    sf_kind kind = sf_kind::boolean;
    std::int64_t number = 0;
    std::string_view text{};
    std::string_view parameters{};  ///< "" or ";a=1;b"
};

/// "key=value", or "key" alone, whose value is then true.
struct sf_member {
    std::string_view key{};  ///< lower case letters, digits, "_-.*"
    sf_value value{};
};

/// Walks one dictionary. O(text) for all of it.
class dictionary_reader {
public:
    explicit dictionary_reader(std::string_view text) noexcept;

    /// The next member, or none: at the end, or where the text is no dictionary (`failed`). A key
    /// may come again: the last one counts (RFC 9651 4.2.2), which is the caller's to see to.
    [[nodiscard]] std::optional<sf_member> next() noexcept;
    [[nodiscard]] bool failed() const noexcept { return failed_; }

private:
    std::string_view rest_;
    bool first_ = true;
    bool failed_ = false;
};

/// Walks an inner list: `sf_value::text` of one, or a text that is to be one. O(text) for all of it.
class inner_list_reader {
public:
    explicit inner_list_reader(std::string_view text) noexcept;

    /// The next item, or none: at the end, or where the text is no inner list (`failed`).
    [[nodiscard]] std::optional<sf_value> next() noexcept;
    [[nodiscard]] bool failed() const noexcept { return failed_; }

private:
    std::string_view rest_;
    bool failed_ = false;
};

/// Walks `sf_value::parameters`. O(text) for all of it.
class parameter_reader {
public:
    explicit parameter_reader(std::string_view text) noexcept : rest_{text} {}

    /// The next one, or none: at the end, or where the text is none (`failed`). A key may come
    /// again, as in a dictionary.
    [[nodiscard]] std::optional<sf_member> next() noexcept;
    [[nodiscard]] bool failed() const noexcept { return failed_; }

private:
    std::string_view rest_;
    bool failed_ = false;
};

}  // namespace reprise::proxy::http
