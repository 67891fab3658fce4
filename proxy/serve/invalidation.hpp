#pragma once
// What an unsafe method's answer makes invalid (RFC 9111 4.4): its target, and what Location and
// Content-Location name of the same origin. Where no answer comes nothing is invalid (proxy/DESIGN.md).

#include "proxy/cache/fetch.hpp"
#include "proxy/serve/exchange_state.hpp"

namespace reprise::proxy::serve {

/// Does nothing for an answer that is an error.
void invalidate_after(exchange_state& x, const cache::fetched_head& head);

}  // namespace reprise::proxy::serve
