#pragma once
// An answer that the store has. A body on disk is sent while it is read.

#include "proxy/serve/exchange_state.hpp"

#include <optional>

namespace reprise::proxy::serve {

/// Composes the answer that x.stored and x.verdict say, but for a body on disk. None: there is no
/// such body.
[[nodiscard]] std::optional<answers::body_on_disk> compose_stored(exchange_state& x,
                                                                  const answers::stored& what);
/// The same response, stale, for an origin that failed.
[[nodiscard]] std::optional<answers::body_on_disk> compose_stand_in(exchange_state& x,
                                                                    const answers::stand_in& what);

/// Sends what is composed and, behind it, a body from disk.
class disk_body_reply {
public:
    disk_body_reply(exchange_state& x, answers::body_on_disk& what) : x_{x}, what_{what} {}
    [[nodiscard]] awaitable<ended_or_next> give();

private:
    [[nodiscard]] awaitable<ended_or_next> go_on(cache::disk_body_reader::read_result what);

    exchange_state& x_;
    answers::body_on_disk& what_;
};

}  // namespace reprise::proxy::serve
