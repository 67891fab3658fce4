#pragma once
// An answer that is fetched: by a fetch that this request begins, or joins.

#include "proxy/fetch/producer.hpp"
#include "proxy/serve/exchange_state.hpp"

#include <memory>
#include <optional>

namespace reprise::proxy::serve {

/// Relays one fetch, from its beginning.
class fetch_relay {
public:
    /// `order` is the fetch's, or what it would have been if this request `follows` another's
    /// fetch.
    fetch_relay(exchange_state& x, fetch::fetch_order& order, bool follows)
        : x_{x},
          order_{order},
          follows_{follows} {}

    /// None: nothing was sent, and this fetch is not to answer this request.
    [[nodiscard]] awaitable<std::optional<ended_or_next>> give(cache::fetch_reader& reader);

private:
    [[nodiscard]] awaitable<ended> pass_interim();
    [[nodiscard]] awaitable<std::optional<ended_or_next>> take_head(cache::fetch_reader& reader);
    [[nodiscard]] std::optional<ended_or_next> take_validated();
    [[nodiscard]] std::optional<ended_or_next> take_failure();
    [[nodiscard]] std::optional<ended_or_next> take_upgrade();
    [[nodiscard]] bool may_follow(const cache::fetch_reader& reader);
    [[nodiscard]] bool is_not_modified(const cache::fetched_head& head) const;
    [[nodiscard]] http::cache_status status_of(const cache::fetch_reader& reader) const;
    void note_head(const cache::fetched_head& head);

    exchange_state& x_;
    fetch::fetch_order& order_;
    const bool follows_;
    cache::head_ptr head_;
};

class fetched_reply {
public:
    explicit fetched_reply(exchange_state& x) : x_{x} {}
    [[nodiscard]] awaitable<ended_or_next> give(const answers::fetched& what);

private:
    [[nodiscard]] bool must_be_alone() const;
    [[nodiscard]] bool wants_whole() const;
    [[nodiscard]] bool has_used_its_share() const;
    [[nodiscard]] awaitable<ended_or_next> give_alone();
    [[nodiscard]] awaitable<ended_or_next> give_together();
    void lead(const std::shared_ptr<cache::fetch>& into, std::size_t pending_sights);
    void note_late_sight(cache::fetch& joined) const;

    exchange_state& x_;
    std::shared_ptr<fetch::fetch_order> order_;
};

/// The head of what was fetched, and then its body.
/// @pre x.book.how is said
[[nodiscard]] awaitable<ended_or_next> send_fetched(exchange_state& x,
                                                    cache::fetch_reader& reader,
                                                    cache::head_ptr head,
                                                    const http::cache_status& how);

/// Whether it may be said to be stored: since the head came, a late sight may have admitted it, or
/// it may have proved to be too much for memory.
[[nodiscard]] bool is_stored(const exchange_state& x,
                             const cache::fetched_head& head,
                             const cache::fetch& source);

}  // namespace reprise::proxy::serve
