#include "proxy/serve/tunnel.hpp"

#include "proxy/net/client_stream.hpp"
#include "proxy/net/dial.hpp"
#include "proxy/net/relay.hpp"

#include <algorithm>

namespace reprise::proxy::serve {

// A tunnel adds no Via: a peer or listener that knows this proxy by address would take the client
// for it, and let it read digests or purge.
std::optional<failure> tunnel::judge_far_end(const tcp::endpoint& far) const {
    const auto& own = x_.w.common.own_ports;
    const bool is_own = std::find(own.begin(), own.end(), far.port()) != own.end() &&
                        x_.settings->guard->is_here(far.address());
    if (!is_own && !(x_.w.peers && x_.w.peers->book->is_listener(far.address(), far.port()))) {
        return std::nullopt;
    }
    return failure{failure_code::destination_refused,
                   net::endpoint_text(far.address(), far.port()) +
                       (is_own ? " is a listener of this proxy" : " is a peer's") +
                       ": no tunnel leads there"};
}

awaitable<ended_or_next> tunnel::connect() {
    const auto& target = x_.asked.target;
    const auto until = steady_now() + x_.settings->options.timeouts.origin_connect;
    auto dialled = co_await net::dial(
        x_.w.names, x_.settings->guard, http::connect_host(target), target.port, false, until);
    if (!dialled) {
        co_return answers::refused{dialled.error()};
    }
    error_code gone;
    const auto far = dialled->remote_endpoint(gone);
    if (auto refused = judge_far_end(far)) {
        co_return answers::refused{std::move(*refused)};
    }
    net::byte_stream origin{std::move(*dialled)};
    x_.book.origin = net::endpoint_text(far.address(), far.port());
    const auto sent = co_await send_head("HTTP/1.1 200 Connection established\r\n\r\n", 200);
    if (sent == ended::keep) {
        const std::string early{x_.stream.input().data().substr(x_.unconsumed())};
        co_await pass(origin, early, "");
    }
    x_.book.how = outcome::tunnel;
    co_return sent == ended::keep ? ended::close : sent;
}

awaitable<ended_or_next> tunnel::upgrade(answers::upgraded& what) {
    const auto sent = co_await send_head(std::move(what.head), 101);
    if (sent == ended::keep) {
        auto lease = std::move(what.lease);
        x_.book.origin = lease.endpoint();
        const std::string from_client{x_.stream.input().data()};
        const std::string from_origin{lease.buffer().data()};
        x_.stream.input().clear();
        co_await pass(lease.socket(), from_client, from_origin);
    }
    x_.book.how = outcome::tunnel;
    co_return sent == ended::keep ? ended::close : sent;
}

awaitable<ended> tunnel::send_head(std::string text, unsigned status) {
    x_.out.keeps = false;
    x_.out.text = std::move(text);
    x_.out.begin();
    x_.out.add(x_.out.text);
    x_.book.status = status;
    co_return co_await x_.out.send();
}

awaitable<void> tunnel::pass(net::byte_stream& far,
                             const std::string& from_client,
                             const std::string& from_far) {
    auto& client = x_.stream;
    const auto end = co_await net::relay(client.socket(),
                                         far,
                                         from_client,
                                         from_far,
                                         x_.settings->options.timeouts.tunnel_idle,
                                         x_.w.timer);
    x_.w.counts.bytes_to_origins.add(end.a_to_b);
    x_.w.counts.bytes_from_origins.add(end.b_to_a);
    client.note_relayed(end.a_to_b - std::min<std::uint64_t>(end.a_to_b, from_client.size()),
                        end.b_to_a);
    if (end.end == net::relay_end::finished) {
        client.reply_is_whole();
    }
}

}  // namespace reprise::proxy::serve
