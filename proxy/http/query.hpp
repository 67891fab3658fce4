#pragma once
// The parameters of a query string, "url=http%3A%2F%2Fhost%2F&soft", as the admin pages take them.
// RFC 3986's percent-encoding and nothing more: "+" is a plus sign, since URLs hold some, and not
// the space that HTML forms write with it.

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::http {

struct query_parameter {
    std::string name;
    std::string value;  ///< decoded; empty where there is no "="
    bool operator==(const query_parameter&) const = default;
};

/// Every parameter in its order; empty pieces ("&&") are left out. None when a "%" is not followed
/// by two hexadecimal digits, when a name or value holds a control character, decoded or not, or
/// when there are more than `most`. O(bytes).
[[nodiscard]] std::optional<std::vector<query_parameter>> parse_query(std::string_view query,
                                                                      std::size_t most = 128);

/// The first of `once` that is there more than once; empty: none is. Where two contradict each
/// other neither is to be taken.
[[nodiscard]] std::string_view named_twice(const std::vector<query_parameter>& all,
                                           std::initializer_list<std::string_view> once) noexcept;

}  // namespace reprise::proxy::http
