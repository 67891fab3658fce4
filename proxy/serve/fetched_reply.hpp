#pragma once
// An answer that is fetched: by a fetch that this request begins, or joins.

#include "proxy/fetch/order.hpp"
#include "proxy/serve/exchange_state.hpp"

#include <memory>

namespace reprise::proxy::serve {

class fetched_reply {
public:
    explicit fetched_reply(exchange_state& x) : x_{x} {}
    [[nodiscard]] awaitable<ended_or_next> give(const answers::fetched& what);

private:
    [[nodiscard]] bool must_be_alone() const;
    [[nodiscard]] bool wants_whole() const;
    [[nodiscard]] bool has_used_its_share() const;
    [[nodiscard]] awaitable<ended_or_next> give_handed_on(answers::fetched what);
    [[nodiscard]] awaitable<ended_or_next> give_as_asked(const answers::fetched& what);
    [[nodiscard]] awaitable<ended_or_next> give_alone();
    [[nodiscard]] awaitable<ended_or_next> give_together();
    void lead(const std::shared_ptr<cache::fetch>& into, std::size_t pending_sights);
    void note_late_sight(const std::shared_ptr<cache::fetch>& source) const;

    exchange_state& x_;
    std::shared_ptr<fetch::fetch_order> order_;
};

}  // namespace reprise::proxy::serve
