#pragma once
// Targeted cache control (RFC 9213): a field such as CDN-Cache-Control that speaks to some caches
// alone, and to those in place of Cache-Control and Expires.
// Which fields mean us is the operator's list, in order. The first that is there, valid and not
// empty governs; one that is none of these is as if it were absent (2.1), so a typing error falls
// back to what everybody reads. Nothing is taken out of the response on its way (2.2 leaves that
// open): a cache behind us may have the same list.

#include "proxy/http/cache_control.hpp"
#include "proxy/http/fields.hpp"

#include <span>
#include <string>

namespace reprise::proxy::http {

/// The directives that govern this cache: of the first field of `targets` that is a dictionary
/// (RFC 9651) with at least one member, else Cache-Control's. `targeted` says which; with it,
/// freshness_of leaves Expires aside.
///
/// A targeted field's lines are one value, joined by commas; each must be whole by itself, since a
/// string cut by a line's end reads differently by everybody (RFC 9651 4.2). Keys are in lower
/// case, or the field is invalid. Parameters and unknown keys say nothing (2.1); the last of a
/// repeated key counts. A time of another type than integer is zero, as Cache-Control's is; a
/// negative one too; above 2^31 it is 2^31. A directive without a time is meant unless its value is
/// ?0; no-cache and private with a string, a token or an inner list name fields, and are obeyed whole: what is
/// withheld is read from Cache-Control alone.
///
/// O(targets x lines + bytes of the targeted lines), no allocation. With an empty list it is
/// read_response_directives.
[[nodiscard]] response_directives read_governing_directives(
    field_list response, std::span<const std::string> targets) noexcept;

}  // namespace reprise::proxy::http
