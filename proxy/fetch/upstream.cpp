#include "proxy/fetch/upstream.hpp"

#include "proxy/http/forwarding.hpp"
#include "proxy/net/coroutine.hpp"
#include "proxy/net/io.hpp"
#include "proxy/peer/bounded_get.hpp"
#include "proxy/peer/sibling_exchange.hpp"

#include <algorithm>
#include <utility>

// Every read asks first who has ended it; what ended it is told by no_head() and cut_short().

namespace reprise::proxy::fetch {

upstream::upstream(thread::worker& w, std::shared_ptr<fetch_order> order)
    : ready{w.timer},
      patience{w.timer, [this] { run_out_of_patience(); }},
      w_{w},
      order_{std::move(order)},
      into_{*order_->into},
      body_{order_->body()},
      watch_{w.timer,
             body_,
             order_->now_settings->options.timeouts,
             from.lease,
             {.stalled = [this] { control->interrupt(); },
              .over = [this] { begin_patience_behind_upload(); }}} {}

namespace {
// The list of a head's lines grows once on a thread, not for each response. One is enough: most
// responses are read in one turn of the loop.
std::vector<http::field>& spare_lines() {
    static thread_local std::vector<http::field> one;
    return one;
}
constexpr std::size_t most_spare_lines = 64;

/// A pause of an origin is no reason to doubt whoever waits for it.
constexpr std::chrono::milliseconds least_doubt{1000};
}  // namespace

// OPTIONS * is of whoever hears it (RFC 9110 9.3.7): whatever a proxy says to it comes from its own loop.
awaitable<bool> answers(thread::worker& w,
                        std::shared_ptr<const peer::known_peer> one,
                        steady_time::duration in_so_long) {
    constexpr std::uint64_t most_of_page = 64u << 10;
    const auto until = steady_now() + in_so_long;
    net::origin_address to{one->host, one->port, true, one->https};
    to.lane = static_cast<std::uint8_t>(peer::exchange_lane::pulse);
    const peer::followed as{
        .name = one->name, .host = one->host, .port = one->port, .https = one->https};
    const auto host = as.authority();
    net::origin_lease lease;
    net::deadline patience{w.timer, [&lease] {
                               if (lease) {
                                   error_code ignored;
                                   lease.socket().close(ignored);
                               }
                           }};
    for (const bool fresh_only : {false, true}) {
        auto leased = co_await w.origins.acquire(to, fresh_only, until);
        if (!leased) {
            co_return is_our_own_lack(leased.error().code);
        }
        lease = std::move(*leased);
        patience.expire_at(until);
        const bool reused = lease.reused();
        auto wire = "OPTIONS * HTTP/1.1\r\nHost: " + host + "\r\nMax-Forwards: 0\r\n\r\n";
        const auto got = co_await peer::bounded_get(lease, patience, std::move(wire), most_of_page);
        patience.clear();
        lease.close();
        if (!got.silent || !reused) {
            co_return got.status != 0;
        }
    }
    co_return false;
}

upstream::~upstream() {
    control->reading = nullptr;
    // Else it has been waited for: memory ended in the middle of a wait. Of a loop that is destroyed nothing runs on.
    if (upload_started_ && body_->state() == upload::phase::running && from.lease &&
        w_.io.get_executor().running_in_this_thread()) {
        body_->outlive(std::move(from.lease));
    }
    auto& lines = from.came.head.fields;
    if (lines.capacity() <= most_spare_lines && lines.capacity() > spare_lines().capacity()) {
        lines.clear();
        lines.swap(spare_lines());
    }
}

void upstream::let_go() {
    control->reading = nullptr;
    from.lease.close();
}

void upstream::give_back() {
    const auto& framing = from.came.framing;
    if (from.has_surplus(0)) {
        from.lease.note_surplus();
    } else if (order_->owner != net::owner_of_one_request && !answered_early && framing.reusable &&
               framing.kind != http::body_kind::until_close && from.came.persistent) {
        from.lease.give_back();
    }
    let_go();
}

bool upstream::body_is_pending() const noexcept {
    return body_ && body_->state() != upload::phase::done;
}

// The response has come whole before the body has gone out whole. A server that accepts it reads
// on, even after a half close (RFC 9112 9.6). One that refuses it has no use for the rest, and a
// client that asked first and had its answer need not send it (RFC 9110 10.1.1).
bool upstream::may_have_rest() const noexcept {
    return from.came.head.status / 100 == 2 && !body_->awaits_word();
}

awaitable<void> upstream::finish_upload() {
    if (upload_started_ && may_have_rest()) {
        co_await body_->over(upload::waiter::producer);
    }
    co_await settle_upload();
}

awaitable<void> upstream::settle_upload() {
    if (!upload_started_) {
        co_return;
    }
    watch_.end();
    if (body_->state() == upload::phase::running) {
        body_->stop();
        control->reading = nullptr;
        if (from.lease) {
            error_code ignored;
            from.lease.socket().close(ignored);
        }
    }
    co_await body_->over(upload::waiter::producer);
}

std::string_view upstream::send_now(std::string_view wire) {
    awaits_head_ = true;
    if (from.home_by) {
        patience.expire_at(*from.home_by);
    } else {
        patience.expire_after(order_->now_settings->options.timeouts.origin_head);
    }
    error_code error;
    const auto taken = from.lease.socket().try_write(asio::buffer(wire), error);
    w_.counts.bytes_to_origins.add(taken);
    if (error) {
        return {};
    }
    if (taken == wire.size()) {
        head_is_out();
    }
    return wire.substr(taken);
}

awaitable<void> upstream::send(std::string_view left) {
    const auto error = co_await net::write_all(from.lease.socket(), asio::buffer(left));
    if (!error) {
        w_.counts.bytes_to_origins.add(left.size());
        head_is_out();
    }
}

void upstream::head_is_out() {
    if (body_ && !upload_started_ && !into_.abandoned() && !body_->stopping()) {
        begin_upload();
    }
}

void upstream::begin_upload() {
    upload_started_ = true;
    watch_.begin();
    if (!body_->awaits_word()) {
        patience.clear();
    }
    auto sending = upload::run(body_, from.lease.socket());
    // A body that the client broke off, or framed wrongly, must not wait for an origin that waits
    // for the rest of it: what reads the response is interrupted, and finds the reason in the
    // upload.
    auto on_end = [reader = control, body = body_](std::exception_ptr thrown) {
        if (thrown) {
            body->give_up();  // both sides wait for its end
        }
        if (body->broken_by_client()) {
            reader->interrupt();
        }
    };
    net::begin_coroutine(w_.io, std::move(sending), std::move(on_end));
}

void upstream::await_head_anew() {
    if (awaits_head_ && !watch_.body_is_going_out()) {
        patience.expire_after(order_->now_settings->options.timeouts.origin_head);
    }
}

// The origin has all of the request that it gets: from now on it is waited for, be it for a head or, behind an
// early one, for more of a body. (While readers are waited for nothing is.)
void upstream::begin_patience_behind_upload() {
    if (awaits_head_) {
        await_head_anew();
    } else if (patience.armed()) {
        patience.expire_after(order_->now_settings->options.timeouts.origin_body);
    }
}

// A client that asked first has begun to send; or an origin that has sent its head at once reads on. Meanwhile the watch
// judges the origin and the upload its client: the end of the one or the other begins the wait anew.
void upstream::run_out_of_patience() {
    if (watch_.body_is_going_out() && !w_.timer.stopped()) {
        patience.expire_at(steady_time::max());
    } else {
        control->interrupt();
    }
}

steady_time::duration upstream::doubt_after() const {
    return std::max(least_doubt, from.waits_too->timeout);
}

awaitable<bool> upstream::far_end_lives(steady_time::duration most) {
    const auto one = from.waits_too;
    if (!w_.peers || steady_now() - heard_ >= most) {
        co_return false;
    }
    auto& pulse = w_.peers->pulses[from.waits_too_slot];
    const auto known = pulse.look(steady_now(), doubt_after());
    if (known != peer::pulse::word::ask) {
        co_return known == peer::pulse::word::lives;
    }
    peer::pulse::question asked{pulse};
    const bool lives = co_await answers(w_, one, one->timeout);
    asked.ended(lives, steady_now());
    co_return lives;
}

awaitable<std::size_t> upstream::read_into(char* at, std::size_t room, error_code& error) {
    if (watch_.stalled() || patience.expired() || into_.abandoned() || is_overtaken() ||
        (body_ && body_->broken_by_client())) {
        error = asio::error::operation_aborted;
        co_return 0;
    }
    const auto into = asio::buffer(at, room);
    const auto [failed, got] = co_await from.lease.socket().async_read_some(into, use_tuple);
    w_.counts.bytes_from_origins.add(got);
    if (got > 0 && from.waits_too) {
        note_heard();
    }
    error = failed;
    co_return got;
}

// A 1xx is passed on. Bounded by how many of them may come: each says that the origin is at work
// (102), or about to be.
trouble upstream::pass_interim(unsigned count) {
    if (count > most_interim) {
        return failure{failure_code::bad_response, "too many 1xx responses"};
    }
    if (from.came.head.status == 100 && body_) {
        body_->go();
    }
    if (from.home_by && from.came.head.status == 102) {
        // To us, and not to our client. It has as long as the origin may take it, and then to say that this
        // has failed: who gave up before it would blame it for the origin.
        // Once: it could else say so again and again.
        const auto& options = order_->now_settings->options;
        if (count == 1) {
            head_by_ = steady_now() + options.timeouts.origin_connect +
                       options.timeouts.origin_head + options.peering.budget;
            from.on_trial.end();  // it lives
            wait_for_home();
        }
        return std::nullopt;
    }
    await_head_anew();
    std::string passed;
    http::append_response_fields(passed, from.came.head, {.via = w_.common.pseudonym});
    passed += "\r\n";
    into_.producer_interim(std::move(passed));
    return std::nullopt;
}

// It is at work: until it is doubted, or has had as long as an origin.
void upstream::wait_for_home() {
    patience.expire_at(std::min(*head_by_, steady_now() + doubt_after()));
}

awaitable<head_end> upstream::read_head() {
    using kind = head_end::kind;
    auto& buffer = from.lease.buffer();
    auto& head = from.came.head;
    const auto& limits = order_->now_settings->response_limits;
    unsigned interim = 0;
    std::size_t resume = 0;
    from.any_byte = false;
    head_by_.reset();
    for (;;) {
        if (!buffer.empty()) {
            from.any_byte = true;
            if (head.fields.capacity() == 0) {
                head.fields.swap(spare_lines());
            }
            const auto parsed = http::parse_response_head(buffer.data(), head, limits, resume);
            if (parsed.state == http::head_state::bad) {
                if (from.lease.reused()) {
                    // Behind a good answer this is its rest, and no answer yet. What begins as one may as
                    // well be an origin's that we don't take, such as more lines than limits.fields with
                    // those of a parent: all that passes there must not be distrusted for that.
                    if (!buffer.data().starts_with("HTTP/")) {
                        from.lease.note_surplus();
                    }
                    if (interim == 0 && order_->retryable) {
                        co_return head_end{.what = kind::retry};
                    }
                }
                co_return head_end{kind::failed, failure{parsed.code, parsed.why}};
            }
            if (parsed.state == http::head_state::done) {
                if (head.status >= 200 || head.status == 101) {
                    awaits_head_ = false;
                    co_return head_end{.what = kind::got};
                }
                if (auto wrong = pass_interim(++interim)) {
                    co_return head_end{kind::failed, std::move(*wrong)};
                }
                buffer.consume(head.bytes);
                resume = 0;
                continue;
            }
            resume = parsed.resume;
        }
        const auto space = buffer.prepare(read_size);
        error_code error;
        const auto got = co_await read_into(space.data(), space.size(), error);
        if (got == 0 && head_by_ && patience.expired() && steady_now() < *head_by_) {
            const bool lives = co_await far_end_lives(steady_time::duration::max());
            if (lives) {
                wait_for_home();
                continue;
            }
        }
        if (got == 0) {
            co_return no_head();
        }
        buffer.commit(got);
    }
}

// Nothing more comes before the head is whole.
head_end upstream::no_head() {
    using kind = head_end::kind;
    const auto failed = [](failure_code code, std::string why) {
        return head_end{kind::failed, failure{code, std::move(why)}};
    };
    if (is_overtaken()) {
        return {.what = kind::overtaken};
    }
    if (body_ && body_->state() == upload::phase::bad_framing) {
        return {kind::failed, body_->why()};
    }
    if (body_ && body_->state() == upload::phase::client_failed) {
        return failed(failure_code::request_timeout, "the request's body did not arrive");
    }
    if (watch_.stalled()) {
        return failed(failure_code::origin_upload_timeout,
                      "the origin took nothing of the request's body in time");
    }
    if (patience.expired()) {
        return failed(failure_code::origin_head_timeout, "no response head in time");
    }
    if (into_.abandoned()) {
        return failed(failure_code::origin_closed, "every client has left");
    }
    // Only a new connection can have ended over that.
    if (!from.lease.reused() && from.lease.socket().was_asked_for_certificate()) {
        return failed(failure_code::tls_client_certificate, "it closed the connection");
    }
    if (from.any_byte) {
        return failed(failure_code::origin_closed,
                      "the connection ended in the middle of the response's head");
    }
    if (from.lease.reused() && order_->retryable) {
        return {.what = kind::retry};
    }
    return failed(failure_code::origin_closed, "the connection ended without a response");
}

failure upstream::cut_short(std::string detail) const {
    if (watch_.stalled()) {
        return {failure_code::origin_upload_timeout, "the origin stopped taking the body"};
    }
    if (patience.expired()) {
        return {failure_code::origin_body_timeout, "the response's body stopped arriving"};
    }
    return {failure_code::response_cut_short, std::move(detail)};
}

}  // namespace reprise::proxy::fetch
