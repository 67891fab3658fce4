#pragma once
// What a connection needs while it has a request, and between two requests does not hold: most
// connections wait most of their time.

#include "proxy/net/read_buffer.hpp"
#include "proxy/serve/exchange.hpp"

#include <memory>
#include <optional>

namespace reprise::proxy::serve {

struct exchange_space {
    net::read_buffer input;  ///< of the connection, while it has no bytes to hold
    scratch memory;
    std::optional<exchange> one;
};

struct give_back_space {
    void operator()(exchange_space* space) const noexcept;
};
/// Whoever lets go of it gives it back, the exchange in it ended.
using exchange_space_ptr = std::unique_ptr<exchange_space, give_back_space>;

/// One of this thread's, which keeps as many as are in use at once, at most 64: what a request
/// allocates in it is there for the next.
[[nodiscard]] exchange_space_ptr take_space();

}  // namespace reprise::proxy::serve
