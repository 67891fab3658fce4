#pragma once
// What is on its way here, for a sibling that asks with only-if-cached: the fetch that brings it is
// joined, and streams to both. Only one whose head is known and says that it is being stored, and
// that no sibling feeds; or one that will probably be, and from then on asks its origin alone: so
// no node waits for one that waits for it, however siblings ask each other. Where it may not be
// joined after all, or is gone, the answer is what only-if-cached gets of nothing stored.
//
// Before a head it is joined by an asker that says it waits behind a 102 (peer::waits_field), and
// hears one.

#include "proxy/serve/exchange_state.hpp"

namespace reprise::proxy::serve {

class under_way_reply {
public:
    explicit under_way_reply(exchange_state& x) : x_{x} {}
    [[nodiscard]] awaitable<ended_or_next> give();

private:
    exchange_state& x_;
};

}  // namespace reprise::proxy::serve
