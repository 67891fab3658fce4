#pragma once
// How a request ended, for the log's line and the counters.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace reprise::proxy {

/// How a request ended: one per request, counted when its response is done (or given up).
enum class outcome : std::uint8_t {
    hit,             ///< a fresh stored response, or a 304 or 206 made from one; no origin asked
    revalidated,     ///< a stored response, after the origin said 304
    stale,           ///< a stale stored response, without the origin's word
    miss,            ///< from the origin; it was, or could have been, stored
    sibling,         ///< from a sibling's store; it was, or could have been, stored here too
    collapsed,       ///< from another request's fetch, as it arrived
    pass,            ///< from the origin; could not be answered from the store nor be stored
    tunnel,          ///< CONNECT or Upgrade: bytes both ways
    local,           ///< answered here by definition: OPTIONS and TRACE at Max-Forwards 0
    only_if_cached,  ///< the client wanted it stored or not at all, and it was not: 504
    client_error,    ///< the request is at fault: 400, 408, 414, 417, 431, 501, 505
    refused,         ///< may not be asked: access, destinations, limits, loops; or draining
    error,           ///< the origin or this proxy failed before the response's head
    cut_short,       ///< the origin or this proxy failed after it: the client got part
    client_gone,     ///< the client left before its response was complete
};
inline constexpr std::size_t outcome_count = 15;
[[nodiscard]] std::string_view to_string(outcome value) noexcept;

/// What was stored was the answer; an origin may have said that it is still good.
[[nodiscard]] constexpr bool is_from_store(outcome value) noexcept {
    return value == outcome::hit || value == outcome::revalidated || value == outcome::stale;
}

}  // namespace reprise::proxy
