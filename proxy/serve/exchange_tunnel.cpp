#include "proxy/http/forwarding.hpp"
#include "proxy/net/dial.hpp"
#include "proxy/net/relay.hpp"
#include "proxy/serve/exchange.hpp"
#include "proxy/serve/intake.hpp"

#include <algorithm>

// Tunnels: CONNECT, and what an origin's 101 makes of a connection (RFC 9110 7.8, 9.3.6).

namespace reprise::proxy::serve {

namespace {

net::relay_owner relay_owner_of(net::client_stream& client) {
    return {.acknowledged = [&client] { return client.acknowledged(); },
            .break_off = [&client] { client.break_off(); }};
}

}  // namespace

// A tunnel has no Via: its client would be taken for this proxy where that is known by its address,
// by a peer or by our own listeners, and be told, or purge, what is not for him.
std::optional<failure> exchange::judge_far_end(const tcp::endpoint& far) const {
    const auto& own = w_.common.own_ports;
    const bool is_own = std::find(own.begin(), own.end(), far.port()) != own.end() &&
                        settings_->guard->is_here(far.address());
    if (!is_own && !(w_.peers && w_.peers->book->is_listener(far.address(), far.port()))) {
        return std::nullopt;
    }
    return failure{failure_code::destination_refused,
                   net::endpoint_text(far.address(), far.port()) +
                       (is_own ? " is a listener of this proxy" : " is a peer's") +
                       ": no tunnel leads there"};
}

awaitable<bool> exchange::tunnel_connect() {
    intake in;
    in.target = target_;
    in.facts = facts_;
    auto refused = judge_tunnel(*settings_, in, head_->fields, w_.common.pseudonym);
    std::optional<tcp_socket> origin;
    if (!refused) {
        const auto until = steady_now() + settings_->options.timeouts.origin_connect;
        auto dialled = co_await net::dial(
            w_.names, settings_->guard, http::connect_host(target_), target_.port, false, until);
        if (dialled) {
            error_code gone;
            refused = judge_far_end(dialled->remote_endpoint(gone));
        } else {
            refused = dialled.error();
        }
        if (!refused) {
            origin.emplace(std::move(*dialled));
        }
    }
    if (refused) {
        if (answer_failure(*refused) == next::wait) {
            co_await send_rest();
            end_reply();
        }
        co_return keep_ && !s_.client.failed();
    }
    error_code ignored;
    const auto peer = origin->remote_endpoint(ignored);
    ledger_.origin = net::endpoint_text(peer.address(), peer.port());
    held_ = "HTTP/1.1 200 Connection established\r\n\r\n";
    compose_anew();
    s_.parts.emplace_back(held_.data(), held_.size());
    ledger_.status = 200;
    const bool sent = co_await send_rest();
    if (sent) {
        const std::string early{s_.client.input().data().substr(head_bytes_.size())};
        const auto owner = relay_owner_of(s_.client);
        const auto end = co_await net::relay(s_.client.socket(),
                                             *origin,
                                             early,
                                             "",
                                             settings_->options.timeouts.tunnel_idle,
                                             w_.timer,
                                             owner);
        w_.counts.bytes_to_origins.add(end.a_to_b);
        w_.counts.bytes_from_origins.add(end.b_to_a);
        s_.client.note_relayed(end.a_to_b - std::min<std::uint64_t>(end.a_to_b, early.size()),
                               end.b_to_a);
        if (end.end == net::relay_end::finished) {
            s_.client.reply_is_whole();
        }
    }
    keep_ = false;
    ledger_.how = outcome::tunnel;
    co_return false;
}

awaitable<bool> exchange::tunnel_upgrade(fetch::fetch_order& order) {
    held_ = order.upgrade_bytes;
    compose_anew();
    s_.parts.emplace_back(held_.data(), held_.size());
    ledger_.status = 101;
    const bool sent = co_await send_rest();
    keep_ = false;
    if (sent) {
        auto lease = std::move(order.upgraded);
        ledger_.origin = lease.address().to_string();
        const std::string from_client{s_.client.input().data()};
        const std::string from_origin{lease.buffer().data()};
        s_.client.input().clear();
        const auto owner = relay_owner_of(s_.client);
        const auto end = co_await net::relay(s_.client.socket(),
                                             lease.socket(),
                                             from_client,
                                             from_origin,
                                             settings_->options.timeouts.tunnel_idle,
                                             w_.timer,
                                             owner);
        w_.counts.bytes_to_origins.add(end.a_to_b);
        w_.counts.bytes_from_origins.add(end.b_to_a);
        s_.client.note_relayed(end.a_to_b - std::min<std::uint64_t>(end.a_to_b, from_client.size()),
                               end.b_to_a);
        if (end.end == net::relay_end::finished) {
            s_.client.reply_is_whole();
        }
    }
    ledger_.how = outcome::tunnel;
    co_return false;
}

}  // namespace reprise::proxy::serve
