#include "proxy/serve/exchange.hpp"

#include <boost/asio/steady_timer.hpp>

// What the proxy itself tells its peers: digests, in origin-form on forward listeners.

namespace reprise::proxy::serve {

namespace {

// An index is loaded at the speed of the disk.
constexpr std::chrono::seconds longest_wait{60};
constexpr std::chrono::milliseconds between_looks{100};

asio::ip::address client_of(const session_state& session) {
    error_code numeric;
    return asio::ip::make_address(session.client_address, numeric);
}

// Our end of the client's own connection.
tcp::endpoint reached_at(session_state& session) {
    error_code gone;
    return session.reached_at ? *session.reached_at : session.client.socket().local_endpoint(gone);
}

}  // namespace

bool exchange::is_for_peers() const noexcept {
    return w_.peers && head_->target.starts_with('/') &&
           head_->method != boost::beast::http::verb::connect &&
           listener().mode == config::listener_mode::forward &&
           peer::resource_at(head_->target) != peer::resource::none;
}

exchange::next exchange::answer_peer() {
    const auto framing = http::request_framing(*head_);
    keep_ = framing && framing->kind == http::body_kind::none &&
            http::keep_alive(head_->version, head_->fields) && !http::asks_websocket(*head_) &&
            !w_.common.draining.load(std::memory_order_relaxed);
    if (!framing) {
        return answer_failure(framing.error());
    }
    if (should_wait()) {
        path_ = path::awaited;
        return next::wait;
    }
    return tell_peer();
}

exchange::next exchange::tell_peer() {
    const auto client = client_of(s_);
    to_peer_ = w_.common.peers->answer(
        *head_, client, reached_at(s_), *w_.peers->book, !keep_, wall_now());
    facts_.is_head = head_->method == boost::beast::http::verb::head;
    ledger_.how = outcome::local;
    ledger_.status = to_peer_.status;
    ledger_.reason = peer::to_string(to_peer_.what);
    if (to_peer_.handed_out) {
        to_peer_.handed_out->fetched.store(true, std::memory_order_relaxed);
    }
    compose_anew();
    s_.parts.emplace_back(to_peer_.head.data(), to_peer_.head.size());
    if (to_peer_.body) {
        const auto size = to_peer_.first > 0 ? to_peer_.first : to_peer_.body->size();
        s_.parts.emplace_back(to_peer_.body->data(), size);
        if (to_peer_.first > 0) {
            path_ = path::paced;
            return next::wait;
        }
    }
    return send_composed();
}

bool exchange::should_wait() const {
    return w_.common.peers->should_wait(
        *head_, client_of(s_), s_.client_refused, *w_.peers->book, steady_now());
}

awaitable<bool> exchange::tell_when_ready() {
    s_.waiting = true;
    if (w_.watched++ == 0) {
        w_.watch.expire_after(between_looks);
    }
    while (steady_now() - started_ < longest_wait && !w_.timer.stopped() && !s_.client_gone &&
           !w_.common.draining.load(std::memory_order_relaxed) && should_wait()) {
        (void)co_await s_.arrived.wait(steady_now() + between_looks);
    }
    s_.waiting = false;
    --w_.watched;
    if (s_.client_gone) {
        keep_ = false;
        ledger_.how = outcome::client_gone;
        co_return false;
    }
    const auto after = tell_peer();
    if (after == next::wait && path_ == path::paced) {
        co_return co_await send_paced();
    }
    co_return co_await finish_composed(after);
}

// To a Squid's only-if-cached, 504 means that it asks the origin itself; any other refusal it hands
// on to its client.
bool exchange::is_squids_question() const noexcept {
    return w_.peers &&
           http::has_token(head_->fields, http::field_id::cache_control, "only-if-cached") &&
           w_.peers->book->is_peer(client_of(s_), true);
}

awaitable<bool> exchange::send_paced() {
    bool sent = co_await send_rest();
    if (sent) {
        asio::steady_timer timer{w_.io};
        timer.expires_after(to_peer_.pause);
        (void)co_await timer.async_wait(use_tuple);
        const auto& body = *to_peer_.body;
        s_.parts.emplace_back(body.data() + to_peer_.first, body.size() - to_peer_.first);
        sent = co_await send_rest();
    }
    if (sent) {
        end_reply();
    }
    co_return !s_.client.failed();
}

}  // namespace reprise::proxy::serve
