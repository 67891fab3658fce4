#include "proxy/serve/tunnel.hpp"

#include "proxy/net/client_stream.hpp"
#include "proxy/net/dial.hpp"
#include "proxy/net/known_refusal.hpp"
#include "proxy/net/relay.hpp"
#include "proxy/peer/parent_health.hpp"

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

steady_time tunnel::patience() const {
    return steady_now() + x_.settings->options.timeouts.origin_connect;
}

awaitable<attempt<net::passage>> tunnel::reach() {
    const auto& target = x_.asked.target;
    auto dialled = co_await net::dial(
        x_.w.names, x_.settings->guard, http::connect_host(target), target.port, false, patience());
    if (!dialled) {
        co_return std::move(dialled.error());
    }
    error_code gone;
    const auto far = dialled->remote_endpoint(gone);
    if (auto refused = judge_far_end(far)) {
        co_return std::move(*refused);
    }
    co_return net::passage{std::move(*dialled), {}};
}

// One parent after another, until one can be reached: what that says is the answer.
awaitable<attempt<net::passage>> tunnel::reach_by_parents() {
    const auto& target = x_.asked.target;
    const net::far_end to{http::connect_host(target), target.port, via()};
    if (auto refused = net::known_refusal(*x_.settings->guard, x_.w.names, to.host, to.port)) {
        co_return std::move(*refused);
    }
    if (const auto literal = net::read_numeric_host(to.host)) {
        if (auto refused = judge_far_end({*literal, to.port})) {
            co_return std::move(*refused);
        }
    }
    failure why{failure_code::no_parent, "no parent is known now"};
    const auto book = x_.w.peers ? x_.w.peers->book : nullptr;
    if (!book || !book->choice) {
        co_return why;
    }
    const auto key = x_.w.common.peers->key_of(to.host + ':' + std::to_string(to.port));
    for (const auto at : book->choice->order(key, steady_now())) {
        const auto& parent = book->parents[at];
        const auto begun = steady_now();
        auto made = co_await net::connect_through(
            x_.w.names, x_.settings->guard, x_.settings->trust, parent.way, to, patience());
        if (made) {
            peer::note_parent_works(*book, at);
        }
        x_.book.peer = parent.name;
        if (made || !is_of_parent(made.error().code)) {
            co_return std::move(made);
        }
        why = std::move(made.error());
        peer::note_parent_failed(*book, at, begun, why);
        if (x_.w.timer.stopped()) {
            break;
        }
    }
    co_return why;
}

// What Via says to a parent: the client's, and this proxy, so that a way that leads back is seen.
std::string tunnel::via() const {
    std::string all;
    for (const auto& line : x_.asked.head->fields) {
        if (line.id == http::field_id::via && !line.value.empty()) {
            all.append(line.value).append(", ");
        }
    }
    return all + (x_.asked.head->version == 10 ? "1.0 " : "1.1 ") + x_.w.common.pseudonym;
}

awaitable<attempt<net::passage>> tunnel::reach_somehow() {
    if (x_.settings->leaves) {
        x_.book.reason = why_;
    }
    auto reaching = x_.settings->options.peering.never_direct ? reach_by_parents() : reach();
    auto reached = co_await std::move(reaching);
    if (reached) {
        error_code gone;
        const auto far = reached->stream.remote_endpoint(gone);
        x_.book.origin = net::endpoint_text(far.address(), far.port());
    }
    co_return std::move(reached);
}

awaitable<ended_or_next> tunnel::connect_answered() {
    auto reached = co_await reach_somehow();
    if (!reached) {
        x_.book.error = reached.error().detail;
        co_return x_.out.break_off(outcome::error, facts_of(reached.error().code).name);
    }
    const std::string from_client{x_.stream.input().data()};
    const std::string from_far{reached->behind.data()};
    x_.stream.input().clear();
    x_.stream.input().release();
    reached->behind = {};
    const auto bytes = co_await pass(reached->stream, from_client, from_far);
    x_.book.how = outcome::tunnel;
    note_over(bytes);
    co_return ended::close;
}

awaitable<ended_or_next> tunnel::connect() {
    auto reached = co_await reach_somehow();
    if (!reached) {
        co_return answers::refused{std::move(reached.error())};
    }
    auto& origin = reached->stream;
    const auto sent = co_await send_head("HTTP/1.1 200 Connection established\r\n\r\n", 200);
    if (sent == ended::keep) {
        x_.copy_and_shrink();
        const std::string early{x_.stream.input().data()};
        const std::string first{reached->behind.data()};
        x_.stream.input().clear();
        x_.stream.input().release();
        reached->behind = {};
        const auto bytes = co_await pass(origin, early, first);
        note_over(bytes);
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
        static_cast<void>(co_await pass(lease.socket(), from_client, from_origin));
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

awaitable<std::uint64_t> tunnel::pass(net::byte_stream& far,
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
    co_return end.a_to_b + end.b_to_a;
}

void tunnel::note_over(std::uint64_t bytes) const {
    const auto& target = x_.asked.target;
    x_.w.common.tunnels.note_tunnel(http::connect_host(target), target.port, why_, bytes);
}

}  // namespace reprise::proxy::serve
