#include "proxy/serve/request_body.hpp"

#include "proxy/net/client_stream.hpp"

namespace reprise::proxy::serve {

namespace {

using http::body_kind;
using phase = fetch::upload::phase;

constexpr std::uint64_t drain_most = 256u << 10;  // of a body that nobody wanted

bool may_drain(const exchange_state& x) {
    return x.out.keeps && !x.out.failed() && x.upload->state() != phase::bad_framing &&
           x.upload->state() != phase::client_failed && !x.asked.waits_for_continue();
}

}  // namespace

std::shared_ptr<fetch::upload> make_upload(const exchange_state& x) {
    const bool asks_first = x.asked.waits_for_continue() && x.asked.head->version >= 11;
    return std::make_shared<fetch::upload>(
        x.stream, x.asked.body, x.settings->options, asks_first, x.w.timer);
}

awaitable<ended> finish_request_body(exchange_state& x, ended answered) {
    if (answered != ended::gone && x.upload && x.upload->state() == phase::running) {
        // Answered in full before the body was here in full, and the origin reads on. A reply that
        // ends with the connection has its end now; the producer says when the upload has to stop.
        if (!x.out.keeps) {
            (void)co_await x.out.end_sending();
        }
        co_await x.upload->over(fetch::upload::waiter::exchange);
    }
    if (!x.upload) {
        if (x.asked.body.kind != body_kind::length || answered != ended::keep) {
            co_return answered == ended::gone ? ended::gone : ended::close;
        }
        (void)x.copy();  // the body takes the head's place, and the log's line is still to come
        x.upload = make_upload(x);
    }
    if (x.upload->state() == phase::running) {
        x.upload->stop();
        co_await x.upload->over(fetch::upload::waiter::exchange);
    }
    if (answered == ended::gone || x.upload->state() == phase::done) {
        co_return answered;
    }
    if (!may_drain(x)) {
        co_return ended::close;
    }
    const auto drained = co_await fetch::upload::drain(x.upload, drain_most);
    co_return drained == ended::keep ? answered : drained;
}

}  // namespace reprise::proxy::serve
