#pragma once
// What the proxy tells its peers: digests, in origin-form on forward listeners.

#include "proxy/peer/resource.hpp"
#include "proxy/serve/exchange_state.hpp"

namespace reprise::proxy::serve {

/// What is asked for is one of the peers' resources (peer/resource.hpp), read by nobody else.
[[nodiscard]] bool is_for_peers(const exchange_state& x) noexcept;

/// A peer's page. A Squid that comes before the digest is there may have to wait for it, and may
/// have it in two pieces. A sibling that follows by news waits until there is some. Whoever has not taken
/// it within a minute, of a Squid five, is broken off.
class peer_page {
public:
    explicit peer_page(exchange_state& x) : x_{x} {}
    [[nodiscard]] awaitable<ended_or_next> give();

private:
    [[nodiscard]] bool should_wait() const;
    [[nodiscard]] awaitable<ended> wait_until_ready();
    [[nodiscard]] awaitable<ended> wait_for_news(const peer::asker& who,
                                                 peer::resource_answer& page);
    [[nodiscard]] awaitable<ended> send_until(steady_time until);
    [[nodiscard]] awaitable<ended> send_in_two(const peer::resource_answer& page);

    exchange_state& x_;
};

}  // namespace reprise::proxy::serve
