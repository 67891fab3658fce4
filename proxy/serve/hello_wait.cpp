#include "proxy/serve/hello_wait.hpp"

#include "proxy/net/carried.hpp"
#include "proxy/net/client_stream.hpp"
#include "proxy/net/coroutine.hpp"
#include "proxy/net/kept_leaves.hpp"
#include "proxy/net/tls.hpp"
#include "proxy/serve/far_end.hpp"
#include "proxy/serve/interception.hpp"
#include "proxy/serve/tunnel.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

// A client is answered 200 before it has said whom it wants, since it says so in its hello alone.
// What is not opened then is dialled then, and a failure of that ends the connection.

namespace reprise::proxy::serve {

namespace {

// A client that waits for its server to speak first gets it this much later.
constexpr std::chrono::seconds hello_patience{1};
constexpr std::size_t read_at_once = 4u << 10;

// A handshake that stalls behind its hello holds some 45 KiB of OpenSSL's: so many may, in the whole
// process, of one client a quarter, lest it have all others passed on, and no longer than this.
constexpr unsigned most_shaking_hands = 384, most_of_client = most_shaking_hands / 4;
constexpr std::chrono::milliseconds handshake_patience{5'000};

// The connection, for a session of its own: of a client that reaches us by TLS what that carries, and
// what carries it lasts until the client has all of it.
attempt<tcp_socket> inner_end(net::client_stream& client,
                              net::deadlines& timer,
                              sequel::owner& of) {
    if (!client.socket().is_encrypted()) {
        return client.socket().take_socket();
    }
    auto open = of.keep_open();
    return net::carry(
        std::move(client.socket()), timer, net::carried_write_patience, std::move(open));
}

}  // namespace

// Of one who speaks for many all may.
bool hello_wait::handshake::begin(thread::worker& w, const net::address_bytes& client) {
    const auto share = w.share_of(client);
    whose_ = share.value_or(client);
    auto& all = w.common.shaking_hands;
    if (all.enter(whose_, share ? most_of_client : most_shaking_hands, most_shaking_hands)) {
        among_ = &all;
    }
    return among_ != nullptr;
}

void hello_wait::handshake::end() noexcept {
    if (auto* const all = std::exchange(among_, nullptr)) {
        all->leave(whose_);
    }
}

hello_wait::hello_wait(parted_request_ptr request)
    : request_{std::move(request)},
      for_bytes_{request_->w.io, *this} {}

void hello_wait::begin(owner& to) {
    owner_ = &to;
    auto& client = request_->stream;
    client.patience().expire_after(hello_patience);
    state_ = reader_.read(client.input().data());
    if (state_ == hello_state::more) {
        wait();
    } else {
        settle_later();
    }
}

// What came with a reset shows at the next reading alone, so the kernel is asked.
void hello_wait::wait() {
    request_->stream.socket().wait_readable(for_bytes_, false);
}

void hello_wait::on_readable(error_code over) {
    try {
        read(over);
    } catch (...) {
        owner_->on_over(std::current_exception(), ended::gone);
    }
}

// A client that has said no more by then, or has left, is passed on. Room for bytes there is only
// while they are read.
void hello_wait::read(error_code over) {
    auto& client = request_->stream;
    if (!over && !client.patience().expired()) {
        const auto room = client.input().prepare(read_at_once);
        const auto got = client.socket().try_read(
            asio::buffer(room.data(), std::min(room.size(), net::client_hello_reader::most)), over);
        client.note_read(got);
        client.input().trim();
        state_ = reader_.read(client.input().data());
        if (!over && state_ == hello_state::more) {
            wait();
            return;
        }
    }
    settle_later();
}

void hello_wait::settle_later() {
    request_->stream.patience().clear();
    auto on_end = [this](const std::exception_ptr& broken, ended how) { settled(broken, how); };
    net::begin_coroutine(request_->w.io, settle(), std::move(on_end));
}

void hello_wait::settled(const std::exception_ptr& broken, ended how) {
    if (next_ && !broken) {
        owner_->on_next(std::move(next_));
    } else {
        owner_->on_over(broken, how);
    }
}

awaitable<ended> hello_wait::settle() {
    if (!request_->stream.socket().is_open()) {
        co_return ended::gone;  // the program ends
    }
    auto found = judge();
    if (!found.identity) {
        shakes_hands_.end();
    }
    auto rest = found.identity ? open(std::move(found.identity), found.is_new) : pass_on(found.why);
    co_return co_await std::move(rest);
}

hello_wait::judged hello_wait::judge() {
    if (state_ != hello_state::done) {
        return {.why = state_ == hello_state::other ? reader_.why() : "no hello in time"};
    }
    const auto host = http::connect_host(request_->asked.target);
    if (const auto why = why_passed_on(reader_.hello(), host); !why.empty()) {
        return {.why = why};
    }
    judged out;
    if (!shakes_hands_.begin(request_->w, request_->client.at)) {
        out.why = "too many handshakes";
        return out;
    }
    std::string_view named = host;
    if (named.ends_with('.')) {
        named.remove_suffix(1);  // as in its hello
    }
    out.identity = request_->settings->leaves->identity_for(named, wall_now(), &out.is_new);
    out.why = "no certificate can be made";
    return out;
}

awaitable<ended> hello_wait::pass_on(std::string_view why) {
    auto& w = request_->w;
    const auto& asked = request_->asked;
    w.counts.tunnels_passed_on.add();
    w.common.tunnels.note_passed_on(http::connect_host(asked.target), why);
    const wanted_far_end to{w,
                            *request_->settings,
                            asked.target,
                            asked.copy->head,
                            request_->book,
                            why,
                            w.share_of(request_->client.at)};
    auto reached = co_await reach_far_end(to);
    if (!reached) {
        request_->book.error = reached.error().detail;
        request_->book.how = outcome::error;
        request_->book.reason = facts_of(reached.error().code).name;
        request_->stream.break_off();
        co_return ended::gone;
    }
    std::string behind{reached->behind.data()};
    next_ = std::make_unique<standing_tunnel>(
        std::move(request_), std::move(reached->stream), std::move(behind), why);
    co_return ended::keep;
}

awaitable<ended> hello_wait::open(net::tls_identity_ptr identity, bool new_leaf) {
    auto& client = request_->stream;
    auto& w = request_->w;
    auto& book = request_->book;
    const auto& target = request_->asked.target;
    const auto host = http::connect_host(target);
    const auto& timeouts = request_->settings->options.timeouts;
    const auto until = steady_now() + std::min(timeouts.client_head, handshake_patience);
    auto hello = request_->take_input();
    error_code gone;
    const auto connected = net::canonical(client.socket().remote_endpoint(gone).address());
    auto inner = inner_end(client, w.timer, *owner_);
    if (!inner) {
        book.error = inner.error().detail;
        co_return ended::gone;
    }
    auto secured = co_await net::accept_tls(
        std::move(*inner), std::move(identity), w.timer, until, std::move(hello));
    shakes_hands_.end();
    if (secured.has_error()) {
        book.error = secured.error().detail;
        if (secured.error().code != failure_code::tls_failed) {
            book.reason = facts_of(secured.error().code).name;  // it was us who could not
            co_return ended::gone;
        }
        if (steady_now() < until) {
            remember_refusal(w, request_->client, host, secured.error().detail);
        }
        w.common.tunnels.note_refused(host, new_leaf);
        book.reason = "certificate-refused";
        w.counts.tunnels_refused.add();
        co_return ended::gone;
    }
    w.counts.tunnels_opened.add();
    book.reason = "opened";
    client.go_on_over(std::move(*secured));
    request_->client.inside = std::make_shared<const opened_host>(opened_host{
        host, target.port, w.common.tunnels.note_opened(host, new_leaf), book.user, connected});
    request_->client.opened = steady_now();
    client.reply_is_whole();
    co_return client.failed() ? ended::gone : ended::keep;
}

}  // namespace reprise::proxy::serve
