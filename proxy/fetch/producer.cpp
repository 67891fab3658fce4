// The producer and the origin: request, response, body. What becomes of what came is in
// producer_keeping.cpp.

#include "proxy/base/log.hpp"
#include "proxy/base/seldom.hpp"
#include "proxy/fetch/producer_steps.hpp"
#include "proxy/fetch/splice.hpp"
#include "proxy/http/chunked.hpp"
#include "proxy/http/conditional.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/net/io.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <limits>

namespace reprise::proxy::fetch {

using http::body_kind;

namespace {

constinit log::seldom ended_by_exception;

/// Below this a sibling is no faster than no sibling: another source goes on.
constexpr std::uint64_t sibling_rate = 16u << 10;  // bytes a second
constexpr std::chrono::milliseconds sibling_patience{1000};

}  // namespace

void producer::fail(failure why) {
    w_.counts
        .fetches_ended[static_cast<std::size_t>(into_.abandoned() ? fetch_end::given_up
                                                                  : fetch_end::failed)]
        .add();
    into_.producer_fail(std::move(why));
}

awaitable<bool> producer::wait_for_room() {
    while (into_.producer_must_pause()) {
        patience_.clear();
        const bool signalled = co_await ready_.wait(steady_time::max());
        if (!signalled || into_.abandoned()) {
            co_return false;
        }
    }
    co_return !into_.abandoned();
}

// A piece of the body goes to the readers, unless they have it from a sibling already. False: it is
// not what they have, or more than they were promised.
bool producer::deliver(std::string_view piece) {
    if (passed_) {
        if (passed_->left_to_skip() > 0) {
            const auto known = piece.substr(0,
                                            static_cast<std::size_t>(std::min<std::uint64_t>(
                                                passed_->left_to_skip(), piece.size())));
            piece.remove_prefix(known.size());
            if (!passed_->skip(known)) {
                return false;
            }
        }
        if (sibling_) {
            passed_->note(piece);
        }
    }
    if (piece.size() > owed_) {
        return false;
    }
    owed_ -= piece.size();
    if (owed_ == 0 && !piece.empty() && ends_by_surprise()) {
        last_ = piece.back();
        piece.remove_suffix(1);
    }
    if (!piece.empty()) {
        into_.producer_append(piece);
    }
    return true;
}

// The source in hand has sent all of its body. False: that is less than readers were promised, or
// have.
bool producer::end_body() {
    if ((passed_ && passed_->left_to_skip() > 0) || (published_->length && owed_ != 0)) {
        return false;
    }
    if (last_) {
        into_.producer_append({&*last_, 1});
        last_.reset();
    }
    return true;
}

// The body from the source in hand. False: why_ says why it did not come whole.
awaitable<bool> producer::read_body_of_one(std::string& trailers) {
    auto& buffer = lease_.buffer();
    const auto& framing = framing_;
    const auto& options = order_->now_settings->options;
    const auto timeout = options.timeouts.origin_body;
    auto left = framing.kind == body_kind::length ? framing.length
                                                  : std::numeric_limits<std::uint64_t>::max();
    http::chunked_decoder decoder{
        {.trailer_bytes = options.limits.head_size, .trailer_fields = options.limits.fields}};
    const auto cut_short = [&](std::string detail) {
        if (stalled_) {
            why_ = failure{failure_code::origin_upload_timeout,
                           "the origin stopped taking the body"};
            return false;
        }
        const bool late = patience_.expired();
        why_ = failure{late ? failure_code::origin_body_timeout : failure_code::response_cut_short,
                       late ? "the response's body stopped arriving" : std::move(detail)};
        return false;
    };
    const auto skips = [this] { return passed_ && passed_->left_to_skip() > 0; };
    constexpr auto changed = "the object changed while it was being sent";
    const auto end = [&] { return end_body() || cut_short("another source had less of it"); };
    for (;;) {
        if (framing.kind == body_kind::length && left == 0) {
            co_return end();
        }
        if (!buffer.empty()) {
            bool same = true;
            if (framing.kind == body_kind::chunked) {
                const auto step = decoder.feed(buffer.data());
                if (step.error != nullptr) {
                    co_return cut_short(std::string{"chunked coding: "} + step.error);
                }
                same = deliver(step.data);
                buffer.consume(step.consumed);
                if (same && step.done) {
                    for (const auto& line : decoder.trailers()) {
                        trailers.append(line.name).append(": ").append(line.value).append("\r\n");
                    }
                    co_return end();
                }
            } else {
                const auto piece = buffer.data().substr(
                    0, static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer.size())));
                same = deliver(piece);
                left -= piece.size();
                buffer.consume(piece.size());
            }
            if (!same) {
                co_return cut_short(changed);
            }
            keep_while_there_is_room();
            continue;
        }
        if (!co_await wait_for_room()) {
            co_return cut_short("every client has left");
        }
        if (!sibling_) {
            patience_.expire_after(timeout);
        } else if (!patience_.armed()) {
            patience_.guard_rate(sibling_rate, std::max(sibling_patience, sibling_->timeout));
        }
        error_code error;
        std::size_t got = 0;
        if (framing.kind == body_kind::chunked || left <= read_size / 4 || skips() ||
            ends_by_surprise()) {
            const auto space = buffer.prepare(read_size);
            got = co_await read_into(space.data(), space.size(), error);
            buffer.commit(got);
        } else {
            // Straight into the block that clients and store share.
            const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(left, 64u << 10));
            const auto [at, space] = into_.producer_space(want);
            got = co_await read_into(at, space, error);
            if (got > owed_) {
                co_return cut_short(changed);
            }
            owed_ -= got;
            if (sibling_ && passed_) {
                passed_->note({at, got});
            }
            into_.producer_commit(got);
            left -= got;
            keep_while_there_is_room();
        }
        if (got > 0) {
            if (sibling_) {
                patience_.progress(got);
            }
            continue;
        }
        if (framing.kind == body_kind::until_close && error == asio::error::eof) {
            co_return end();
        }
        co_return cut_short(error == asio::error::eof ? "the connection ended before the body"
                                                      : "the connection broke: " + error.message());
    }
}

// A sibling broke off. Its readers have the beginning: the same response from elsewhere goes on
// behind that, if its beginning is the same bytes.
awaitable<bool> producer::go_on_elsewhere() {
    auto& o = *order_;
    end_asking(peer::asking_end::failed);
    o.may_ask_siblings = false;
    control_->reading = nullptr;
    lease_.close();
    patience_.clear();
    const bool found = co_await get_head();
    if (!found) {
        co_return false;
    }
    const auto framing = http::response_framing(head_, o.request->head.method);
    const bool same = framing && continues(*published_, head_, *framing);
    if (!same) {
        why_ = failure{failure_code::response_cut_short,
                       "the object changed while it was being sent"};
        co_return false;
    }
    framing_ = *framing;
    keeps_ = http::keep_alive(head_.version, head_.fields);
    lease_.buffer().consume(head_.bytes);
    passed_->begin_skipping(into_.received());
    co_return true;
}

// False: the fetch has failed.
awaitable<bool> producer::read_body(std::string& trailers) {
    if (sibling_) {
        passed_ = std::make_unique<passed_bytes>();
    }
    bool whole = co_await read_body_of_one(trailers);
    if (!whole && sibling_ && !into_.abandoned()) {
        const bool goes_on = co_await go_on_elsewhere();
        trailers.clear();
        if (goes_on) {
            whole = co_await read_body_of_one(trailers);
        }
    }
    if (!whole) {
        fail(why_);
    }
    co_return whole;
}

// What stands behind the answer on its connection is no answer to anything.
bool producer::has_surplus(std::size_t answered) noexcept {
    return framing_.kind != body_kind::until_close && lease_.buffer().size() > answered;
}

void producer::give_back() {
    const auto& framing = framing_;
    if (has_surplus(0)) {
        lease_.note_surplus();
    } else if (!answered_early_ && framing.reusable && framing.kind != body_kind::until_close &&
               keeps_) {
        lease_.give_back();
    }
    control_->reading = nullptr;
    lease_.close();
}

// The response has come whole before the body has gone out whole. A server that accepts it reads
// on, were it after a half close (RFC 9112 9.6). One that refuses it has no use for the rest, and a
// client that asked first and had its answer need not send it (RFC 9110 10.1.1).
bool producer::may_have_rest() const noexcept {
    return head_.status / 100 == 2 && !order_->body->awaits_word();
}

// Behind the response: until the body has gone out, or the origin or the client ends it.
awaitable<void> producer::finish_upload() {
    if (upload_started_ && may_have_rest()) {
        co_await order_->body->ended(upload::waiter::producer);
    }
    co_await settle_upload();
}

awaitable<void> producer::settle_upload() {
    if (!order_->body || !upload_started_) {
        co_return;
    }
    taking_.clear();
    if (order_->body->state() == upload::phase::running) {
        order_->body->stop();
        control_->reading = nullptr;
        if (lease_) {
            error_code ignored;
            lease_.socket().close(ignored);
        }
    }
    co_await order_->body->ended(upload::waiter::producer);
}

awaitable<void> producer::fetch_once() {
    auto& o = *order_;
    validate_ = o.validating != nullptr && !unconditional_;
    const bool found = co_await get_head();
    if (!found) {
        fail(why_);
        co_return;
    }
    response_time_ = wall_now();
    came_at_ = resident_now();
    if (head_.status == 101) {
        const bool to_websocket = http::has_token(
                                      head_.fields, http::field_id::upgrade, "websocket") &&
                                  http::count(head_.fields, http::field_id::upgrade) == 1;
        if (!o.websocket || !to_websocket) {
            fail(failure{failure_code::bad_response,
                         "the origin switched to a protocol that was not asked for"});
            co_return;
        }
        if (o.body && o.body->state() != upload::phase::done) {
            fail(failure{failure_code::bad_response,
                         "the origin switched protocols in the middle of the request"});
            co_return;
        }
        lease_.buffer().consume(head_.bytes);
        patience_.clear();
        control_->reading = nullptr;
        http::append_response_fields(
            o.upgrade_bytes, head_, {.via = w_.common.pseudonym, .websocket = true});
        o.upgrade_bytes += "\r\n";
        o.upgraded = std::move(lease_);
        w_.counts.fetches_ended[static_cast<std::size_t>(fetch_end::finished)].add();
        into_.producer_upgraded();
        co_return;
    }
    const auto framing = http::response_framing(head_, o.request->head.method);
    if (!framing) {
        fail(framing.error());
        co_return;
    }
    framing_ = *framing;
    keeps_ = http::keep_alive(head_.version, head_.fields);
    // Who answers before the whole request is there may take the rest for another one.
    answered_early_ = o.body && o.body->state() != upload::phase::done;
    // On a connection that has served before, surplus behind this answer may mean that surplus
    // stood in front of it, and was taken for it. Bodies are asked again below.
    const bool dubious = lease_.reused() && framing->kind == body_kind::none &&
                         has_surplus(head_.bytes);
    if (validate_ && head_.status == 304) {
        if (!dubious && adopt_not_modified()) {
            lease_.buffer().consume(head_.bytes);
            lease_.note_kept(o.url);
            give_back();
            w_.counts.fetches_ended[static_cast<std::size_t>(fetch_end::finished)].add();
            co_return;
        }
        if (has_surplus(head_.bytes)) {
            lease_.note_surplus();
        }
        lease_.close();
        control_->reading = nullptr;
        refetch_ = unconditional_ = true;
        co_return;
    }
    if (!o.resume_etag.empty() && head_.status != 206 && head_.status != 200) {
        fail(failure{failure_code::response_cut_short,
                     "the object changed while it was being sent"});
        co_return;
    }
    if (o.described && !dubious) {
        adopt_head();
    }
    publish_head(*framing);
    owed_ = published_->length.value_or(std::numeric_limits<std::uint64_t>::max());
    lease_.buffer().consume(head_.bytes);
    std::string trailers;
    if (framing->kind != body_kind::none) {
        const bool whole = co_await read_body(trailers);
        if (!whole) {
            co_return;
        }
    }
    patience_.clear();
    end_asking(peer::asking_end::true_hit);
    record_sights();
    if (lease_.reused() && has_surplus(0)) {
        on_disk_.reset();
        into_.keep_no_more();
    } else if (storable_ || o.described) {
        lease_.note_kept(o.url);
    }
    if (on_disk_) {
        finish_on_disk();
    } else if (into_.kept_whole()) {
        store_body();
    } else if (refused_) {
        note_refused_bytes(w_.counts, ruling_.policy, ruling_.rule, into_.received());
    }
    if (ruling_.seen_before > 0 && storable_ && !o.replaces) {
        w_.counts.admission_hit_bytes_lost.add(into_.received());
    }
    w_.counts.fetches_ended[static_cast<std::size_t>(fetch_end::finished)].add();
    into_.producer_finish(std::move(trailers));
    co_await finish_upload();
    give_back();
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
    // Before anybody is asked: of several sources that are asked one after the other, or at once,
    // the first may have answered before an invalidation that the last has seen.
    begun_at_ = w_.common.store.mark(order_->key);
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
    control_->reading = nullptr;
    lease_.close();
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
