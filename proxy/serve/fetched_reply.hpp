#pragma once
// An answer that is fetched: by a fetch that this request begins, or joins.

#include "proxy/fetch/order.hpp"
#include "proxy/serve/exchange_state.hpp"
#include "proxy/serve/fetch_relay.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

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
    [[nodiscard]] awaitable<std::optional<ended_or_next>> give_first(cache::fetch_reader& in_hand,
                                                                     fetch_relay& relay);
    [[nodiscard]] std::unique_ptr<cache::fetch_reader> take_silent_that_spoke();
    [[nodiscard]] steady_time waited_for_until(const cache::fetch& source) const;
    [[nodiscard]] steady_time waits_in_all_until() const;
    void lead(const std::shared_ptr<cache::fetch>& into, std::size_t pending_sights);
    void note_late_sight(const std::shared_ptr<cache::fetch>& source) const;

    exchange_state& x_;
    std::shared_ptr<fetch::fetch_order> order_;
    /// Why the fetch in hand is left, where not for what it has brought: it says nothing, or one that had said nothing has brought
    /// what is for its own client alone, as this one will, probably.
    enum class leaving : std::uint8_t { no, silent, unshared };
    leaving leaves_ = leaving::no;
    /// Those that were silent. Whichever speaks first is the answer.
    std::vector<std::unique_ptr<cache::fetch_reader>> silent_;
};

}  // namespace reprise::proxy::serve
