#pragma once
// A request's body: on its way to an origin while the answer comes, or in the way of the next
// request.

#include "proxy/fetch/upload.hpp"
#include "proxy/serve/exchange_state.hpp"

#include <memory>

namespace reprise::proxy::serve {

[[nodiscard]] std::shared_ptr<fetch::upload> make_upload(const exchange_state& x);

/// Whether a final answer of this status, composed now, will be the connection's last, since what is left of the
/// request's body will stand where the next request would: so its head has to say (RFC 9110 10.1.1, 9112 9.6). False where
/// that is drained behind the answer, and only then may prove to be too much.
[[nodiscard]] bool leaves_body_in_the_way(const exchange_state& x, unsigned status);

/// What is left of a request's body behind the reply: what an origin still reads goes on; little is
/// drained; else the connection ends. `keep` when nothing of it stands in front of the next
/// request. @pre there is a body
[[nodiscard]] awaitable<ended> finish_request_body(exchange_state& x, ended answered);

}  // namespace reprise::proxy::serve
