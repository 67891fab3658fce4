#pragma once
// A request head that outlives the buffer it was read from.
// What a fetch needs of its request must live as long as the fetch, and the session goes on to its
// next request before that: so a request that goes further than the store is copied once, and its
// views moved over.

#include "proxy/http/message_head.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace reprise::proxy::fetch {

struct request_copy {
    std::string bytes;
    http::request_head head;  ///< views into `bytes`
};

/// @pre every view of `head` points into `bytes` (a field line may have been dropped, none added)
[[nodiscard]] std::shared_ptr<const request_copy> copy_request(const http::request_head& head,
                                                               std::string_view bytes);

}  // namespace reprise::proxy::fetch
