#pragma once
// What is known of a request's URL without asking anybody: the part of an explanation that is the
// same whatever the verdict (serve/explain.hpp has what each member says).

#include "proxy/base/clock.hpp"
#include "proxy/peer/peer_book.hpp"
#include "proxy/serve/request.hpp"
#include "proxy/thread/settings.hpp"
#include "proxy/thread/worker.hpp"

#include <nlohmann/json.hpp>

namespace reprise::proxy::serve {

/// Adds `key`, `stored`, `fetch_under_way`, `storing`, `largest`, `admission`, `rules` and `siblings`
/// to `out`.
/// The store and the filter are only peeked at. Any thread.
void add_what_is_known(nlohmann::json& out,
                       const thread::common_state& common,
                       const thread::settings& now_settings,
                       const config::listener& listener,
                       const peer::peer_book* book,
                       const request& asked,
                       wall_time now);

}  // namespace reprise::proxy::serve
