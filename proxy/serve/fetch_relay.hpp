#pragma once
// One fetch as an answer: its head judged, and what a client gets of that.

#include "proxy/fetch/order.hpp"
#include "proxy/serve/exchange_state.hpp"

#include <cstdint>
#include <optional>

namespace reprise::proxy::serve {

/// What a request is to the fetch that may answer it.
enum class fetch_role : std::uint8_t {
    leads,       ///< it was begun for this request
    awaits,      ///< it was joined before its head was there
    joins_late,  ///< after
};

/// Relays one fetch, from its beginning.
class fetch_relay {
public:
    /// `order` is the fetch's, or what it would have been if this request does not lead.
    fetch_relay(exchange_state& x, fetch::fetch_order& order, fetch_role role)
        : x_{x},
          order_{order},
          role_{role} {}

    /// Waits for what it brings first, and gives that. None: nothing was sent, and this fetch is not to
    /// answer this request.
    [[nodiscard]] awaitable<std::optional<ended_or_next>> give(cache::fetch_reader& reader);

    [[nodiscard]] bool follows() const noexcept { return role_ != fetch_role::leads; }

    // The same in steps, for who waits for more than one fetch. What has come of it stands in x.memory.report.

    /// A 1xx, for the client whose fetch it is.
    [[nodiscard]] awaitable<ended> pass_interim();
    /// Whether it answers this request: so whatever does that leads.
    [[nodiscard]] bool accepts(const cache::fetch_reader& reader);
    /// Gives it. @pre accepts()
    [[nodiscard]] awaitable<ended_or_next> take(cache::fetch_reader& reader);

    /// Why it is not accepted: for its age alone, which an answer to this request's own demands may not have.
    [[nodiscard]] bool was_too_old() const noexcept { return too_old_; }
    /// Or it has failed by what another request had said: this one may fare better.
    [[nodiscard]] bool was_others_failure() const noexcept { return others_failure_; }
    /// Or its body is its first reader's alone (fetch::serves_others): that is stored, if any is.
    [[nodiscard]] bool was_anothers_alone() const noexcept { return anothers_alone_; }
    /// What was stored, and was found to hold still, or fresh, but too long ago; null: a response had come instead.
    [[nodiscard]] const cache::stored_ptr& held_before() const noexcept { return held_before_; }
    /// Its client has left, perhaps, before it was looked at what the origin said: what follows from an
    /// unsafe method's success follows all the same.
    void note_unseen_head(const cache::fetch_reader& reader);

private:
    [[nodiscard]] awaitable<ended_or_next> take_head(cache::fetch_reader& reader);
    [[nodiscard]] awaitable<ended_or_next> take_end();
    [[nodiscard]] ended_or_next take_validated();
    [[nodiscard]] ended_or_next take_came_meanwhile();
    [[nodiscard]] ended_or_next take_failure();
    [[nodiscard]] ended_or_next take_upgrade();
    [[nodiscard]] bool may_follow(const cache::fetch_reader& reader);
    [[nodiscard]] bool may_share_validated();
    [[nodiscard]] bool may_share_failure(const cache::fetch& source);
    [[nodiscard]] bool is_not_modified(const cache::fetched_head& head) const;
    [[nodiscard]] http::cache_status status_of(const cache::fetch_reader& reader) const;
    void note_head(const cache::fetched_head& head);

    exchange_state& x_;
    fetch::fetch_order& order_;

    const fetch_role role_;
    bool too_old_ = false;
    bool others_failure_ = false;
    bool anothers_alone_ = false;
    cache::stored_ptr held_before_;
    cache::head_ptr head_;
};

/// 102 Processing, to a sibling that waits as this instance does for an origin.
[[nodiscard]] awaitable<ended> say_at_work(exchange_state& x);

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

/// What is given where a fetch failed: the page of that, or what is stored and stale (RFC 9111
/// 4.2.4: without an answer from the origin this cache is disconnected from it).
[[nodiscard]] answer answer_to_failed_fetch(exchange_state& x, failure why);

}  // namespace reprise::proxy::serve
