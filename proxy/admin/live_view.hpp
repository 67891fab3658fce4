#pragma once
// /live: requests as they end, as server-sent events (WHATWG HTML 9.2), for the dashboard and for
// `curl -N`. Each event's data is a line as the access log has it, the values of queries hidden
// whatever log.query_values says; an event "left_out" says how many of those asked for were not
// shown (base/live_feed.hpp).

#include "proxy/admin/admin_server.hpp"
#include "proxy/base/live_feed.hpp"

#include <string_view>

namespace reprise::proxy::admin {

/// `query`: host=NAME (and those below it), outcome=WORD; both, one, or none. 400 for anything else,
/// 503 where as many watch already as may. `feed` outlives the answer.
[[nodiscard]] admin_response live_view(live_feed& feed, std::string_view query);

}  // namespace reprise::proxy::admin
