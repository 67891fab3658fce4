#pragma once
// A request that stored parts answer but for a gap: the gap alone is fetched, under If-Range, and
// goes out between what is held before and behind it (RFC 9111 3.4).
//
// Nothing goes out before the origin's head is here. That may be the gap, which confirms what is
// held: then what is held before it, the gap as it comes, and what is held behind it. Or it may be
// another representation, all of it, or an error: that answer, or the answer to the client's own
// request, is the client's, whole. Sending what is held at once would save the origin's delay and
// leave nothing to say but half an answer whenever the origin does not go along, for as long as the
// part is fresh. A gap that breaks off in the middle does break the connection off, never ended as
// if complete.

#include "proxy/serve/exchange_state.hpp"

namespace reprise::proxy::serve {

class partial_reply {
public:
    /// @pre x.stored has parts, and x.verdict says what they do for the request
    explicit partial_reply(exchange_state& x)
        : x_{x},
          kept_{x.stored.response},
          plan_{x.verdict.part} {}

    [[nodiscard]] awaitable<ended_or_next> give();

private:
    [[nodiscard]] bool fits(const cache::fetched_head& head) const;
    [[nodiscard]] awaitable<ended_or_next> send_around(cache::fetch_reader& gap,
                                                       cache::head_ptr head);
    [[nodiscard]] awaitable<ended_or_next> send_other(cache::fetch_reader& other,
                                                      cache::head_ptr head);
    [[nodiscard]] cache::stored_ptr updated_by(const cache::fetched_head& head) const;

    exchange_state& x_;
    const cache::stored_ptr kept_;
    const cache::part_plan plan_;  // its validator is a view into kept_'s head
};

}  // namespace reprise::proxy::serve
