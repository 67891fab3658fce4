#pragma once
// The field lines of one message, as views.
// Nothing is copied: names and values point into the buffer the message was read to (or the stored
// head), which must outlive them. Names are compared without case (RFC 9110 5.1); `id` is Beast's
// number for the names it knows.

#include <boost/beast/http/field.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace reprise::proxy::http {

using field_id = boost::beast::http::field;

/// One field line. `value` has no leading or trailing white space.
struct field {
    field_id id = field_id::unknown;
    std::string_view name;
    std::string_view value;
};

/// A message's field lines in wire order.
using field_list = std::span<const field>;

/// ASCII, without case.
[[nodiscard]] bool iequals(std::string_view a, std::string_view b) noexcept;

/// The first field line with this name, or null. O(lines).
[[nodiscard]] const field* find(field_list fields, field_id id) noexcept;
[[nodiscard]] const field* find(field_list fields, std::string_view name) noexcept;

[[nodiscard]] std::size_t count(field_list fields, field_id id) noexcept;

/// Calls `each(std::string_view member)` for each non-empty member of a comma-separated list value
/// (RFC 9110 5.6.1); commas inside quoted strings do not separate. Stops early when `each` returns
/// false.
template <class Each>
void for_each_member(std::string_view value, Each&& each) {
    std::size_t begin = 0;
    bool quoted = false;
    for (std::size_t i = 0; i <= value.size(); ++i) {
        if (i < value.size()) {
            const char c = value[i];
            if (quoted) {
                if (c == '\\' && i + 1 < value.size()) {
                    ++i;
                } else if (c == '"') {
                    quoted = false;
                }
                continue;
            }
            if (c == '"') {
                quoted = true;
                continue;
            }
            if (c != ',') {
                continue;
            }
        }
        auto member = value.substr(begin, i - begin);
        begin = i + 1;
        while (!member.empty() && (member.front() == ' ' || member.front() == '\t')) {
            member.remove_prefix(1);
        }
        while (!member.empty() && (member.back() == ' ' || member.back() == '\t')) {
            member.remove_suffix(1);
        }
        if (!member.empty() && !each(member)) {
            return;
        }
    }
}

/// A digest of this message's content (RFC 9530, section 2; Content-MD5 of RFC 2616): of a part it is the part's,
/// of a 304 that of nothing. Repr-Digest is the whole's in each.
[[nodiscard]] bool is_content_digest(const field& line) noexcept;

/// Takes all lines of this name out.
void remove_lines(std::vector<field>& lines, field_id id);

/// True when one of these written lines ("Name: value" and CRLF each) has this name. O(bytes), no allocation.
[[nodiscard]] bool has_line(std::string_view lines, std::string_view name) noexcept;

/// True when some line of `fields` with this name has `token` among its list members, without case.
[[nodiscard]] bool has_token(field_list fields, field_id id, std::string_view token) noexcept;

}  // namespace reprise::proxy::http
