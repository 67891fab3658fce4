#include "proxy/exchange.hpp"

#include <boost/asio/steady_timer.hpp>

// What the proxy itself tells its peers: digests, in origin-form on forward listeners.

namespace reprise::proxy {

bool exchange::is_for_peers() const noexcept {
    return w_.peers && head_->target.starts_with('/') &&
           listener().mode == config::listener_mode::forward &&
           peer::resource_at(head_->target) != peer::resource::none;
}

exchange::next exchange::answer_peer() {
    const auto framing = http::request_framing(*head_);
    keep_ = framing && framing->kind == http::body_kind::none &&
            http::keep_alive(head_->version, head_->fields) &&
            !w_.common.draining.load(std::memory_order_relaxed);
    if (!framing) {
        return answer_failure(framing.error());
    }
    error_code numeric;
    const auto client = net::ip::make_address(s_.client_address, numeric);
    to_peer_ = w_.common.peers->answer(*head_, client, *w_.peers->book, !keep_, wall_now());
    facts_.is_head = head_->method == boost::beast::http::verb::head;
    how_ = outcome::local;
    status_ = to_peer_.status;
    reason_ = peer::to_string(to_peer_.what);
    if (to_peer_.handed_out) {
        to_peer_.handed_out->fetched.store(true, std::memory_order_relaxed);
    }
    s_.parts.clear();
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

awaitable<bool> exchange::send_paced() {
    const bool begun = co_await send_rest();
    if (begun) {
        net::steady_timer timer{w_.io};
        timer.expires_after(to_peer_.pause);
        (void)co_await timer.async_wait(use_tuple);
        const auto& body = *to_peer_.body;
        s_.parts.emplace_back(body.data() + to_peer_.first, body.size() - to_peer_.first);
        (void)co_await send_rest();
    }
    finish(how_, status_, reason_);
    co_return !s_.client.failed();
}

}  // namespace reprise::proxy
