// Whom a response comes from: siblings that probably have it, a parent, the origin.
//
//     siblings ──none has it──> parents, by rendezvous hashing ──all down──> origin
//         └──peering.budget is over──> parent or origin too; the first good answer wins

#include "proxy/base/log.hpp"
#include "proxy/fetch/producer_steps.hpp"
#include "proxy/http/conditional.hpp"
#include "proxy/http/error_page.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/net/io.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <utility>

namespace reprise::proxy::fetch {

using http::body_kind;

namespace {

constexpr unsigned most_interim = 16;

/// How often an upload is looked at: a wait for the origin is seen to end so much late.
std::chrono::milliseconds look_every(const config::timeout_options& timeouts) noexcept {
    constexpr std::chrono::milliseconds most{1'000};
    return std::min({most, timeouts.origin_upload / 4, timeouts.origin_head / 4});
}

/// A connection that is being made while siblings are still asked.
struct dialling {
    std::optional<attempt<net::origin_lease>> result;
    bool unwanted = false;
};

awaitable<attempt<net::origin_lease>> dial_for(thread::worker& w,
                                               std::string host,
                                               net::origin_address to,
                                               bool fresh_only,
                                               steady_time until,
                                               net::share_holder holder) {
    to.host = host;
    co_return co_await w.origins.acquire(to, fresh_only, until, holder);
}

}  // namespace

std::string producer::request_wire(bool validate, next_hop to) const {
    const auto& o = *order_;
    http::request_options options;
    options.via = w_.common.pseudonym;
    options.client_address = o.client_address;
    const auto field = o.now_settings->options.forwarding.client_address;
    options.forwarded = field == config::forwarded_field::forwarded ||
                        field == config::forwarded_field::both;
    options.x_forwarded_for = field == config::forwarded_field::x_forwarded_for ||
                              field == config::forwarded_field::both;
    options.scheme = o.told_scheme;
    options.body = o.body_framing;
    options.websocket = o.websocket;
    options.trailers = o.body_framing.kind == body_kind::chunked;
    options.te_trailers = http::has_token(o.request->head.fields, http::field_id::te, "trailers");
    options.drop_expect = o.head_is_http10;
    options.to_proxy = to != next_hop::origin;
    std::string extra;
    if (to == next_hop::sibling) {
        extra = "Cache-Control: only-if-cached\r\n";
    }
    if (validate && o.validating) {
        const auto stored_fields = o.validating->fields();
        http::append_validation(extra, http::validators_of(stored_fields, request_time_));
        options.drop_conditionals = true;
        options.drop_range = !o.own_range;  // of parts the same range is wanted if they changed
    } else if (o.may_store) {
        options.drop_conditionals = !o.own_conditions;
        options.drop_range = !o.own_range;
    }
    if (!o.resume_etag.empty()) {
        options.drop_conditionals = options.drop_range = true;
        extra += "Range: bytes=" + std::to_string(o.resume_at) + "-\r\nIf-Range: " + o.resume_etag +
                 "\r\n";
    } else if (!o.gap_range.empty()) {
        options.drop_conditionals = options.drop_range = true;
        extra += "Range: " + o.gap_range + "\r\n";
        if (!o.gap_validator.empty()) {
            extra += "If-Range: " + o.gap_validator + "\r\n";
        }
    }
    if (const auto hops = http::judge_hops(o.request->head); hops.has_value()) {
        options.max_forwards = hops->left;
    }
    options.extra = extra;
    std::string wire;
    http::append_request_head(wire, o.request->head, o.destination, options);
    return wire;
}

// A peer connects from where it stands, and judges by its own settings if it does at all. What this
// machine knows by itself to be refused is left to no peer: the dial refuses it, and says why.
// Where a name leads that servers must be asked for is the peer's business.
bool producer::may_leave_to_peers() {
    const auto& o = *order_;
    const auto& guard = *o.now_settings->guard;
    if (net::judge_literal(guard, o.connect_host, o.connect_port)) {
        return false;
    }
    const auto local = w_.names.local(o.connect_host);
    return !local || std::any_of(local->begin(), local->end(), [&](const auto& address) {
        return guard.check(o.connect_host, address, o.connect_port) ==
               net::destination_verdict::allowed;
    });
}

const filter::key_hash& producer::peer_key() {
    if (!peer_key_) {
        peer_key_ = w_.common.peers->key_of(order_->url);
    }
    return *peer_key_;
}

// Begins to ask those whose digests have it, if there are any.
void producer::ask_siblings() {
    auto& o = *order_;
    w_.common.peers->note_miss(o.url.size());
    const auto whom = w_.peers->siblings.find(o.url, peer_key(), steady_now());
    w_.peers->siblings.rest();
    if (whom.empty()) {
        return;
    }
    request_time_ = wall_now();
    inquiry::question question{.book = book_,
                               .whom = whom,
                               .wire = request_wire(false, next_hop::sibling),
                               .key = o.key,
                               .url = o.url,
                               .charged_to = o.charged_to,
                               .limits = o.now_settings->response_limits};
    // An answer ends the reading of a slower source.
    auto told = [signal = ready_.handle(), control = control_](const inquiry& one) {
        signal.notify();
        if (one.has_answer() && control->reading != nullptr) {
            error_code ignored;
            control->reading->cancel(ignored);
        }
    };
    inquiry_ = std::make_shared<inquiry>(w_, std::move(question), std::move(told));
    inquiry_->begin();
}

// True when one has answered in time.
awaitable<bool> producer::wait_for_siblings(steady_time until) {
    asio::steady_timer timer{w_.io};
    if (until != steady_time::max()) {
        timer.expires_at(until);
        auto wake = [signal = ready_.handle()](const error_code&) { signal.notify(); };
        timer.async_wait(std::move(wake));
    }
    while (!inquiry_->is_over() && steady_now() < until && !into_.abandoned()) {
        const bool signalled = co_await ready_.wait(steady_time::max());
        if (!signalled) {
            break;
        }
    }
    co_return inquiry_->has_answer();
}

void producer::adopt_sibling() {
    auto won = inquiry_->take();
    inquiry_ = nullptr;
    patience_.clear();
    control_->reading = nullptr;
    lease_ = std::move(won->lease);
    control_->reading = &lease_.socket();
    head_ = std::move(won->head);
    request_time_ = won->asked_at;
    sent_at_ = won->sent_at;
    asked_at_ = resident_at(request_time_, sent_at_);
    sibling_ = std::move(won->from);
    sibling_slot_ = won->slot;
    sibling_took_ = won->took;
    sibling_bytes_ = won->bytes - (lease_.buffer().size() - head_.bytes);
}

// What the sibling in hand was worth is known. Clients who leave are no failure of its: it had what
// they asked for. One that breaks off has cost the time since it was asked, body and all.
void producer::end_asking(peer::asking_end how) {
    if (!sibling_) {
        return;
    }
    const auto now = steady_now();
    if (into_.abandoned()) {
        how = peer::asking_end::true_hit;
    }
    const bool hit = how == peer::asking_end::true_hit;
    const auto took = hit ? sibling_took_
                          : std::chrono::duration_cast<std::chrono::microseconds>(now - sent_at_);
    auto& table = w_.common.peers->siblings();
    table.benefit_of(sibling_slot_)
        .ended(how,
               took,
               table.hit_gives(),
               hit ? into_.received() : sibling_bytes_ + into_.received(),
               now);
    sibling_ = nullptr;
}

const peer::known_peer* producer::parent() const noexcept {
    return parent_at_ < parents_.size() ? &book_->parents[parents_[parent_at_]] : nullptr;
}

// The parent in hand has failed at what began then (why_); that all its connections, or this
// client's, are in use is no failure of its.
void producer::blame_parent(steady_time begun) {
    if (why_.code != failure_code::origin_connection_limit &&
        why_.code != failure_code::client_share_used &&
        book_->choice->failed(parents_[parent_at_], begun, steady_now())) {
        log::warn("peers: ",
                  parent()->name,
                  ": a parent that is gone around from now on: ",
                  facts_of(why_.code).name,
                  why_.detail.empty() ? "" : ": ",
                  why_.detail);
    }
}

// False: it was the origin itself.
bool producer::try_next_parent(steady_time begun) {
    if (parent() == nullptr) {
        return false;
    }
    blame_parent(begun);
    ++parent_at_;
    return true;
}

// While siblings are asked too, their answer must not wait for a connection.
awaitable<attempt<net::origin_lease>> producer::acquire(bool fresh_only, steady_time until) {
    auto& o = *order_;
    const auto* via = parent();
    const auto to = via != nullptr
                        ? net::origin_address{via->host, via->port, true, via->https}
                        : net::origin_address{o.connect_host, o.connect_port, o.exempt, false};
    if (!fresh_only) {
        auto kept = w_.origins.try_acquire(to, o.charged_to);
        if (kept) {
            co_return std::move(kept);
        }
    }
    if (!inquiry_) {
        co_return co_await w_.origins.acquire(to, fresh_only, until, o.charged_to);
    }
    const auto made = std::make_shared<dialling>();
    auto on_end = [made, signal = ready_.handle()](std::exception_ptr broken,
                                                   attempt<net::origin_lease> result) {
        if (broken) {
            made->result.emplace(failure{failure_code::out_of_memory, ""});
        } else if (made->unwanted && result) {
            result->give_back();
        } else {
            made->result.emplace(std::move(result));
        }
        signal.notify();
    };
    auto work = dial_for(w_, std::string{to.host}, to, fresh_only, until, o.charged_to);
    asio::co_spawn(w_.io, std::move(work), std::move(on_end));
    while (!made->result && !is_overtaken()) {
        const bool signalled = co_await ready_.wait(steady_time::max());
        if (!signalled) {
            break;
        }
    }
    if (!made->result) {
        made->unwanted = true;
        failure gave_up{failure_code::origin_closed, "not waited for"};
        co_return gave_up;
    }
    co_return std::move(*made->result);
}

// To the parent in hand, the next that can be reached, or the origin itself.
awaitable<bool> producer::connect(bool fresh_only) {
    for (;;) {
        const auto begun = steady_now();
        const auto until = begun + order_->now_settings->options.timeouts.origin_connect;
        auto leased = co_await acquire(fresh_only, until);
        if (leased) {
            lease_ = std::move(*leased);
            co_return true;
        }
        why_ = leased.error();
        if (is_overtaken() || !try_next_parent(begun)) {
            co_return false;
        }
    }
}

awaitable<bool> producer::connect_and_send(bool fresh_only) {
    const auto& timeouts = order_->now_settings->options.timeouts;
    auto& o = *order_;
    const bool connected = co_await connect(fresh_only);
    if (!connected) {
        co_return false;
    }
    if (lease_.reused()) {
        w_.counts.origin_reused.add();
    }
    if (into_.abandoned() || is_overtaken()) {
        lease_.give_back();
        why_ = failure{failure_code::origin_closed, "every client has left"};
        co_return false;
    }
    control_->reading = &lease_.socket();
    request_time_ = wall_now();
    asked_at_ = resident_now();
    sent_at_ = steady_now();
    const auto wire = request_wire(validate_,
                                   parent() != nullptr ? next_hop::parent : next_hop::origin);
    awaits_head_ = true;
    patience_.expire_after(timeouts.origin_head);
    const auto error = co_await net::write_all(lease_.socket(), asio::buffer(wire));
    if (error) {
        // Reading tells more: an origin may have answered and closed. What follows decides.
        co_return true;
    }
    w_.counts.bytes_to_origins.add(wire.size());
    if (o.body && !upload_started_ && !into_.abandoned() && !o.body->stopping()) {
        upload_started_ = true;
        begin_upload();
        auto sending = upload::run(o.body, lease_.socket());
        // A body that the client broke off, or framed wrongly, must not wait for an origin that
        // waits for the rest of it: what reads the response is interrupted, and finds the reason in
        // the upload.
        auto on_end = [control = control_, body = o.body](std::exception_ptr) {
            if (body->broken_by_client() && control->reading != nullptr) {
                error_code ignored;
                control->reading->cancel(ignored);
            }
        };
        asio::co_spawn(w_.io, std::move(sending), on_end);
    }
    co_return true;
}

// The body's way out is not the origin's time to answer: that begins when the origin has all of it.
// Until then it has timeouts.origin_upload to take something of what is there for it, which the
// kernel says: what was given to the socket and is not acknowledged. A client that sends nothing is
// the upload's to judge.
void producer::begin_upload() {
    const auto& timeouts = order_->now_settings->options.timeouts;
    passed_on_ = unacknowledged_ = 0;
    taken_at_ = steady_now();
    taking_.expire_after(look_every(timeouts));
    if (!order_->body->awaits_word()) {
        patience_.clear();
    }
}

void producer::look_at_upload() {
    const auto& body = *order_->body;
    const auto& timeouts = order_->now_settings->options.timeouts;
    const auto now = steady_now();
    const auto unacknowledged = lease_ ? net::not_acknowledged(lease_.socket()) : 0;
    const bool moved = passed_on_ != body.passed_on() || unacknowledged_ != unacknowledged;
    if (moved || unacknowledged == 0) {
        taken_at_ = now;
    }
    passed_on_ = body.passed_on();
    unacknowledged_ = unacknowledged;
    if (w_.timer.stopped() || now - taken_at_ >= timeouts.origin_upload) {
        stalled_ = true;
        order_->body->stop();
        interrupt();
        return;
    }
    const auto state = body.state();
    const bool going_out = state == upload::phase::untouched || state == upload::phase::running ||
                           (state == upload::phase::done && unacknowledged > 0);
    if (going_out) {
        taking_.expire_after(look_every(timeouts));
    } else {
        await_head_anew();
    }
}

void producer::await_head_anew() {
    if (awaits_head_ && !body_is_going_out()) {
        patience_.expire_after(order_->now_settings->options.timeouts.origin_head);
    }
}

void producer::run_out_of_patience() {
    if (awaits_head_ && body_is_going_out() && !w_.timer.stopped()) {
        patience_.expire_at(steady_time::max());  // a client that asked first has begun to send
    } else {
        interrupt();
    }
}

awaitable<std::size_t> producer::read_into(char* at, std::size_t room, error_code& error) {
    if (stalled_ || patience_.expired() || into_.abandoned() || is_overtaken() ||
        (order_->body && order_->body->broken_by_client())) {
        error = asio::error::operation_aborted;
        co_return 0;
    }
    const auto into = asio::buffer(at, room);
    const auto [failed, got] = co_await lease_.socket().async_read_some(into, use_tuple);
    w_.counts.bytes_from_origins.add(got);
    error = failed;
    co_return got;
}

awaitable<producer::head_end> producer::read_head() {
    auto& o = *order_;
    auto& buffer = lease_.buffer();
    const auto& limits = o.now_settings->response_limits;
    unsigned interim = 0;
    std::size_t resume = 0;
    any_byte_ = false;
    for (;;) {
        if (!buffer.empty()) {
            any_byte_ = true;
            const auto parsed = http::parse_response_head(buffer.data(), head_, limits, resume);
            if (parsed.state == http::head_state::bad) {
                if (lease_.reused()) {
                    // Behind a good answer this is its rest, and no answer yet.
                    lease_.note_surplus();
                    if (interim == 0 && o.retryable) {
                        co_return head_end::retry;
                    }
                }
                why_ = failure{parsed.code, parsed.why};
                co_return head_end::failed;
            }
            if (parsed.state == http::head_state::done) {
                if (head_.status >= 200 || head_.status == 101) {
                    awaits_head_ = false;
                    co_return head_end::got;
                }
                if (++interim > most_interim) {
                    why_ = failure{failure_code::bad_response, "too many 1xx responses"};
                    co_return head_end::failed;
                }
                // It is at work (102), or about to be: bounded by how many of them may come.
                if (head_.status == 100 && o.body) {
                    o.body->go();
                }
                await_head_anew();
                std::string passed;
                http::append_response_fields(passed, head_, {.via = w_.common.pseudonym});
                passed += "\r\n";
                into_.producer_interim(std::move(passed));
                buffer.consume(head_.bytes);
                resume = 0;
                continue;
            }
            resume = parsed.resume;
        }
        const auto space = buffer.prepare(read_size);
        error_code error;
        const auto got = co_await read_into(space.data(), space.size(), error);
        if (got > 0) {
            buffer.commit(got);
            continue;
        }
        if (is_overtaken()) {
            co_return head_end::overtaken;
        }
        if (o.body && o.body->state() == upload::phase::bad_framing) {
            why_ = o.body->why();
        } else if (o.body && o.body->state() == upload::phase::client_failed) {
            why_ = failure{failure_code::request_timeout, "the request's body did not arrive"};
        } else if (stalled_) {
            why_ = failure{failure_code::origin_upload_timeout,
                           "the origin took nothing of the request's body in time"};
        } else if (patience_.expired()) {
            why_ = failure{failure_code::origin_head_timeout, "no response head in time"};
        } else if (into_.abandoned()) {
            why_ = failure{failure_code::origin_closed, "every client has left"};
        } else if (!any_byte_ && lease_.reused() && o.retryable) {
            co_return head_end::retry;
        } else {
            why_ = failure{failure_code::origin_closed,
                           any_byte_ ? "the connection ended in the middle of the response's head"
                                     : "the connection ended without a response"};
        }
        co_return head_end::failed;
    }
}

// A final response's head, from whoever has it; the lease is the connection that it came on. False:
// why_ says why there is none.
awaitable<bool> producer::get_head() {
    auto& o = *order_;
    sibling_ = nullptr;
    if (w_.peers && (o.may_ask_siblings || o.may_use_parents) && may_leave_to_peers()) {
        book_ = w_.peers->book;
        if (o.may_ask_siblings) {
            ask_siblings();
        }
        if (o.may_use_parents && book_->choice) {
            parents_ = book_->choice->order(peer_key(), steady_now());
            parent_at_ = 0;
        }
    }
    if (inquiry_) {
        const auto until = steady_now() + o.now_settings->options.peering.budget;
        const bool answered = co_await wait_for_siblings(until);
        if (answered) {
            adopt_sibling();
            co_return true;
        }
        if (inquiry_->is_over()) {
            inquiry_ = nullptr;
        }
    }
    bool fresh_only = !o.retryable;
    auto end = head_end::failed;
    for (;;) {
        const bool sent = co_await connect_and_send(fresh_only);
        end = head_end::failed;
        if (sent) {
            end = co_await read_head();
        }
        if (end == head_end::retry) {
            control_->reading = nullptr;
            lease_.close();
            fresh_only = true;  // so the next turn on this connection is the last
            continue;
        }
        const bool silent = end == head_end::failed && sent && !any_byte_ && o.retryable &&
                            !into_.abandoned() && !is_overtaken();
        const bool returned = end == head_end::got && parent() != nullptr &&
                              http::is_own_loop(head_.status, head_.fields, w_.common.pseudonym);
        if (returned) {
            why_ = failure{failure_code::loop_detected,
                           "what it is asked comes back to this instance, " + w_.common.pseudonym};
        }
        // What came back has reached no origin, so that any method may be sent again.
        const bool again = silent || (returned && !o.body);
        if (again && try_next_parent(sent_at_)) {
            control_->reading = nullptr;
            lease_.close();
            continue;
        }
        break;
    }
    if (end == head_end::got) {
        if (inquiry_) {
            std::exchange(inquiry_, nullptr)->abandon(inquiry::reason::outrun);
        }
        if (parent() == nullptr) {
            co_return true;
        }
        if (http::is_own_loop(head_.status, head_.fields, w_.common.pseudonym)) {
            blame_parent(sent_at_);  // for those to come: this body is on its way
        } else if (head_.status != 508 && book_->choice->succeeded(parents_[parent_at_])) {
            // Of another's loop: where two have each other for parents that is no recovery.
            log::info("peers: ", parent()->name, ": a parent that answers again");
        }
        co_return true;
    }
    if (inquiry_) {
        // The origin has failed: what siblings say is all there is.
        control_->reading = nullptr;
        lease_.close();
        patience_.clear();
        const bool answered = co_await wait_for_siblings(steady_time::max());
        if (answered) {
            adopt_sibling();
            co_return true;
        }
        std::exchange(inquiry_, nullptr)->abandon(inquiry::reason::unwanted);
    }
    co_return false;
}

}  // namespace reprise::proxy::fetch
