#pragma once
// Whether what one source says may go on behind the beginning that another has sent.
//
// The bytes are compared elsewhere (prefix_hash), but they do not say what they mean: the second
// source must say the same of them. What a representation is told apart by and described with
// (RFC 9110 8) has to be the same, line for line: a part of one representation behind a part of
// another is neither, were their bytes alike so far.

#include "proxy/cache/fetch.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/message_head.hpp"

namespace reprise::proxy::fetch {

/// True when `next`, framed so, is the response that readers know as `begun`: status, length (where
/// both state it), range, validators, type, coding and language. O(lines of both).
/// @throws std::bad_alloc
[[nodiscard]] bool continues(const cache::fetched_head& begun,
                             const http::response_head& next,
                             const http::body_framing& framing);

}  // namespace reprise::proxy::fetch
