#pragma once
// The producer of a fetch: one request to an origin, its response into the fetch, and perhaps into
// the store.
//
// Steps   acquire a connection;
//         send the head (the body goes beside, upload.hpp);
//         pass interim responses on;
//         read the head: a 304 to our own validation freshens what is stored, and ends it;
//         judge: storable? (RFC 9111) admitted? (the filter);
//         read the body at the pace of the readers;
//         store it;
//         give the connection back.
// Retry   once, on a new connection, when a reused one ended before a byte of the response and the
//         request may be sent twice (a safe method without a body).
// It lives on the thread that began it, and needs nothing of the session that did.

#include "proxy/fetch/order.hpp"
#include "proxy/thread/worker.hpp"

#include <memory>

namespace reprise::proxy::fetch {

/// Begins a producer for `order` on this worker's thread.
void start_producer(thread::worker& w, std::shared_ptr<fetch_order> order);

}  // namespace reprise::proxy::fetch
