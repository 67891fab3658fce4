#pragma once
// The routes that every admin server has.

#include "proxy/admin/admin_answers.hpp"

namespace reprise::proxy::admin {

/// Adds the dashboard with what it is made of, /pages, /healthz, /readyz, /stats, /history, /log, /metrics and POST
/// /reload. Both arguments must outlive the
/// routes' use: the routes refer to them.
void add_standard_routes(admin_answers& answers, const admin_hooks& hooks);

}  // namespace reprise::proxy::admin
