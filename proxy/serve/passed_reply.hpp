#pragma once
// An answer that is an origin's alone: to another method, to a request with a body, to an upgrade.

#include "proxy/serve/exchange_state.hpp"

namespace reprise::proxy::serve {

class passed_reply {
public:
    explicit passed_reply(exchange_state& x) : x_{x} {}
    [[nodiscard]] awaitable<ended_or_next> give();

private:
    /// The body's first bytes are awaited before an origin's connection is taken: a client that
    /// sends nothing takes none.
    [[nodiscard]] awaitable<ended> await_body();

    exchange_state& x_;
};

}  // namespace reprise::proxy::serve
