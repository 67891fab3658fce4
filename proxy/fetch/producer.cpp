// From an order to the end of its response: whom it comes from is in producer_sources.cpp, how its
// body is read in producer_body.cpp, what becomes of it in keeping.hpp and freshening.hpp.

#include "proxy/base/log.hpp"
#include "proxy/base/seldom.hpp"
#include "proxy/fetch/freshening.hpp"
#include "proxy/fetch/producer_steps.hpp"
#include "proxy/http/forwarding.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include <limits>

namespace reprise::proxy::fetch {

using http::body_kind;

namespace {

constinit log::seldom ended_by_exception;

}  // namespace

void producer::fail(failure why) {
    w_.counts
        .fetches_ended[static_cast<std::size_t>(into_.abandoned() ? fetch_end::given_up
                                                                  : fetch_end::failed)]
        .add();
    into_.producer_fail(std::move(why));
}

void producer::count_finished() {
    w_.counts.fetches_ended[static_cast<std::size_t>(fetch_end::finished)].add();
}

// The connection in hand is used no more.
void producer::let_go() {
    control_->reading = nullptr;
    lease_.close();
}

// What stands behind the answer on its connection is no answer to anything.
bool producer::has_surplus(std::size_t answered) noexcept {
    return came_.framing.kind != body_kind::until_close && lease_.buffer().size() > answered;
}

void producer::give_back() {
    const auto& framing = came_.framing;
    if (has_surplus(0)) {
        lease_.note_surplus();
    } else if (!answered_early_ && framing.reusable && framing.kind != body_kind::until_close &&
               came_.persistent) {
        lease_.give_back();
    }
    let_go();
}

// The response has come whole before the body has gone out whole. A server that accepts it reads
// on, even after a half close (RFC 9112 9.6). One that refuses it has no use for the rest, and a
// client that asked first and had its answer need not send it (RFC 9110 10.1.1).
bool producer::may_have_rest() const noexcept {
    return came_.head.status / 100 == 2 && !body_->awaits_word();
}

// Behind the response: until the body has gone out, or the origin or the client ends it.
awaitable<void> producer::finish_upload() {
    if (upload_started_ && may_have_rest()) {
        co_await body_->ended(upload::waiter::producer);
    }
    co_await settle_upload();
}

awaitable<void> producer::settle_upload() {
    if (!body_ || !upload_started_) {
        co_return;
    }
    watch_.end();
    if (body_->state() == upload::phase::running) {
        body_->stop();
        control_->reading = nullptr;
        if (lease_) {
            error_code ignored;
            lease_.socket().close(ignored);
        }
    }
    co_await body_->ended(upload::waiter::producer);
}

trouble producer::switch_protocols() {
    auto* to = std::get_if<wanted::passed>(&order_->what);
    const auto& fields = came_.head.fields;
    const bool to_websocket = http::has_token(fields, http::field_id::upgrade, "websocket") &&
                              http::count(fields, http::field_id::upgrade) == 1;
    if (to == nullptr || !to->websocket || !to_websocket) {
        return failure{failure_code::bad_response,
                       "the origin switched to a protocol that was not asked for"};
    }
    if (body_ && body_->state() != upload::phase::done) {
        return failure{failure_code::bad_response,
                       "the origin switched protocols in the middle of the request"};
    }
    lease_.buffer().consume(came_.head.bytes);
    patience_.clear();
    control_->reading = nullptr;
    http::append_response_fields(
        to->upgrade_bytes, came_.head, {.via = w_.common.pseudonym, .websocket = true});
    to->upgrade_bytes += "\r\n";
    to->upgraded = std::move(lease_);
    count_finished();
    into_.producer_upgraded();
    return std::nullopt;
}

// A 304 to our own validation. False: it is asked again, without validators.
bool producer::adopt_not_modified(bool dubious) {
    freshening by{w_, *order_, came_, keeping_.begun_at()};
    const auto fresh = dubious ? nullptr : by.by_not_modified();
    if (!fresh) {
        if (has_surplus(came_.head.bytes)) {
            lease_.note_surplus();
        }
        let_go();
        return false;
    }
    into_.producer_validated(fresh);
    lease_.buffer().consume(came_.head.bytes);
    lease_.note_kept(order_->url);
    give_back();
    count_finished();
    return true;
}

void producer::publish_head() {
    const auto& o = *order_;
    const auto head = head_for_readers(came_, o, w_.common.pseudonym);
    const auto* via = sibling_ ? sibling_.get() : parent();
    head->origin = lease_.address().to_string() + ":" +
                   std::to_string(via != nullptr ? via->port : o.connect_port);
    head->origin_time = std::chrono::duration_cast<std::chrono::microseconds>(steady_now() -
                                                                              came_.sent);
    if (via != nullptr) {
        head->peer = via->name;
        head->from_sibling = sibling_ != nullptr;
    }
    if (book_ && !sibling_ && o.is_get) {
        w_.common.peers->siblings().note_origin(head->origin_time);
    }
    keeping_.judge(*head, came_, via == nullptr || !via->proxy_only);
    published_ = head;
    keeping_.is_known_to(head, into_.producer_head(head));
    owed_ = head->length.value_or(std::numeric_limits<std::uint64_t>::max());
    lease_.buffer().consume(came_.head.bytes);
}

// Behind the head: the body, if there is one, and what becomes of it.
awaitable<void> producer::pass_body() {
    std::string trailers;
    if (came_.framing.kind != body_kind::none) {
        auto wrong = co_await read_body(trailers);
        if (wrong) {
            fail(std::move(*wrong));
            co_return;
        }
    }
    patience_.clear();
    end_asking(peer::asking_end::true_hit);
    const bool trusted = !lease_.reused() || !has_surplus(0);
    keeping_.finish(trusted);
    if (trusted && (keeping_.storable() || order_->described())) {
        lease_.note_kept(order_->url);
    }
    count_finished();
    into_.producer_finish(std::move(trailers));
    co_await finish_upload();
    give_back();
}

awaitable<void> producer::fetch_once() {
    auto& o = *order_;
    validate_ = o.validating() != nullptr && !unconditional_;
    auto wrong = co_await get_head();
    came_.came = wall_now();
    came_.resident_came = resident_now();
    const auto status = came_.head.status;
    if (!wrong && status == 101) {
        wrong = switch_protocols();
        if (!wrong) {
            co_return;
        }
    }
    if (wrong) {
        fail(std::move(*wrong));
        co_return;
    }
    const auto framing = http::response_framing(came_.head, o.request->head.method);
    if (!framing) {
        fail(framing.error());
        co_return;
    }
    came_.framing = *framing;
    came_.persistent = http::keep_alive(came_.head.version, came_.head.fields);
    // An origin that answers before it has the whole request may take the rest for another one.
    answered_early_ = body_ && body_->state() != upload::phase::done;
    // On a connection that has served before, surplus behind this answer may mean that surplus
    // stood in front of it, and was taken for it. Bodies are asked again in pass_body().
    const bool dubious = lease_.reused() && framing->kind == body_kind::none &&
                         has_surplus(came_.head.bytes);
    if (validate_ && status == 304) {
        refetch_ = unconditional_ = !adopt_not_modified(dubious);
        co_return;
    }
    if (o.as<wanted::rest>() != nullptr && status != 206 && status != 200) {
        fail(failure{failure_code::response_cut_short,
                     "the object changed while it was being sent"});
        co_return;
    }
    if (o.described() && !dubious) {
        freshening by{w_, o, came_, keeping_.begun_at()};
        by.by_head();
    }
    publish_head();
    co_await pass_body();
}

awaitable<void> producer::run() {
    // Posting is all that the stop function may do: it is called under the fetch's lock, on any
    // thread.
    auto stop = [control = control_, ex = w_.io.get_executor()] {
        asio::post(ex, [control] {
            if (control->reading != nullptr) {
                error_code ignored;
                control->reading->cancel(ignored);
            }
        });
    };
    into_.producer_is(ready_.handle(), std::move(stop));
    keeping_.begin();
    std::optional<failure> broken;
    try {
        do {  // twice at most: the second request does not validate
            refetch_ = false;
            co_await fetch_once();
        } while (refetch_);
    } catch (const std::bad_alloc&) {
        broken = failure{failure_code::out_of_memory, ""};
    } catch (const std::exception& what) {
        broken = failure{failure_code::internal, what.what()};
    }
    if (broken) {
        fail(std::move(*broken));
    }
    if (inquiry_) {
        std::exchange(inquiry_, nullptr)->abandon(inquiry::reason::unwanted);
    }
    end_asking(peer::asking_end::failed);
    into_.producer_left();
    patience_.clear();
    co_await settle_upload();
    let_go();
    if (order_->listed) {
        w_.common.fetches.remove(order_->key, order_->into);
    }
}

namespace {

awaitable<void> run_producer(thread::worker& w, std::shared_ptr<fetch_order> order) {
    producer one{w, std::move(order)};
    co_await one.run();
}

}  // namespace

void start_producer(thread::worker& w, std::shared_ptr<fetch_order> order) {
    w.counts.fetches_started.add();
    auto into = order->into;
    auto on_end = [into](std::exception_ptr broken) {
        if (broken) {
            into->producer_left();
            into->producer_fail(failure{failure_code::internal, "an exception in the fetch"});
            if (const auto more = ended_by_exception.due()) {
                log::error("a fetch ended by an exception", *more);
            }
        }
    };
    asio::co_spawn(w.io, run_producer(w, std::move(order)), std::move(on_end));
}

}  // namespace reprise::proxy::fetch
