#include "proxy/settings.hpp"

#include <utility>

namespace reprise::proxy {

settings_ptr make_settings(config::options options) {
    auto next = std::make_shared<settings>();
    next->guard = make_guard(options.access);
    next->request_limits.bytes = options.limits.head_size;
    next->request_limits.fields = options.limits.fields;
    next->request_limits.target = options.limits.url_length;
    next->response_limits.bytes = options.limits.head_size;
    next->response_limits.fields = options.limits.fields;
    next->freshness.heuristic_fraction = options.freshness.heuristic_fraction;
    next->freshness.heuristic_most = options.freshness.heuristic_most;
    next->freshness.heuristic_errors = options.freshness.heuristic_errors;
    next->freshness.negative = options.freshness.negative;
    next->storing.never_cookies = options.caching.set_cookie == config::cookie_storing::never;
    // The setting bounds the memory; three sixteenths of it are for what is not counted while it is
    // held: the batches that clients' sockets are being sent, half-filled blocks, the heap's gaps
    // (tests/scenario/shared_fetch.cpp measures the sum).
    next->fetches.window = options.collapsing.window / 16 * 13;
    next->fetches.finish = options.collapsing.finish;
    // The smaller figures follow the window, so that one setting bounds what a fetch holds.
    next->fetches.read_ahead = std::min<std::uint64_t>(256u << 10, options.collapsing.window / 4);
    next->fetches.first_bytes = next->fetches.read_ahead;
    next->options = std::move(options);
    return next;
}

}  // namespace reprise::proxy
