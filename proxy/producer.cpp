// The producer and the origin: request, response, body. What becomes of what came is in
// producer_keeping.cpp.

#include "proxy/admin/log.hpp"
#include "proxy/http/chunked.hpp"
#include "proxy/http/conditional.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/net/io.hpp"
#include "proxy/producer_steps.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include <limits>

namespace reprise::proxy {

using http::body_kind;

namespace {
constexpr unsigned most_interim = 16;
}  // namespace

void producer::fail(failure why) {
    w_.counts
        .fetches_ended[static_cast<std::size_t>(into_.abandoned() ? fetch_end::given_up
                                                                  : fetch_end::failed)]
        .add();
    into_.producer_fail(std::move(why));
}

std::string producer::request_wire(bool validate) const {
    const auto& o = *order_;
    http::request_options options;
    options.via = w_.common.pseudonym;
    options.client_address = o.client_address;
    const auto field = o.now_settings->options.forwarding.client_address;
    options.forwarded = field == config::forwarded_field::forwarded ||
                        field == config::forwarded_field::both;
    options.x_forwarded_for = field == config::forwarded_field::x_forwarded_for ||
                              field == config::forwarded_field::both;
    options.body = o.body_framing;
    options.websocket = o.websocket;
    options.trailers = o.body_framing.kind == body_kind::chunked;
    options.te_trailers = http::has_token(o.request->head.fields, http::field_id::te, "trailers");
    options.drop_expect = o.head_is_http10;
    std::string extra;
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

awaitable<bool> producer::connect_and_send(bool fresh_only) {
    const auto& timeouts = order_->now_settings->options.timeouts;
    auto& o = *order_;
    const auto until = steady_now() + timeouts.origin_connect;
    if (!fresh_only) {
        lease_ = w_.origins.try_acquire(o.connect_host, o.connect_port, o.exempt);
    }
    if (!lease_) {
        auto leased = co_await w_.origins.acquire(
            o.connect_host, o.connect_port, o.exempt, fresh_only, until);
        if (!leased) {
            fail(leased.error());
            co_return false;
        }
        lease_ = std::move(*leased);
    }
    if (lease_.reused()) {
        w_.counts.origin_reused.add();
    }
    if (into_.abandoned()) {
        lease_.give_back();
        fail(failure{failure_code::origin_closed, false, "every client has left"});
        co_return false;
    }
    control_->reading = &lease_.socket();
    request_time_ = wall_now();
    begun_at_ = w_.common.store.mark(o.key);
    sent_at_ = steady_now();
    const auto wire = request_wire(validate_);
    patience_.expire_after(timeouts.origin_head);
    const auto error = co_await write_all(lease_.socket(), net::buffer(wire));
    if (error) {
        // Reading tells more: an origin may have answered and closed. What follows decides.
        co_return true;
    }
    w_.counts.bytes_to_origins.add(wire.size());
    if (o.body && !upload_started_ && !into_.abandoned() && !o.body->stopping()) {
        upload_started_ = true;
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
        net::co_spawn(w_.io, std::move(sending), on_end);
    }
    co_return true;
}

awaitable<std::size_t> producer::read_into(char* at, std::size_t room, error_code& error) {
    if (patience_.expired() || into_.abandoned() ||
        (order_->body && order_->body->broken_by_client())) {
        error = net::error::operation_aborted;
        co_return 0;
    }
    const auto into = net::buffer(at, room);
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
    bool any = false;
    for (;;) {
        if (!buffer.empty()) {
            any = true;
            const auto parsed = http::parse_response_head(buffer.data(), head_, limits, resume);
            if (parsed.state == http::head_state::bad) {
                fail(failure{parsed.code, false, parsed.why});
                co_return head_end::failed;
            }
            if (parsed.state == http::head_state::done) {
                if (head_.status >= 200 || head_.status == 101) {
                    co_return head_end::got;
                }
                if (++interim > most_interim) {
                    fail(failure{failure_code::bad_response, false, "too many 1xx responses"});
                    co_return head_end::failed;
                }
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
        if (o.body && o.body->state() == upload::phase::bad_framing) {
            fail(o.body->why());
        } else if (o.body && o.body->state() == upload::phase::client_failed) {
            fail(
                failure{failure_code::request_timeout, false, "the request's body did not arrive"});
        } else if (patience_.expired()) {
            fail(failure{failure_code::origin_head_timeout, false, "no response head in time"});
        } else if (into_.abandoned()) {
            fail(failure{failure_code::origin_closed, false, "every client has left"});
        } else if (!any && lease_.reused() && o.retryable) {
            co_return head_end::retry;
        } else {
            fail(failure{failure_code::origin_closed,
                         false,
                         any ? "the connection ended in the middle of the response's head"
                             : "the connection ended without a response"});
        }
        co_return head_end::failed;
    }
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

awaitable<bool> producer::read_body(const http::body_framing& framing, std::string& trailers) {
    auto& buffer = lease_.buffer();
    const auto& options = order_->now_settings->options;
    const auto timeout = options.timeouts.origin_body;
    auto left = framing.kind == body_kind::length ? framing.length
                                                  : std::numeric_limits<std::uint64_t>::max();
    http::chunked_decoder decoder{
        {.trailer_bytes = options.limits.head_size, .trailer_fields = options.limits.fields}};
    const auto cut_short = [&](std::string detail) {
        const bool late = patience_.expired();
        fail(failure{late ? failure_code::origin_body_timeout : failure_code::response_cut_short,
                     false,
                     late ? "the response's body stopped arriving" : std::move(detail)});
        return false;
    };
    for (;;) {
        if (framing.kind == body_kind::length && left == 0) {
            co_return true;
        }
        if (!buffer.empty()) {
            if (framing.kind == body_kind::chunked) {
                const auto step = decoder.feed(buffer.data());
                if (step.error != nullptr) {
                    co_return cut_short(std::string{"chunked coding: "} + step.error);
                }
                into_.producer_append(step.data);
                buffer.consume(step.consumed);
                if (step.done) {
                    for (const auto& line : decoder.trailers()) {
                        trailers.append(line.name).append(": ").append(line.value).append("\r\n");
                    }
                    co_return true;
                }
            } else {
                const auto piece = buffer.data().substr(
                    0, static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer.size())));
                into_.producer_append(piece);
                left -= piece.size();
                buffer.consume(piece.size());
            }
            keep_while_there_is_room();
            continue;
        }
        if (!co_await wait_for_room()) {
            co_return cut_short("every client has left");
        }
        patience_.expire_after(timeout);
        error_code error;
        std::size_t got = 0;
        if (framing.kind == body_kind::chunked || left <= read_size / 4) {
            const auto space = buffer.prepare(read_size);
            got = co_await read_into(space.data(), space.size(), error);
            buffer.commit(got);
        } else {
            // Straight into the block that clients and store share.
            const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(left, 64u << 10));
            const auto [at, space] = into_.producer_space(want);
            got = co_await read_into(at, space, error);
            into_.producer_commit(got);
            left -= got;
            keep_while_there_is_room();
        }
        if (got > 0) {
            continue;
        }
        if (framing.kind == body_kind::until_close && error == net::error::eof) {
            co_return true;
        }
        co_return cut_short(error == net::error::eof ? "the connection ended before the body"
                                                     : "the connection broke: " + error.message());
    }
}

void producer::give_back(const http::body_framing& framing) {
    const bool upload_whole = !order_->body || order_->body->state() == upload::phase::done;
    if (upload_whole && framing.reusable && framing.kind != body_kind::until_close &&
        http::keep_alive(head_.version, head_.fields)) {
        lease_.give_back();
    }
    control_->reading = nullptr;
    lease_.close();
}

awaitable<void> producer::settle_upload() {
    if (!order_->body || !upload_started_) {
        co_return;
    }
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
    bool fresh_only = !o.retryable;
    for (;;) {
        const bool sent = co_await connect_and_send(fresh_only);
        if (!sent) {
            co_return;
        }
        const auto end = co_await read_head();
        if (end == head_end::failed) {
            co_return;
        }
        if (end == head_end::got) {
            break;
        }
        control_->reading = nullptr;
        lease_.close();
        fresh_only = true;  // so this turn is the last
    }
    response_time_ = wall_now();
    if (head_.status == 101) {
        const bool to_websocket = http::has_token(
                                      head_.fields, http::field_id::upgrade, "websocket") &&
                                  http::count(head_.fields, http::field_id::upgrade) == 1;
        if (!o.websocket || !to_websocket) {
            fail(failure{failure_code::bad_response,
                         false,
                         "the origin switched to a protocol that was not asked for"});
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
    if (validate_ && head_.status == 304) {
        if (adopt_not_modified()) {
            lease_.buffer().consume(head_.bytes);
            give_back(*framing);
            w_.counts.fetches_ended[static_cast<std::size_t>(fetch_end::finished)].add();
            co_return;
        }
        lease_.close();
        control_->reading = nullptr;
        refetch_ = unconditional_ = true;
        co_return;
    }
    if (!o.resume_etag.empty() && head_.status != 206) {
        fail(failure{
            failure_code::response_cut_short, false, "the object changed while it was being sent"});
        co_return;
    }
    if (o.described) {
        adopt_head();
    }
    publish_head(*framing);
    lease_.buffer().consume(head_.bytes);
    std::string trailers;
    if (framing->kind != body_kind::none) {
        const bool whole = co_await read_body(*framing, trailers);
        if (!whole) {
            co_return;
        }
    }
    patience_.clear();
    co_await settle_upload();
    record_sights();
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
    give_back(*framing);
}

awaitable<void> producer::run() {
    // Posting is all that the stop function may do: it is called under the fetch's lock, on any
    // thread.
    auto stop = [control = control_, ex = w_.io.get_executor()] {
        net::post(ex, [control] {
            if (control->reading != nullptr) {
                error_code ignored;
                control->reading->cancel(ignored);
            }
        });
    };
    into_.producer_is(ready_.handle(), std::move(stop));
    std::optional<failure> broken;
    try {
        do {  // twice at most: the second request does not validate
            refetch_ = false;
            co_await fetch_once();
        } while (refetch_);
    } catch (const std::bad_alloc&) {
        broken = failure{failure_code::out_of_memory, false, ""};
    } catch (const std::exception& what) {
        broken = failure{failure_code::internal, false, what.what()};
    }
    if (broken) {
        fail(std::move(*broken));
    }
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

awaitable<void> run_producer(worker& w, std::shared_ptr<fetch_order> order) {
    producer one{w, std::move(order)};
    co_await one.run();
}

}  // namespace

void start_producer(worker& w, std::shared_ptr<fetch_order> order) {
    w.counts.fetches_started.add();
    auto into = order->into;
    auto on_end = [into](std::exception_ptr broken) {
        if (broken) {
            into->producer_left();
            into->producer_fail(
                failure{failure_code::internal, false, "an exception in the fetch"});
            log::error("a fetch ended by an exception");
        }
    };
    net::co_spawn(w.io, run_producer(w, std::move(order)), std::move(on_end));
}

}  // namespace reprise::proxy
