#pragma once
// What a URL's home (peering.homes) says to the node that asked it. Pure.
//
// Whatever it passes on, with its Via, is the answer. A page of its own is none: it says why the home has none. That
// may be the home's own affair, such as its settings, its parent or whom it believes: the way goes on without it, and
// what stands against the URL is found out once more. Or the origin failed the home, as it would fail this node.

#include "proxy/base/failure.hpp"
#include "proxy/http/message_head.hpp"

#include <cstdint>
#include <string_view>

namespace reprise::proxy::fetch {

struct home_answer {
    enum class kind : std::uint8_t {
        passed_on,      ///< it is the answer
        declined,       ///< the home does not answer this URL
        unfit,          ///< nor any other, for now: it is held against the home
        origin_failed,  ///< as if this node had asked
    };
    kind what = kind::passed_on;
    failure why{};  ///< but where it was passed on
};

/// @param name  the home's, in Proxy-Status
[[nodiscard]] home_answer judge_home_answer(const http::response_head& head, std::string_view name);

}  // namespace reprise::proxy::fetch
