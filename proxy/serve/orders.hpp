#pragma once
// What is ordered of an origin for a request.

#include "proxy/fetch/producer.hpp"
#include "proxy/serve/exchange_state.hpp"

#include <memory>

namespace reprise::proxy::serve {

/// What every order for this request says. The request is copied for it.
[[nodiscard]] std::shared_ptr<fetch::fetch_order> make_order(exchange_state& x);
/// Whether its response may be stored, and what it validates or describes.
void prepare_storing(const exchange_state& x, fetch::fetch_order& order);
/// It carries the client's own Range and conditions.
void ask_as_the_client_does(const exchange_state& x, fetch::fetch_order& order);

/// A fetch for this client and nobody else begins.
[[nodiscard]] std::unique_ptr<cache::fetch_reader> fetch_alone(
    exchange_state& x, const std::shared_ptr<fetch::fetch_order>& order);

/// True if another fetch, ended since the look-up, stored an answer. This request's own fetch then
/// ends, and its followers are served from the store too.
[[nodiscard]] bool came_meanwhile(exchange_state& x, cache::fetch_reader& place);

/// How long a request that would ask otherwise waits for the head of what another has asked, from when that
/// was sent: a quarter of timeouts.origin_head.
[[nodiscard]] steady_time::duration patience_with_another(const exchange_state& x);

/// The client has its stale answer; the origin is asked all the same, with this request's fields,
/// once for all requests meanwhile, or while the origin is silent to it once in patience_with_another(). Does nothing if anything stands against asking, or as many of the
/// client's fetches, or of all, go on unattended as may (cache/unattended.hpp).
void revalidate_behind(exchange_state& x);

/// Held by the leader of a fetch that has not begun: ends it if nobody fills it, whatever is
/// thrown.
class leadership {
public:
    /// `into` null: this request does not lead.
    leadership(exchange_state& x, std::shared_ptr<cache::fetch> into) noexcept
        : x_{x},
          into_{std::move(into)} {}
    ~leadership();
    leadership(const leadership&) = delete;
    leadership& operator=(const leadership&) = delete;
    /// Somebody fills it, or nobody is waiting.
    void is_over() noexcept { into_.reset(); }

private:
    exchange_state& x_;
    std::shared_ptr<cache::fetch> into_;
};

}  // namespace reprise::proxy::serve
