#include "proxy/serve/peer_page.hpp"

#include "proxy/http/forwarding.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/peer/resource.hpp"

#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace reprise::proxy::serve {

namespace {

// An index is loaded at the speed of the disk.
constexpr std::chrono::seconds longest_wait{60};
constexpr std::chrono::milliseconds between_waits{100};

// What is sent here is made anew again and again, so that each of many slow readers may keep one of its own. A sibling gives
// a digest up behind 55 seconds (peer/digest_fetch: thirty, and what it waits for news), and figures behind five. A Squid, which
// asks for no other meanwhile, has five minutes, and a second for each 4 KiB of a large one.
constexpr std::chrono::seconds sibling_takes_at_most{60};
constexpr std::chrono::seconds squid_has_at_least{300};
constexpr std::size_t bytes_a_second = 4096;

std::string_view text_of(const std::vector<std::byte>& bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

bool is_for_peers(const exchange_state& x) noexcept {
    const auto& head = *x.asked.head;
    return x.w.peers && !x.client.inside && head.target.starts_with('/') &&
           head.method != boost::beast::http::verb::connect &&
           x.listener().mode == config::listener_mode::forward &&
           peer::resource_at(head.target) != peer::resource::none;
}

awaitable<ended_or_next> peer_page::give() {
    const auto& head = *x_.asked.head;
    const auto framing = http::request_framing(head);
    x_.out.keeps = framing && framing->kind == http::body_kind::none &&
                   http::keep_alive(head.version, head.fields) && !http::asks_websocket(head) &&
                   !x_.w.common.draining.load(std::memory_order_relaxed);
    if (!framing) {
        co_return answers::refused{framing.error()};
    }
    if (should_wait()) {
        const auto waited = co_await wait_until_ready();
        if (waited != ended::keep) {
            co_return waited;
        }
    }
    auto& peers = *x_.w.common.peers;
    const auto who = peers.identify(head,
                                    x_.client.ip(),
                                    x_.out.reached_at(),
                                    x_.is_encrypted(),
                                    *x_.w.peers->book,
                                    wall_now());
    auto page = peers.answer(head, who, false, !x_.out.keeps, wall_now());
    if (page.what == peer::answered::waiting) {
        const auto waited = co_await wait_for_news(who, page);
        if (waited != ended::keep) {
            co_return waited;
        }
    }
    x_.book.how = outcome::local;
    x_.book.status = page.status;
    x_.book.reason = peer::to_string(page.what);
    x_.out.begin();
    x_.out.add(page.head);
    if (!page.text.empty()) {
        x_.out.add(page.text);
    }
    if (page.body && page.first > 0) {
        co_return co_await send_in_two(page);
    }
    if (page.body) {
        x_.out.add(text_of(*page.body));
    }
    if (page.seen) {
        x_.out.add(text_of(*page.seen));
    }
    if (const auto at_once = x_.out.send_now()) {
        co_return *at_once;
    }
    const auto sent = co_await send_until(steady_now() + sibling_takes_at_most);
    co_return sent == ended::keep ? x_.out.end() : sent;
}

bool peer_page::should_wait() const {
    return x_.w.common.peers->should_wait(
        *x_.asked.head, x_.client.ip(), x_.client.refused, *x_.w.peers->book, steady_now());
}

awaitable<ended> peer_page::wait_until_ready() {
    while (steady_now() - x_.started < longest_wait &&
           !x_.w.common.draining.load(std::memory_order_relaxed) && should_wait()) {
        const auto waited = co_await x_.out.wait(steady_now() + between_waits);
        if (waited == ended::gone) {
            co_return x_.out.leave();
        }
    }
    co_return ended::keep;
}

// What the wait holds is the copy of the request's head and a place in a list.
awaitable<ended> peer_page::wait_for_news(const peer::asker& who, peer::resource_answer& page) {
    auto& peers = *x_.w.common.peers;
    const auto until = steady_now() + page.wait;
    x_.copy_and_shrink();
    const auto& head = *x_.asked.head;
    const auto wait = peers.wait_for_news(head, who, page, x_.out.wakeup().handle());
    for (;;) {
        const bool drains = x_.w.common.draining.load(std::memory_order_relaxed);
        x_.out.keeps = x_.out.keeps && !drains;
        const bool waited = drains || wait.has_ended() || steady_now() >= until;
        page = peers.answer(head, who, waited, !x_.out.keeps, wall_now());
        if (page.what != peer::answered::waiting) {
            co_return ended::keep;
        }
        const auto client = co_await x_.out.wait(until);
        if (client == ended::gone) {
            co_return x_.out.leave();
        }
    }
}

// Whoever has not taken it by then is broken off, though limits.body_rate may be kept.
awaitable<ended> peer_page::send_until(steady_time until) {
    net::deadline too_late{
        x_.w.timer, [this] { (void)x_.out.break_off(outcome::client_gone, x_.book.reason); }};
    too_late.expire_at(until);
    co_return co_await x_.out.send();
}

awaitable<ended> peer_page::send_in_two(const peer::resource_answer& page) {
    const auto body = text_of(*page.body);
    const std::chrono::seconds for_its_size{body.size() / bytes_a_second};
    const auto until = steady_now() + std::max(squid_has_at_least, for_its_size);
    x_.out.add(body.substr(0, page.first));
    auto sent = co_await send_until(until);
    if (sent != ended::keep) {
        co_return sent;
    }
    asio::steady_timer timer{x_.w.io};
    timer.expires_after(page.pause);
    (void)co_await timer.async_wait(use_tuple);
    x_.out.add(body.substr(page.first));
    sent = co_await send_until(until);
    co_return sent == ended::keep ? x_.out.end() : sent;
}

}  // namespace reprise::proxy::serve
