#pragma once
// Vary (RFC 9111 4.1, RFC 9110 12.5.5): which request fields choose among variants, and a request's
// values for them as one canonical text.
// The text is what a variant is keyed by, so it is injective: other values, another count of lines'
// joined content, or a field that is absent and not empty, give another text.
//
// Always give the request *as forwarded*, hop-by-hop fields and what Connection names taken out
// (forwarding.hpp's strip_hop_by_hop): what is keyed is what the origin saw. Keyed by what the
// client sent, "Connection: foo" beside "Foo: 1" would file the origin's answer to a request
// without Foo under Foo: 1, for everyone who really sends that.

#include "proxy/http/fields.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace reprise::proxy::http {

/// The selecting field names of one response, from all its Vary lines.
struct vary_spec {
    static constexpr std::size_t most_names = 32;
    static constexpr std::size_t most_bytes = 1024;

    /// Lower case, sorted, each once, separated by commas: equal sets are equal texts.
    std::string names;
    /// Nothing can match: "*" among the names, a name that is no token, or more of them than the
    /// bounds above.
    bool any = false;

    /// The response has one variant for all requests.
    [[nodiscard]] bool empty() const noexcept { return names.empty() && !any; }
    /// @param name  in lower case
    [[nodiscard]] bool has(std::string_view name) const noexcept;
    bool operator==(const vary_spec&) const = default;
};

/// A vary_spec that somebody else holds.
struct vary_view {
    std::string_view names;
    bool any = false;

    vary_view(std::string_view names_of, bool is_any) noexcept : names{names_of}, any{is_any} {}
    vary_view(const vary_spec& of) noexcept : names{of.names}, any{of.any} {}

    [[nodiscard]] bool empty() const noexcept { return names.empty() && !any; }
    /// A copy to keep.
    [[nodiscard]] vary_spec spec() const { return {std::string{names}, any}; }
    friend bool operator==(const vary_view&, const vary_view&) = default;
};

/// Reads every Vary line. Allocates only if there is one.
[[nodiscard]] vary_spec read_vary(field_list response);

/// True if read_vary(response).any; no allocation. Vary lines with many names cost the most:
/// most_names squared comparisons.
[[nodiscard]] bool varies_by_anything(field_list response) noexcept;

/// The request's values for the names of `spec`, in canonical text. Lines of one name are joined
/// by a comma; white space around commas outside quoted strings goes. Order is kept: it can mean
/// preference. In fields that are known to be no lists (User-Agent, Referer, Cookie ...) each byte
/// and each line counts.
///
/// Accept-Language, Accept-Encoding and Accept-Charset are read further, since RFC 9111 4.1 lets
/// values match that their field's specification gives one meaning: letters have no case, spaces
/// around ";" and a weight of 1 say nothing, nor do a weight's last zeros, empty members, repeated
/// ones, and the order of members (preferences.hpp). A value that preference_list finds not plain
/// is taken as it stands, in lower case.
/// @pre field values contain no line feed and no CR (the head's parser refuses them)
[[nodiscard]] std::string selecting_values(vary_view spec, field_list request);

/// selecting_values(spec, request) == stored_values, and `spec.any` is false. No allocation;
/// O(names x lines).
[[nodiscard]] bool matches(vary_view spec,
                           std::string_view stored_values,
                           field_list request) noexcept;

}  // namespace reprise::proxy::http
