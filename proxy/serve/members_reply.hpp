#pragma once
// What a sibling of this node holds, for another site, whose question this gateway hands on. The
// siblings whose digests name it are asked as ever, with only-if-cached, and what one has streams
// through; nothing of it is stored here, for nobody here asked for it, and no other fetch joins it.
// Where none has it, the answer is what only-if-cached gets of nothing stored.

#include "proxy/serve/exchange_state.hpp"

namespace reprise::proxy::serve {

class members_reply {
public:
    explicit members_reply(exchange_state& x) : x_{x} {}
    [[nodiscard]] awaitable<ended_or_next> give();

private:
    exchange_state& x_;
};

}  // namespace reprise::proxy::serve
