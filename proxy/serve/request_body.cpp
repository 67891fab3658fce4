#include "proxy/serve/request_body.hpp"

#include "proxy/http/chunked.hpp"
#include "proxy/serve/http1_content.hpp"

#include <utility>

namespace reprise::proxy::serve {

namespace {

using http::body_kind;
using phase = fetch::upload::phase;

constexpr std::uint64_t drain_most = 256u << 10;     // of a body that nobody wanted
constexpr std::uint64_t untouched_most = 64u << 10;  // of one that nobody has begun to read

// A client that asked first may send its body behind a final answer, or leave it: what comes then could be either the
// body or the next request.
bool may_drain(const exchange_state& x) {
    return x.out.keeps && !x.out.failed() && !x.upload->broken_by_client() &&
           !x.asked.waits_for_continue();
}

}  // namespace

bool leaves_body_in_the_way(const exchange_state& x, unsigned status) {
    const auto& body = x.asked.body;
    if (!x.asked.has_body()) {
        return false;
    }
    const bool asks_first = x.asked.waits_for_continue();
    if (!x.upload) {
        return asks_first || body.kind != body_kind::length || body.length > untouched_most;
    }
    // An origin that accepts reads on what has begun to come.
    const auto state = x.upload->state();
    const bool goes_on = status / 100 == 2 && state == phase::running && !x.upload->awaits_word();
    return x.upload->broken_by_client() || (asks_first && state != phase::done && !goes_on);
}

std::shared_ptr<fetch::upload> make_upload(const exchange_state& x) {
    const bool asks_first = x.asked.waits_for_continue() && x.asked.head->version >= 11;
    const auto& options = x.settings->options;
    const http::chunked_limits limits{options.limits.head_size, options.limits.fields};
    auto content = std::make_unique<http1_content>(x.stream, x.asked.body, limits);
    return std::make_shared<fetch::upload>(std::move(content), options, asks_first, x.w.timer);
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
