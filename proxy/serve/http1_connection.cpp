#include "proxy/serve/http1_connection.hpp"

// Waiting beside a client: a watch of the worker's looks now and then whether it has left.

namespace reprise::proxy::serve {

namespace {
constexpr std::chrono::milliseconds between_looks{250};  // for clients that left

// While it lives the worker's watch looks at the connection. What has no memory to be armed does not
// count either: nobody would arm it then.
class watched_wait {
public:
    watched_wait(thread::worker& w, bool& waiting) : w_{w}, waiting_{waiting} {
        if (!w_.watch.armed()) {
            w_.watch.expire_after(between_looks);
        }
        ++w_.watched;
        waiting_ = true;
    }
    ~watched_wait() {
        waiting_ = false;
        --w_.watched;
    }
    watched_wait(const watched_wait&) = delete;
    watched_wait& operator=(const watched_wait&) = delete;

private:
    thread::worker& w_;
    bool& waiting_;
};
}  // namespace

http1_connection::http1_connection(thread::worker& w, net::byte_stream of)
    : reply_sink{w.timer},
      stream{std::move(of), w.timer},
      w_{w} {}

awaitable<ended> http1_connection::wait(steady_time until) {
    if (gone_) {
        co_return ended::gone;
    }
    bool signalled = false;
    {
        const watched_wait watched{w_, waiting_};
        signalled = co_await wakeup.wait(until);
    }
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
    wakeup.notify();
}

void http1_connection::look_at_client() {
    if (waiting_ && stream.client_left()) {
        gone_ = true;
        wakeup.notify();
    }
}

}  // namespace reprise::proxy::serve
