#pragma once
// What a sibling's answer is worth to the request that it was asked with. Pure: the query reads
// from the network and asks the store, this looks at bytes.
//
// What counts: 2xx, 3xx, 404 and 410 with an Age, which says that the answer comes from a store;
// framed by length or chunks, since an unframed answer may end because the sibling died; and one
// that this request can have: 304 and 206 are no answers to a plain GET, and a part must be a part
// that was asked for.
//
// A sibling's word is not taken for more than it could be true of: what says private or no-store is
// nothing that a store shares; nor is what says no-cache, or a lifetime that its own Age is beyond,
// anything that it may answer without its origin (but for stale-while-revalidate, RFC 5861 3, and
// what the request allows). All by the directives that govern here, and by the rules for this URL:
// what these set aside is no obstacle. A lifetime that nobody states is any cache's own guess, and
// is not held against it. What is older than peers[].max_age is not taken.

#include "proxy/http/cache_control.hpp"
#include "proxy/http/freshness.hpp"
#include "proxy/http/message_head.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace reprise::proxy::fetch {

struct sibling_answer {
    bool is_framed = false;  ///< false: where it ends cannot be said, and nothing else here holds
    /// The age it states, if it answers the request. None: it does not answer it.
    std::optional<std::chrono::seconds> age;
    bool has_begun = false;         ///< the first of its body has come, or it has none
    bool frees_connection = false;  ///< all of it has come, and another request may follow it
    bool has_surplus = false;       ///< more has come than it said
};

/// What it was asked with, and by what it is judged here.
struct sibling_terms {
    std::string_view request;        ///< the head, a GET without Cookie or Authorization, as sent
    http::request_directives asked;  ///< of it
    const http::freshness_rules& rules;     ///< of its URL
    std::span<const std::string> targeted;  ///< the fields that govern here (http/targeted.hpp)
    std::optional<http::seconds> max_age;   ///< peers[].max_age
    wall_time sent, came;
};

/// @param received  bytes of the answer that have come so far, its head among them
/// @throws std::bad_alloc
[[nodiscard]] sibling_answer judge_sibling_answer(const http::response_head& head,
                                                  std::size_t received,
                                                  const sibling_terms& terms);

}  // namespace reprise::proxy::fetch
