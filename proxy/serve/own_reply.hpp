#pragma once
// What the proxy says itself: error pages (RFC 9209), and what OPTIONS, TRACE and purges get.

#include "proxy/serve/exchange_state.hpp"

namespace reprise::proxy::serve {

/// Counts a failure, and of which host's origin it is where it is one's.
/// @throws std::bad_alloc
void count_failure(exchange_state& x, failure_code code);

/// Composes the page of a failure, and counts it.
void compose_failure(exchange_state& x, const failure& why);
void compose_local(exchange_state& x, const answers::local& what);

/// The answer to bytes that are no request head: written, counted and logged; the connection is to
/// be closed.
void refuse_head(const lent& by, const failure& why, steady_time started);

}  // namespace reprise::proxy::serve
