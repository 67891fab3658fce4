#include "proxy/serve/http1_connection.hpp"

// Waiting beside a client: a watch of the worker's looks now and then whether it has left.

namespace reprise::proxy::serve {

namespace {
constexpr std::chrono::milliseconds between_looks{250};  // for clients that left
}  // namespace

http1_connection::http1_connection(thread::worker& w, net::byte_stream of)
    : reply_sink{w.timer},
      stream{std::move(of), w.timer},
      w_{w} {}

awaitable<ended> http1_connection::wait(steady_time until) {
    if (gone_) {
        co_return ended::gone;
    }
    waiting_ = true;
    if (w_.watched++ == 0) {
        w_.watch.expire_after(between_looks);
    }
    const bool signalled = co_await news.wait(until);
    waiting_ = false;
    --w_.watched;
    if (!signalled && stream.client_left()) {
        gone_ = true;  // shorter waits than between_looks are not looked at
    }
    const bool program_ends = !signalled && steady_now() < until;
    co_return program_ends || gone_ ? ended::gone : ended::keep;
}

tcp::endpoint http1_connection::local_endpoint() {
    error_code gone;
    return stream.socket().local_endpoint(gone);
}

void http1_connection::abort() {
    stream.close();
    gone_ = true;
    news.notify();
}

void http1_connection::look_at_client() {
    if (waiting_ && stream.client_left()) {
        gone_ = true;
        news.notify();
    }
}

}  // namespace reprise::proxy::serve
