#pragma once
// The far end of a CONNECT's tunnel: straight, or by the parents where they are the only way out.

#include "proxy/base/failure.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/http/target.hpp"
#include "proxy/net/address.hpp"
#include "proxy/net/way_through.hpp"
#include "proxy/serve/ledger.hpp"
#include "proxy/thread/settings.hpp"

#include <string_view>

namespace reprise::proxy::serve {

/// All of it outlives the call.
struct wanted_far_end {
    thread::worker& w;
    const thread::settings& settings;
    const http::target& target;
    const http::request_head& head;  ///< CONNECT's
    ledger& book;
    std::string_view why;  ///< its tunnel is not opened; static text
    net::share_holder asker;
};

/// Says whom it asked to the ledger. Time: timeouts.origin_connect, for each parent anew.
[[nodiscard]] awaitable<attempt<net::passage>> reach_far_end(wanted_far_end to);

}  // namespace reprise::proxy::serve
