#pragma once
// HTTP/1.1's connection as a reply sink: one reply at a time, in the order of the requests.

#include "proxy/net/client_stream.hpp"
#include "proxy/serve/reply_sink.hpp"
#include "proxy/thread/worker.hpp"

namespace reprise::proxy::serve {

class http1_connection final : public reply_sink {
public:
    http1_connection(thread::worker& w, net::byte_stream of);

    net::client_stream stream;

    bool send_now(pieces& what) override { return stream.send_now(what); }
    awaitable<ended> send(pieces& what, pace owed) override {
        return stream.send(what, owed.bytes_per_second, owed.timeout, owed.others_wait);
    }
    awaitable<ended> end_sending(pace owed) override {
        return stream.end_sending(owed.bytes_per_second, owed.timeout);
    }
    awaitable<ended> wait(steady_time until) override;
    void ends_by_closing() noexcept override { stream.reply_ends_by_closing(); }
    void is_whole() noexcept override { stream.reply_is_whole(); }
    void break_off() noexcept override { stream.break_off(); }
    bool under_way() const noexcept override { return stream.reply_under_way(); }
    bool failed() const noexcept override { return stream.failed(); }
    std::uint64_t bytes_out() const noexcept override { return stream.bytes_out(); }
    /// What stands in the input is not taken.
    std::uint64_t bytes_in() const noexcept override {
        return stream.bytes_in() - stream.input().size();
    }
    tcp::endpoint local_endpoint() override;

    /// Ends it now: whoever waits learns that the client is gone.
    void abort();
    /// Looks whether the client has left, if somebody waits here.
    void look_at_client();

private:
    thread::worker& w_;
    bool gone_ = false;     // seen by the watch, or aborted
    bool waiting_ = false;  // the watch looks at this connection
};

}  // namespace reprise::proxy::serve
