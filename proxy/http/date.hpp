#pragma once
// HTTP dates (RFC 9110 5.6.7): read in all three forms, written in the one that may be sent.
// The reader is strict about shape (a date it has to guess at is no date) and, as RFC 9111 4.2 asks
// of caches, blind to letter case. No zone but GMT is read: a local zone must never change an
// expiry.

#include "proxy/base/clock.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy::http {

/// IMF-fixdate ("Sun, 06 Nov 1994 08:49:37 GMT"), RFC 850 ("Sunday, 06-Nov-94 08:49:37 GMT") or
/// asctime ("Sun Nov  6 08:49:37 1994"); none for everything else. Total, O(1), no allocation.
///
/// The day's name must be one, but need not be the right one for the date. A leap second reads as
/// the second before it (RFC 9111 4.2: "equal to or earlier"). A two-digit year means the latest
/// that lies at most 50 years after `now`, which serves this form alone.
[[nodiscard]] std::optional<wall_time> parse_date(std::string_view text, wall_time now) noexcept;

/// IMF-fixdate; always 29 characters. Fractions of a second are cut off; what lies outside the
/// years 0 to 9999 is clamped to them.
[[nodiscard]] std::array<char, 29> format_date(wall_time when) noexcept;

/// format_date at the end of `out`.
void append_date(std::string& out, wall_time when);

}  // namespace reprise::proxy::http
