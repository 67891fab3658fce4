#pragma once
// Bytes from strangers, made fit for logs, terminals and pages. Every function is total: it takes
// any bytes, and its output is valid UTF-8 and bounded by a small multiple of its input.

#include <cstddef>
#include <string>
#include <string_view>

namespace reprise::proxy {

/// Appends `text` as the inside of a JSON string (without the quotes): controls (C0, DEL, C1) are
/// escaped, bytes that are no UTF-8 become U+FFFD. At most six bytes out for one in.
void append_json_escaped(std::string& out, std::string_view text);

/// Appends `text` for a line of a log that people read on a terminal: controls as \xNN, bytes that
/// are no UTF-8 as \xNN, a backslash doubled so that the two cannot be confused.
void append_printable(std::string& out, std::string_view text);
[[nodiscard]] std::string printable(std::string_view text);

/// Appends `text` for the inside of an HTML element or quoted attribute.
void append_html_escaped(std::string& out, std::string_view text);

/// Appends `url` without its user information and fragment. Unless `query_values`, the values in
/// its query, and in the parameters behind ";" in segments of its path, become "*"; names are kept
/// (a part without "=" is taken for a value). Understands absolute-form, origin-form and CONNECT's
/// authority-form, well-formed or not.
void append_redacted_url(std::string& out, std::string_view url, bool query_values);

}  // namespace reprise::proxy
