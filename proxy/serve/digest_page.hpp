#pragma once
// GET /digest of the admin server: a digest for people.
//
//     ?of=NAME         a sibling's as it is held; without it this instance's own as last published
//     &url=URL         (repeated) whether it lists the URL
//     &with=NAME       how many objects both have, estimated; "" is this instance's own
//
// Threads   any. Cost: O(bits) for a comparison.

#include "proxy/peer/peering.hpp"

#include <string>
#include <string_view>

namespace reprise::proxy::serve {

struct digest_page {
    unsigned status = 200;
    std::string text;
};

/// `peers`: null where there are none. `query`: not decoded.
[[nodiscard]] digest_page show_digest(const peer::peering* peers, std::string_view query);

}  // namespace reprise::proxy::serve
