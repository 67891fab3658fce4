#pragma once
// What a sibling's answer is worth to the request that it was asked with. Pure: the query reads
// from the network and asks the store, this looks at bytes.
//
// What counts: 2xx, 3xx, 404 and 410 with an Age, which says that the answer comes from a store;
// framed by length or chunks, since an unframed answer may end because the sibling died; and one
// that this request can have: 304 and 206 are no answers to a plain GET, and a part must be a part
// that was asked for.

#include "proxy/http/message_head.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

namespace reprise::proxy::fetch {

struct sibling_answer {
    bool is_framed = false;  ///< false: where it ends cannot be said, and nothing else here holds
    /// The age it states, if it answers the request. None: it does not answer it.
    std::optional<std::chrono::seconds> age;
    bool has_begun = false;         ///< the first of its body has come, or it has none
    bool frees_connection = false;  ///< all of it has come, and another request may follow it
};

/// @param received  bytes of the answer that have come so far, its head among them
/// @param request   the head that the sibling was asked with, a GET, as it was sent
/// @throws std::bad_alloc
[[nodiscard]] sibling_answer judge_sibling_answer(const http::response_head& head,
                                                  std::size_t received,
                                                  std::string_view request);

}  // namespace reprise::proxy::fetch
