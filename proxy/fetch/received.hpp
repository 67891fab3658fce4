#pragma once
// A response's head as it came, and what its readers and the store are to know of it.

#include "proxy/base/clock.hpp"
#include "proxy/cache/fetch.hpp"
#include "proxy/fetch/order.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/message_head.hpp"

#include <memory>
#include <optional>
#include <string_view>

namespace reprise::proxy::fetch {

struct received {
    http::response_head head;  ///< views into the connection's buffer: gone when the body is read
    http::body_framing framing;
    bool persistent = false;                          ///< its sender keeps the connection
    wall_time requested{}, came{};                    ///< wall time
    wall_time resident_requested{}, resident_came{};  ///< the same in resident time
    std::uint16_t turn = 0;                           ///< of the request: cache::next_turn()
    steady_time sent{};
};

/// All but the verdict, whence it came, and what becomes of it.
/// @param at_most  it is fresh for no longer: peers[].max_age of the sibling that it is from
[[nodiscard]] std::shared_ptr<cache::fetched_head> head_for_readers(
    const received& from,
    const fetch_order& order,
    std::string_view pseudonym,
    std::optional<http::seconds> at_most = std::nullopt);

}  // namespace reprise::proxy::fetch
