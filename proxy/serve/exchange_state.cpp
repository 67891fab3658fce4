#include "proxy/serve/exchange_state.hpp"

#include "proxy/serve/peer_page.hpp"

namespace reprise::proxy::serve {

exchange_state::exchange_state(session_state& on, steady_time begun_at)
    : session{on},
      w{on.w},
      settings{on.w.current},
      started{begun_at},
      book{on, begun_at},
      out{on, *settings, book},
      head_bytes_{on.client.input().data().substr(0, on.head.bytes)} {
    asked.head = &on.head;
    out.version = on.head.version;
}

bool exchange_state::is_squids_question() const noexcept {
    return w.peers &&
           http::has_token(asked.head->fields, http::field_id::cache_control, "only-if-cached") &&
           w.peers->book->is_peer(client_of(session), true);
}

void exchange_state::consume_head() {
    session.client.input().consume(head_bytes_.size());
    head_bytes_ = {};
}

const std::shared_ptr<const fetch::request_copy>& exchange_state::copy() {
    if (!copy_) {
        copy_ = fetch::copy_request(*asked.head, head_bytes_);
        asked = moved_to(*copy_, head_bytes_, asked);
        consume_head();
    }
    return copy_;
}

}  // namespace reprise::proxy::serve
