#include "proxy/serve/ledger.hpp"

#include "proxy/cache/stored_response.hpp"
#include "proxy/serve/session_state.hpp"

#include <new>

// How a request is counted and logged once it is over.

namespace reprise::proxy::serve {

ledger::ledger(session_state& session, steady_time started) noexcept
    : session_{session},
      started_{started},
      out_before_{session.client.bytes_out()},
      in_before_{session.client.bytes_in() - session.client.input().size()} {}

void ledger::note_first_byte() {
    if (!first_byte_) {
        first_byte_ = steady_now() - started_;
    }
}

void ledger::note_body(body_source from, std::uint64_t bytes) {
    const auto before = body_.any() ? 0 : asio::buffer_size(session_.parts);
    body_.note(from, bytes, session_.client.bytes_out(), before);
}

void ledger::settle() {
    if (!body_.any()) {
        return;
    }
    const auto sent = body_.settle(session_.client.bytes_out());
    auto& counts = session_.w.counts;
    counts.body_bytes_to_clients.add(sent.bytes);
    switch (sent.from) {
    case body_source::store: counts.body_bytes_from_store.add(sent.bytes); break;
    case body_source::shared: counts.body_bytes_from_collapsing.add(sent.bytes); break;
    case body_source::fetch: break;
    }
}

// What other settings would have done with this request, if a stored response may answer it. A part
// of a fetched body, or none of it, does not tell how large it is.
void ledger::tell_advisor(const request& asked, std::uint64_t sent, steady_time now) const {
    auto& advice = session_.w.common.advice;
    switch (how) {
    case outcome::hit:
    case outcome::stale:
    case outcome::revalidated:
        if (asked.sent != nullptr && !asked.sent->parts) {
            advice.note(asked.key, asked.sent->size(), now);
        }
        return;
    case outcome::miss:
    case outcome::sibling:
    case outcome::collapsed:
        if (status == 200) {
            advice.note(asked.key, sent, now);
        }
        return;
    case outcome::pass:
    case outcome::tunnel:
    case outcome::local:
    case outcome::only_if_cached:
    case outcome::client_error:
    case outcome::refused:
    case outcome::error:
    case outcome::cut_short:
    case outcome::client_gone: return;
    }
}

void ledger::close(const request& asked) noexcept {
    if (closed_) {
        return;
    }
    closed_ = true;
    note_answered();
    settle();
    auto& w = session_.w;
    const auto& client = session_.client;
    const auto out = client.bytes_out() - out_before_;
    const auto in = client.bytes_in() - session_.client.input().size() - in_before_ +
                    asked.unconsumed;
    w.counts.bytes_to_clients.add(out);
    w.counts.bytes_from_clients.add(in);
    note_request(w.counts, how, status);
    note_latency(w.counts, how, first_byte_.value_or(*took_), *took_);
    try {
        tell_advisor(asked, out, started_ + *took_);
        if (w.common.access.enabled()) {
            log(asked, in, out);
        }
    } catch (const std::bad_alloc&) {
        // An exchange that ends for want of memory must not end the program.
    }
}

void ledger::log(const request& asked, std::uint64_t in, std::uint64_t out) const {
    auto& w = session_.w;
    access_record record;
    record.time = wall_now();
    record.request_id = w.next_request_id();
    const auto from = session_.client_address + ":" + std::to_string(session_.client_port);
    record.client = from;
    if (asked.head != nullptr) {
        record.http_version = asked.head->version;
        record.method = asked.head->method_text;
        record.url = asked.head->target;
        if (const auto* agent = http::find(asked.head->fields, http::field_id::user_agent)) {
            record.user_agent = agent->value;
        }
    }
    record.status = status;
    record.how = how;
    record.reason = reason;
    record.error = error;
    record.bytes_in = in;
    record.bytes_out = out;
    record.total = *took_;
    record.first_byte = first_byte_;
    record.origin_time = origin_time;
    record.origin = origin;
    record.peer = peer;
    w.common.access.write(record);
}

}  // namespace reprise::proxy::serve
