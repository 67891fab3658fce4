// Whom a response comes from: siblings that probably have it, a parent, the origin.
//
//     siblings ──none has it──> parents, by rendezvous hashing ──all down──> origin
//         └──peering.budget is over──> parent or origin too; the first good answer wins

#include "proxy/base/log.hpp"
#include "proxy/fetch/producer_steps.hpp"
#include "proxy/http/error_page.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/net/io.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <utility>

namespace reprise::proxy::fetch {

namespace {

constexpr unsigned most_interim = 16;

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

// A peer connects from where it stands, and judges by its own settings if at all. What this machine
// itself knows to be refused is left to no peer: the dial refuses it, and says why. Where a name
// leads that must be looked up is the peer's business.
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
    came_.requested = wall_now();
    inquiry::question question{
        .book = book_,
        .whom = whom,
        .wire = wire_of(o, next_hop::sibling, false, w_.common.pseudonym, came_.requested),
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
    lease_ = std::move(won->lease);
    control_->reading = &lease_.socket();
    came_.head = std::move(won->head);
    came_.requested = won->asked_at;
    came_.sent = won->sent_at;
    came_.resident_requested = resident_at(came_.requested, came_.sent);
    sibling_ = std::move(won->from);
    sibling_slot_ = won->slot;
    sibling_took_ = won->took;
    sibling_bytes_ = won->bytes - (lease_.buffer().size() - came_.head.bytes);
}

// What the sibling in hand was worth is known. That clients left is no failure of the sibling: it
// had what they asked for. One that breaks off has cost the time since it was asked, body and all.
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
                          : std::chrono::duration_cast<std::chrono::microseconds>(now - came_.sent);
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

// The parent in hand has failed at what began then; that all connections to it, or this client's,
// are in use is no failure of the parent.
void producer::blame_parent(steady_time begun, const failure& why) {
    if (why.code != failure_code::origin_connection_limit &&
        why.code != failure_code::client_share_used &&
        book_->choice->failed(parents_[parent_at_], begun, steady_now())) {
        log::warn("peers: ",
                  parent()->name,
                  ": a parent that is gone around from now on: ",
                  facts_of(why.code).name,
                  why.detail.empty() ? "" : ": ",
                  why.detail);
    }
}

// False: it was the origin itself.
bool producer::try_next_parent(steady_time begun, const failure& why) {
    if (parent() == nullptr) {
        return false;
    }
    blame_parent(begun, why);
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
awaitable<trouble> producer::connect(bool fresh_only) {
    for (;;) {
        const auto begun = steady_now();
        const auto until = begun + order_->now_settings->options.timeouts.origin_connect;
        auto leased = co_await acquire(fresh_only, until);
        if (leased) {
            lease_ = std::move(*leased);
            co_return std::nullopt;
        }
        if (is_overtaken() || !try_next_parent(begun, leased.error())) {
            co_return leased.error();
        }
    }
}

awaitable<trouble> producer::connect_and_send(bool fresh_only) {
    const auto& timeouts = order_->now_settings->options.timeouts;
    auto wrong = co_await connect(fresh_only);
    if (wrong) {
        co_return wrong;
    }
    if (lease_.reused()) {
        w_.counts.origin_reused.add();
    }
    if (into_.abandoned() || is_overtaken()) {
        lease_.give_back();
        co_return failure{failure_code::origin_closed, "every client has left"};
    }
    control_->reading = &lease_.socket();
    came_.requested = wall_now();
    came_.resident_requested = resident_now();
    came_.sent = steady_now();
    const auto to = parent() != nullptr ? next_hop::parent : next_hop::origin;
    const auto wire = wire_of(*order_, to, validate_, w_.common.pseudonym, came_.requested);
    awaits_head_ = true;
    patience_.expire_after(timeouts.origin_head);
    const auto error = co_await net::write_all(lease_.socket(), asio::buffer(wire));
    if (error) {
        // Reading tells more: an origin may have answered and closed. What follows decides.
        co_return std::nullopt;
    }
    w_.counts.bytes_to_origins.add(wire.size());
    if (body_ && !upload_started_ && !into_.abandoned() && !body_->stopping()) {
        begin_upload();
    }
    co_return std::nullopt;
}

void producer::begin_upload() {
    upload_started_ = true;
    watch_.begin();
    if (!body_->awaits_word()) {
        patience_.clear();
    }
    auto sending = upload::run(body_, lease_.socket());
    // A body that the client broke off, or framed wrongly, must not wait for an origin that waits
    // for the rest of it: what reads the response is interrupted, and finds the reason in the
    // upload.
    auto on_end = [control = control_, body = body_](std::exception_ptr thrown) {
        if (thrown) {
            body->give_up();  // both sides wait for its end
        }
        if (body->broken_by_client() && control->reading != nullptr) {
            error_code ignored;
            control->reading->cancel(ignored);
        }
    };
    asio::co_spawn(w_.io, std::move(sending), on_end);
}

void producer::await_head_anew() {
    if (awaits_head_ && !watch_.body_is_going_out()) {
        patience_.expire_after(order_->now_settings->options.timeouts.origin_head);
    }
}

void producer::run_out_of_patience() {
    if (awaits_head_ && watch_.body_is_going_out() && !w_.timer.stopped()) {
        patience_.expire_at(steady_time::max());  // a client that asked first has begun to send
    } else {
        interrupt();
    }
}

awaitable<std::size_t> producer::read_into(char* at, std::size_t room, error_code& error) {
    if (watch_.stalled() || patience_.expired() || into_.abandoned() || is_overtaken() ||
        (body_ && body_->broken_by_client())) {
        error = asio::error::operation_aborted;
        co_return 0;
    }
    const auto into = asio::buffer(at, room);
    const auto [failed, got] = co_await lease_.socket().async_read_some(into, use_tuple);
    w_.counts.bytes_from_origins.add(got);
    error = failed;
    co_return got;
}

// A 1xx is passed on. Bounded by how many of them may come: each says that the origin is at work
// (102), or about to be.
trouble producer::pass_interim(unsigned count) {
    if (count > most_interim) {
        return failure{failure_code::bad_response, "too many 1xx responses"};
    }
    if (came_.head.status == 100 && body_) {
        body_->go();
    }
    await_head_anew();
    std::string passed;
    http::append_response_fields(passed, came_.head, {.via = w_.common.pseudonym});
    passed += "\r\n";
    into_.producer_interim(std::move(passed));
    return std::nullopt;
}

awaitable<producer::head_end> producer::read_head() {
    using kind = head_end::kind;
    auto& buffer = lease_.buffer();
    const auto& limits = order_->now_settings->response_limits;
    unsigned interim = 0;
    std::size_t resume = 0;
    any_byte_ = false;
    for (;;) {
        if (!buffer.empty()) {
            any_byte_ = true;
            const auto parsed = http::parse_response_head(
                buffer.data(), came_.head, limits, resume);
            if (parsed.state == http::head_state::bad) {
                if (lease_.reused()) {
                    // Behind a good answer this is its rest, and no answer yet.
                    lease_.note_surplus();
                    if (interim == 0 && order_->retryable) {
                        co_return head_end{.what = kind::retry};
                    }
                }
                co_return head_end{kind::failed, failure{parsed.code, parsed.why}};
            }
            if (parsed.state == http::head_state::done) {
                if (came_.head.status >= 200 || came_.head.status == 101) {
                    awaits_head_ = false;
                    co_return head_end{.what = kind::got};
                }
                if (auto wrong = pass_interim(++interim)) {
                    co_return head_end{kind::failed, std::move(*wrong)};
                }
                buffer.consume(came_.head.bytes);
                resume = 0;
                continue;
            }
            resume = parsed.resume;
        }
        const auto space = buffer.prepare(read_size);
        error_code error;
        const auto got = co_await read_into(space.data(), space.size(), error);
        if (got == 0) {
            co_return no_head();
        }
        buffer.commit(got);
    }
}

// Nothing more comes before the head is whole.
producer::head_end producer::no_head() const {
    using kind = head_end::kind;
    const auto& o = *order_;
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
    if (patience_.expired()) {
        return failed(failure_code::origin_head_timeout, "no response head in time");
    }
    if (into_.abandoned()) {
        return failed(failure_code::origin_closed, "every client has left");
    }
    if (any_byte_) {
        return failed(failure_code::origin_closed,
                      "the connection ended in the middle of the response's head");
    }
    if (lease_.reused() && o.retryable) {
        return {.what = kind::retry};
    }
    return failed(failure_code::origin_closed, "the connection ended without a response");
}

// Which peers may be asked, and in which order.
void producer::find_peers() {
    auto& o = *order_;
    if (!w_.peers || !(o.may_ask_siblings || o.may_use_parents) || !may_leave_to_peers()) {
        return;
    }
    book_ = w_.peers->book;
    if (o.may_ask_siblings) {
        ask_siblings();
    }
    if (o.may_use_parents && book_->choice) {
        parents_ = book_->choice->order(peer_key(), steady_now());
        parent_at_ = 0;
    }
}

void producer::note_parent_answered() {
    if (http::is_own_loop(came_.head.status, came_.head.fields, w_.common.pseudonym)) {
        // For those to come: this body is on its way.
        blame_parent(came_.sent, failure{failure_code::loop_detected, ""});
    } else if (came_.head.status != 508 && book_->choice->succeeded(parents_[parent_at_])) {
        // After a 508 from another node's loop the parent has not recovered.
        log::info("peers: ", parent()->name, ": a parent that answers again");
    }
}

// A final response's head, from whoever has it; the lease is the connection that it came on.
awaitable<trouble> producer::get_head() {
    sibling_ = nullptr;
    find_peers();
    if (inquiry_) {
        const auto until = steady_now() + order_->now_settings->options.peering.budget;
        const bool answered = co_await wait_for_siblings(until);
        if (answered) {
            adopt_sibling();
            co_return std::nullopt;
        }
        if (inquiry_->is_over()) {
            inquiry_ = nullptr;
        }
    }
    auto end = co_await ask_origins();
    if (end.what == head_end::kind::got) {
        if (inquiry_) {
            std::exchange(inquiry_, nullptr)->abandon(inquiry::reason::outrun);
        }
        if (parent() != nullptr) {
            note_parent_answered();
        }
        co_return std::nullopt;
    }
    if (inquiry_) {
        // The origin has failed: what siblings say is all there is.
        let_go();
        patience_.clear();
        const bool answered = co_await wait_for_siblings(steady_time::max());
        if (answered) {
            adopt_sibling();
            co_return std::nullopt;
        }
        std::exchange(inquiry_, nullptr)->abandon(inquiry::reason::unwanted);
    }
    co_return std::move(end.why);
}

// The parents in their order, and then the origin, until one answers.
awaitable<producer::head_end> producer::ask_origins() {
    using kind = head_end::kind;
    const auto& o = *order_;
    bool fresh_only = !o.retryable;
    for (;;) {
        auto unsent = co_await connect_and_send(fresh_only);
        if (unsent) {
            co_return head_end{kind::failed, std::move(*unsent)};
        }
        auto end = co_await read_head();
        if (end.what == kind::retry) {
            let_go();
            fresh_only = true;  // so the next turn on this connection is the last
            continue;
        }
        const bool silent = end.what == kind::failed && !any_byte_ && o.retryable &&
                            !into_.abandoned() && !is_overtaken();
        const bool returned = end.what == kind::got && parent() != nullptr &&
                              http::is_own_loop(
                                  came_.head.status, came_.head.fields, w_.common.pseudonym);
        if (returned) {
            end.why = failure{failure_code::loop_detected,
                              "what it is asked comes back to this instance, " +
                                  w_.common.pseudonym};
        }
        // What came back has reached no origin, so that any method may be sent again.
        const bool again = silent || (returned && !body_);
        if (!again || !try_next_parent(came_.sent, end.why)) {
            co_return end;
        }
        let_go();
    }
}

}  // namespace reprise::proxy::fetch
