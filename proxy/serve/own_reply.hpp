#pragma once
// What the proxy says itself: error pages (RFC 9209), and what OPTIONS, TRACE and purges get.

#include "proxy/serve/exchange_state.hpp"

namespace reprise::proxy::serve {

/// Composes the page of a failure, and counts it.
void compose_failure(exchange_state& x, const failure& why);
void compose_local(exchange_state& x, const answers::local& what);

/// The answer to bytes that are no request head: written, counted and logged; the connection is to
/// be closed.
void refuse_head(const lent& by, const failure& why, steady_time started);

/// What is given where a fetch failed: the page of that, or what is stored and stale (RFC 9111
/// 4.2.4: without an answer from the origin this cache is disconnected from it).
[[nodiscard]] answer answer_to_failed_fetch(exchange_state& x, failure why);
/// What is stored, stale, may stand in for an answer that the origin failed to give.
/// @param disconnected  it gave none at all
[[nodiscard]] bool may_stand_in(const exchange_state& x, bool disconnected, wall_time now);

}  // namespace reprise::proxy::serve
