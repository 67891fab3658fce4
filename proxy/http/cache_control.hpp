#pragma once
// Cache-Control (RFC 9111 5.2, RFC 5861, RFC 8246): all lines of a message, read once, into flags
// and times.
// Names have no case; an argument may be a token or a quoted string (5.2: recipients accept both),
// and what stands inside the quotes of an unknown directive is never a directive. A quote that is
// not closed is an ordinary character, so that it cannot hide a no-store behind it.
//
// Times: the first of several equal directives counts (4.2.1 leaves the choice between that and
// "stale"). One that is no non-negative integer (empty, missing, negative, "3600.0", white space
// around "=") makes a response stale: zero. Above 2^31 seconds it is 2^31 (1.2.2). A directive
// without a time keeps its effect whatever argument it is given.

#include "proxy/http/fields.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

namespace reprise::proxy::http {

using std::chrono::seconds;

/// The largest time that is read, 2^31 seconds (RFC 9111 1.2.2).
inline constexpr seconds longest_delta{2147483648};

/// What a client asks of caches on the way (RFC 9111 5.2.1). `min_fresh` and `max_stale` that are
/// no integers are left out, which is the stricter reading of max-stale and all that can be done
/// for min-fresh; max-age that is none is zero.
struct request_directives {
    std::optional<seconds> max_age, min_fresh, max_stale;
    bool max_stale_any = false;  ///< max-stale without an argument: however stale
    bool no_cache = false;       ///< Pragma's too, where there is no Cache-Control (5.4)
    bool no_store = false;
    bool only_if_cached = false;
    bool no_transform = false;
    bool operator==(const request_directives&) const = default;
};

/// What an origin allows caches (RFC 9111 5.2.2).
///
/// `private="field"` and `no-cache="field"` are obeyed field by field (RFC 9111 5.2.2.4, 5.2.2.7):
/// `..._fields` says so, and what is stored leaves those fields out (withheld_names). `no_cache` and
/// `private_` are true for the plain form, and where what is named can't be left out: nothing, no
/// field names, or a field that caching itself needs; and in a targeted field. `..._argument` says that it
/// is the latter: it speaks of fields, and is obeyed whole since they can't be left out alone (overriding.hpp
/// asks; what is stored does not know it).
struct response_directives {
    std::optional<seconds> max_age, s_maxage;
    std::optional<seconds> stale_while_revalidate, stale_if_error;  ///< RFC 5861
    bool no_store = false;
    bool no_cache = false;
    bool private_ = false;
    bool public_ = false;
    bool must_revalidate = false;
    bool proxy_revalidate = false;
    bool must_understand = false;
    bool immutable = false;  ///< RFC 8246
    bool no_transform = false;
    bool no_cache_fields = false;
    bool private_fields = false;
    bool no_cache_argument = false;
    bool private_argument = false;
    bool targeted = false;  ///< of a field meant for this cache, in place of Expires (RFC 9213)
    bool operator==(const response_directives&) const = default;
};

/// O(bytes of the Cache-Control lines), no allocation. A message without any costs one pass over
/// its lines' ids.
[[nodiscard]] request_directives read_request_directives(field_list request) noexcept;
[[nodiscard]] response_directives read_response_directives(field_list response) noexcept;

/// What a no-cache="..." or private="..." of a response's lines names: no part of what is stored. To be
/// asked where `no_cache_fields` or `private_fields` is true.
class withheld_names {
public:
    /// So many names, of all directives together, are kept; with more the directives are obeyed
    /// whole, and not field by field.
    static constexpr std::size_t most = 32;

    /// O(bytes of the Cache-Control lines), no allocation. Views of these lines.
    explicit withheld_names(field_list response) noexcept;
    /// O(1): it is compared with each.
    [[nodiscard]] bool has(const field& line) const noexcept;

private:
    std::array<std::string_view, most> names_{};
    std::size_t count_ = 0;
};

/// 1*DIGIT as seconds, at most longest_delta; none for everything else (RFC 9111 1.2.2).
[[nodiscard]] std::optional<seconds> parse_delta_seconds(std::string_view text) noexcept;

}  // namespace reprise::proxy::http
