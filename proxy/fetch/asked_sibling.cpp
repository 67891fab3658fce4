#include "proxy/fetch/asked_sibling.hpp"

#include "proxy/cache/recency.hpp"
#include "proxy/fetch/outdated.hpp"
#include "proxy/fetch/sibling_answer.hpp"
#include "proxy/net/coroutine.hpp"
#include "proxy/net/io.hpp"
#include "proxy/thread/worker.hpp"

#include <algorithm>
#include <utility>

// A connection, a request, a head: each may be the last thing that the sibling does for us, and its
// timer closes the socket under whichever it is.

namespace reprise::proxy::fetch {

using peer::asking_end;

namespace {

constexpr std::size_t answer_read_size = 16u << 10;

std::chrono::microseconds since(steady_time start) {
    return std::chrono::duration_cast<std::chrono::microseconds>(steady_now() - start);
}

}  // namespace

asked_sibling::asked_sibling(thread::worker& w,
                             std::shared_ptr<const sibling_question> question,
                             std::shared_ptr<const peer::known_peer> whom,
                             unsigned slot)
    : w_{w},
      question_{std::move(question)},
      reply_{std::make_unique<sibling_reply>()},
      timer_{w.io},
      begun_{steady_now()},
      patience_{w.common.peers->siblings().benefit_of(slot).patience(
          question_->settings->options.peering.budget)},
      patient_until_{begun_ + patience_} {
    reply_->from = std::move(whom);
    reply_->slot = slot;
}

asked_sibling::~asked_sibling() = default;

void asked_sibling::begin(std::function<void(asked_sibling&)> ended) {
    ended_ = std::move(ended);
    begin_its_time();
    auto work = [](std::shared_ptr<asked_sibling> self) -> awaitable<void> {
        co_await self->run();
    };
    // Whoever waits for it is held no longer than it waits.
    auto on_end = [self = shared_from_this()](std::exception_ptr) {
        std::exchange(self->ended_, nullptr)(*self);
    };
    net::begin_coroutine(w_.io, work(shared_from_this()), std::move(on_end));
}

void asked_sibling::begin_its_time() {
    timer_.expires_at(begun_ + reply_->from->timeout);
    auto on_time = [self = weak_from_this()](const error_code& cancelled) {
        // One that is in the loop's queue already is not cancelled any more.
        if (const auto here = self.lock();
            here && !cancelled && !here->end_ && here->timer_.expiry() <= steady_now()) {
            here->leave();
        }
    };
    timer_.async_wait(std::move(on_time));
}

void asked_sibling::leave() {
    is_late_ = true;
    reply_->took = since(begun_);
    timer_.cancel();
    if (reply_->lease) {
        error_code ignored;
        reply_->lease.socket().close(ignored);
    }
}

void asked_sibling::count(asking_end as, peer::said_so_far what) const {
    auto& table = w_.common.peers->siblings();
    const auto bytes = as == asking_end::true_hit ? 0 : reply_->bytes;
    table.benefit_of(reply_->slot)
        .ended(as, reply_->took, table.hit_gives(), bytes, steady_now(), what);
}

void asked_sibling::count_late_at_work() const {
    auto& its = w_.common.peers->siblings().benefit_of(reply_->slot);
    if (!its.is_excused(begun_, steady_now())) {
        count(asking_end::timed_out, peer::said_so_far::an_answer);
    }
}

awaitable<void> asked_sibling::run() {
    const auto end = co_await ask();
    timer_.cancel();
    reply_->took = since(begun_);
    end_ = end;
}

// None: it was not asked, by our own lack: most often all our connections to it, or this client's, are in use.
awaitable<std::optional<asking_end>> asked_sibling::ask() {
    const auto& whom = *reply_->from;
    const net::origin_address to{whom.host, whom.port, true, whom.https};
    for (const bool fresh_only : {false, true}) {
        reply_->lease = fresh_only ? net::origin_lease{}
                                   : w_.origins.try_acquire(to, question_->charged_to);
        if (!reply_->lease) {
            is_in_line_ = w_.origins.must_wait(to, question_->charged_to);
            const auto until = begun_ + whom.timeout;
            auto leased = co_await w_.origins.acquire(to, fresh_only, until, question_->charged_to);
            const bool was_in_line = std::exchange(is_in_line_, false);
            const bool had_no_time = steady_now() >= until;
            if (was_in_line && !is_late_) {
                // Its time begins now; what came before was our own doing.
                begun_ = steady_now();
                patient_until_ = begun_ + patience_;
                begin_its_time();
            }
            if (is_late_) {
                if (leased) {
                    leased->give_back();
                }
                co_return was_in_line ? std::nullopt : std::optional{asking_end::timed_out};
            }
            if (!leased && had_no_time && was_in_line) {
                co_return std::nullopt;  // what there was of it was our own doing
            }
            if (!leased && is_our_own_lack(leased.error().code)) {
                co_return std::nullopt;
            }
            if (!leased) {
                // Where the loop was held up the dial's end comes ahead of the timer's.
                co_return had_no_time ? asking_end::timed_out : asking_end::failed;
            }
            reply_->lease = std::move(*leased);
        }
        const bool reused = reply_->lease.reused();
        if (reused && !fresh_only && !whom.where.may_be(reply_->lease.endpoint())) {
            reply_->lease.close();  // whose digest it is stands elsewhere now
            continue;
        }
        const auto end = co_await exchange_heads();
        if (is_late_) {
            reply_->lease.close();
            co_return asking_end::timed_out;
        }
        // The connection ended before a byte of the answer: it may have been left idle for too long.
        if (end == asking_end::failed && !heard_ && reused && !fresh_only) {
            reply_->lease.close();
            continue;
        }
        co_return end;
    }
    co_return asking_end::failed;
}

awaitable<asking_end> asked_sibling::exchange_heads() {
    auto& socket = reply_->lease.socket();
    auto& buffer = reply_->lease.buffer();
    reply_->asked_at = wall_now();
    reply_->sent_at = steady_now();
    reply_->turn = cache::next_turn();
    const auto unsent = co_await net::write_all(socket, asio::buffer(wire()));
    if (!unsent) {
        w_.counts.bytes_to_origins.add(wire().size());
        reply_->bytes += wire().size();
    }
    std::size_t resume = 0;
    unsigned interim = 0;
    for (;;) {
        if (!buffer.empty()) {
            // The first of it says that it lives, and buys the rest some time.
            if (!std::exchange(heard_, true)) {
                patient_until_ = steady_now() + patience_;
            }
            const auto parsed = http::parse_response_head(
                buffer.data(), reply_->head, question_->settings->response_limits, resume);
            if (parsed.state == http::head_state::bad) {
                co_return asking_end::failed;
            }
            if (parsed.state == http::head_state::done) {
                resume = 0;
                if (reply_->head.status < 200) {
                    if (reply_->head.status == 101 || ++interim > most_interim) {
                        co_return asking_end::failed;
                    }
                    at_work_ = at_work_ || reply_->head.status == 102;
                    buffer.consume(reply_->head.bytes);
                    continue;
                }
                if (const auto end = judge()) {
                    co_return *end;
                }
            } else {
                resume = parsed.resume;
            }
        }
        if (is_late_) {
            co_return asking_end::timed_out;
        }
        const auto space = buffer.prepare(answer_read_size);
        const auto into = asio::buffer(space.data(), space.size());
        const auto [failed, got] = co_await socket.async_read_some(into, use_tuple);
        w_.counts.bytes_from_origins.add(got);
        reply_->bytes += got;
        buffer.commit(got);
        if (got == 0) {
            co_return asking_end::failed;
        }
    }
}

// It may know of no unsafe method, or purge, that went through here, nor of what came since.
bool asked_sibling::is_outdated(std::chrono::seconds age) const {
    const auto& held = question_->held;
    if (held && cache::is_dated_before(reply_->head.fields, wall_now(), *held)) {
        return true;
    }
    return may_be_outdated(w_.common.store,
                           question_->key,
                           question_->url,
                           reply_->lease.buffer().data().substr(0, reply_->head.bytes),
                           reply_->sent_at,
                           age);
}

// None: it would be an answer, but nothing of its body is there yet. A sibling that breaks off
// before that has answered nothing: the next source's whole answer serves, head and all.
std::optional<asking_end> asked_sibling::judge() {
    auto& lease = reply_->lease;
    const sibling_terms terms{.request = wire(),
                              .asked = question_->asked,
                              .rules = *question_->rules,
                              .targeted = question_->settings->options.targeted,
                              .max_age = reply_->from->max_age,
                              .sent = reply_->asked_at,
                              .came = wall_now()};
    const auto said = judge_sibling_answer(reply_->head, lease.buffer().size(), terms);
    if (!said.is_framed) {
        return asking_end::failed;
    }
    if (said.age && !is_outdated(*said.age)) {
        return said.has_begun ? std::optional{asking_end::true_hit} : std::nullopt;
    }
    // The page that says no has come along with its head: the connection serves again.
    if (said.frees_connection) {
        lease.buffer().consume(lease.buffer().size());
        lease.give_back();
    } else if (said.has_surplus) {
        lease.note_surplus();
    }
    return asking_end::false_hit;
}

}  // namespace reprise::proxy::fetch
