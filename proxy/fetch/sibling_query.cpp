#include "proxy/fetch/sibling_query.hpp"

#include "proxy/cache/memory/tags.hpp"
#include "proxy/cache/recency.hpp"
#include "proxy/fetch/sibling_answer.hpp"
#include "proxy/net/io.hpp"
#include "proxy/thread/worker.hpp"

#include <boost/asio/co_spawn.hpp>

#include <algorithm>
#include <utility>

namespace reprise::proxy::fetch {

using peer::asking_end;

namespace {

constexpr std::size_t answer_read_size = 16u << 10;

std::chrono::microseconds since(steady_time start) {
    return std::chrono::duration_cast<std::chrono::microseconds>(steady_now() - start);
}

/// How much older something may be than its Age says: that is in whole seconds, rounded down when
/// it was stored and again when it was sent.
constexpr std::chrono::seconds age_error{2};

}  // namespace

sibling_query::sibling_query(thread::worker& w,
                             question asked,
                             std::function<void(const sibling_query&)> told)
    : w_{w},
      asked_{std::move(asked)},
      told_{std::move(told)},
      timer_{w.io} {}

sibling_query::~sibling_query() = default;

void sibling_query::begin() {
    auto work = [](std::shared_ptr<sibling_query> self) -> awaitable<void> {
        co_await self->run();
    };
    auto on_end = [self = shared_from_this()](std::exception_ptr) {
        self->over_ = true;
        self->told_(*self);
    };
    asio::co_spawn(w_.io, work(shared_from_this()), std::move(on_end));
}

void sibling_query::close() {
    if (asking_ && asking_->lease) {
        error_code ignored;
        asking_->lease.socket().close(ignored);
    }
}

void sibling_query::abandon(reason why) {
    abandoned_ = true;
    outrun_ = why == reason::outrun;
    late_ = true;
    timer_.cancel();
    close();
    if (const auto unused = std::exchange(answer_, nullptr)) {
        count(*unused, outrun_ ? asking_end::timed_out : asking_end::true_hit);
    }
}

void sibling_query::count(const answer& one, asking_end end) const {
    auto& table = w_.common.peers->siblings();
    const auto bytes = end == asking_end::true_hit ? 0 : one.bytes;
    const bool has_answered = &one != asking_.get();
    table.benefit_of(one.slot).ended(
        end, one.took, table.hit_gives(), bytes, steady_now(), has_answered);
}

awaitable<void> sibling_query::run() {
    for (const auto slot : asked_.whom) {
        const auto& one = asked_.book->siblings[slot];
        if (abandoned_ || w_.timer.stopped()) {
            break;
        }
        if (!one) {
            continue;
        }
        asking_ = std::make_unique<answer>();
        asking_->from = one;
        asking_->slot = slot;
        const auto started = steady_now();
        late_ = at_work_ = false;
        timer_.expires_at(started + one->timeout);
        auto on_time = [self = weak_from_this(), turn = ++turn_](const error_code& cancelled) {
            // One that is in the loop's queue already is not cancelled any more.
            if (const auto here = self.lock(); here && !cancelled && here->turn_ == turn) {
                here->late_ = true;
                here->close();
            }
        };
        timer_.async_wait(std::move(on_time));
        const auto end = co_await ask(*one);
        timer_.cancel();
        asking_->took = since(started);
        if (end == asking_end::true_hit && !abandoned_) {
            answer_ = std::move(asking_);
            co_return;
        }
        const bool is_origins = at_work_ && end == asking_end::timed_out;
        if (end && (!abandoned_ || outrun_) && !is_origins) {
            count(*asking_, *end);
        }
        asking_.reset();
    }
}

// None: it was not asked, since all our connections to it, or this client's, are in use.
awaitable<std::optional<asking_end>> sibling_query::ask(const peer::known_peer& one) {
    const auto until = steady_now() + one.timeout;
    const net::origin_address to{one.host, one.port, true, one.https};
    for (const bool fresh_only : {false, true}) {
        asking_->lease = fresh_only ? net::origin_lease{}
                                    : w_.origins.try_acquire(to, asked_.charged_to);
        if (!asking_->lease) {
            auto leased = co_await w_.origins.acquire(to, fresh_only, until, asked_.charged_to);
            if (late_ || abandoned_) {
                if (leased) {
                    leased->give_back();
                }
                co_return asking_end::timed_out;
            }
            if (!leased && (leased.error().code == failure_code::origin_connection_limit ||
                            leased.error().code == failure_code::client_share_used)) {
                co_return std::nullopt;
            }
            if (!leased) {
                co_return asking_end::failed;
            }
            asking_->lease = std::move(*leased);
        }
        const bool reused = asking_->lease.reused();
        bool silent = false;
        const auto end = co_await exchange_heads(silent);
        if (late_ || abandoned_) {
            asking_->lease.close();
            co_return asking_end::timed_out;
        }
        if (end == asking_end::failed && silent && reused && !fresh_only) {
            asking_->lease.close();
            continue;
        }
        co_return end;
    }
    co_return asking_end::failed;
}

// `silent`: the connection ended before a byte of the answer.
awaitable<asking_end> sibling_query::exchange_heads(bool& silent) {
    auto& socket = asking_->lease.socket();
    auto& buffer = asking_->lease.buffer();
    asking_->asked_at = wall_now();
    asking_->sent_at = steady_now();
    asking_->turn = cache::next_turn();
    const auto unsent = co_await net::write_all(socket, asio::buffer(wire()));
    if (!unsent) {
        w_.counts.bytes_to_origins.add(wire().size());
        asking_->bytes += wire().size();
    }
    silent = true;
    std::size_t resume = 0;
    unsigned interim = 0;
    for (;;) {
        if (!buffer.empty()) {
            silent = false;
            const auto parsed = http::parse_response_head(
                buffer.data(), asking_->head, asked_.settings->response_limits, resume);
            if (parsed.state == http::head_state::bad) {
                co_return asking_end::failed;
            }
            if (parsed.state == http::head_state::done) {
                resume = 0;
                if (asking_->head.status < 200) {
                    if (asking_->head.status == 101 || ++interim > most_interim) {
                        co_return asking_end::failed;
                    }
                    at_work_ = at_work_ || asking_->head.status == 102;
                    buffer.consume(asking_->head.bytes);
                    continue;
                }
                if (const auto end = judge()) {
                    co_return *end;
                }
            } else {
                resume = parsed.resume;
            }
        }
        if (late_ || abandoned_) {
            co_return asking_end::timed_out;
        }
        const auto space = buffer.prepare(answer_read_size);
        const auto into = asio::buffer(space.data(), space.size());
        const auto [failed, got] = co_await socket.async_read_some(into, use_tuple);
        w_.counts.bytes_from_origins.add(got);
        asking_->bytes += got;
        buffer.commit(got);
        if (got == 0) {
            co_return asking_end::failed;
        }
    }
}

// Whether the sibling stored it before an unsafe method, or a purge, went through here. It may know
// of neither.
bool sibling_query::is_outdated(std::chrono::seconds age) const {
    auto lines = asking_->lease.buffer().data().substr(0, asking_->head.bytes);
    lines.remove_prefix(std::min(lines.find("\r\n") + 2, lines.size()));
    return w_.common.store.invalidated_since(
        asked_.key, asked_.url, cache::read_tags(lines), asking_->asked_at - age - age_error);
}

// None: it would be an answer, but nothing of its body is there yet. A sibling that breaks off
// before that has answered nothing: the next source's whole answer serves, head and all.
std::optional<asking_end> sibling_query::judge() {
    auto& lease = asking_->lease;
    const sibling_terms terms{.request = wire(),
                              .asked = asked_.asked,
                              .rules = *asked_.rules,
                              .targeted = asked_.settings->options.targeted,
                              .max_age = asking_->from->max_age,
                              .sent = asking_->asked_at,
                              .came = wall_now()};
    const auto said = judge_sibling_answer(asking_->head, lease.buffer().size(), terms);
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
    }
    return asking_end::false_hit;
}

}  // namespace reprise::proxy::fetch
