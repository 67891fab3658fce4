#pragma once
// This node's digest as a resource of the server itself, /.well-known/reprise/digest, for its siblings alone (proxy/peer/resource.hpp
// has the wire). Everything else below /.well-known/reprise/ is 404: it is never passed on.

#include "filter/plugins/trafficserver/neighbours.hpp"
#include "filter/plugins/trafficserver/own_digest.hpp"

#include <reprise/digest.h>
#include <string>
#include <ts/ts.h>

namespace reprise::trafficserver {

/// What an answer is made of. All of it stays.
struct answering {
    own_digest& own;
    neighbours& siblings;
    reprise_fleet* fleet;
    std::string node;
};

/// Whether this request is for one of our resources, in origin-form. Some ten nanoseconds.
[[nodiscard]] bool is_ours(TSHttpTxn txn) noexcept;

/// Answers it. On the transaction's thread, in its hook: the answer is made on a thread that may wait, and the transaction goes on
/// here then.
void answer_later(TSHttpTxn txn, const answering& with) noexcept;

}  // namespace reprise::trafficserver
