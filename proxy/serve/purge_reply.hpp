#pragma once
// PURGE, as a client sends it: carried out, and answered when a restart would know of it.

#include "proxy/serve/exchange_state.hpp"

namespace reprise::proxy::serve {

class purge_reply {
public:
    explicit purge_reply(exchange_state& x) : x_{x} {}
    [[nodiscard]] awaitable<ended_or_next> give();

private:
    [[nodiscard]] awaitable<bool> is_kept();

    exchange_state& x_;
};

}  // namespace reprise::proxy::serve
