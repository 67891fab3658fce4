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

}  // namespace reprise::proxy::serve
