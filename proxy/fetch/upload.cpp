#include "proxy/fetch/upload.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>

#include <algorithm>
#include <string>
#include <utility>

// The client's buffer is lent while its bytes are written: they go out from where they were read. So
// an exchange that ends meanwhile (abandoned_) takes nothing back, and every await is followed by
// that question.

namespace reprise::proxy::fetch {

namespace {
constexpr std::size_t piece_size = 64u << 10;
}  // namespace

upload::upload(net::client_stream& client,
               const http::body_framing& framing,
               const config::options& options,
               bool asks_first,
               net::deadlines& timer)
    : client_{client},
      executor_{client.socket().get_executor()},
      framing_{framing},
      decoder_{{options.limits.head_size, options.limits.fields}},
      bytes_per_second_{options.limits.body_rate},
      timeout_{options.timeouts.client_body},
      patience_{timer, [this] { cancel_.emit(asio::cancellation_type::total); }},
      over_for_producer_{timer},
      over_for_exchange_{timer},
      asks_first_{asks_first},
      left_{framing.kind == http::body_kind::length ? framing.length : 0} {}

awaitable<upload::phase> upload::fill() {
    if (patience_.expired()) {
        co_return phase::client_failed;
    }
    const auto room = client_.input().prepare(1);
    const auto into = asio::buffer(room.data(), std::min(room.size(), piece_size));
    auto token = asio::bind_cancellation_slot(cancel_.slot(), use_tuple);
    const auto [error, got] = co_await client_.socket().async_read_some(into, std::move(token));
    if (abandoned_) {
        co_return phase::stopped;
    }
    // It may have been stopped since the bytes were read: they have left the socket all the same.
    client_.note_read(got);
    if (stopping_) {
        co_return phase::stopped;
    }
    if (got == 0) {
        co_return phase::client_failed;
    }
    go();  // it does not wait any longer
    patience_.progress(got);
    co_return phase::running;
}

void upload::take(std::size_t bytes) {
    client_.input().consume(bytes);
    taken_ += bytes;
}

awaitable<upload::phase> upload::send(net::byte_stream& origin,
                                      std::array<asio::const_buffer, 3> parts) {
    const auto began = steady_now();
    lent_ = std::move(client_.input());
    const auto error = co_await net::write_all(origin, parts);
    if (abandoned_) {
        co_return phase::stopped;
    }
    client_.input() = std::move(lent_);
    if (error) {
        co_return phase::origin_failed;
    }
    // Waiting for the origin is no fault of the client: its time begins anew after that, and only
    // then, or every piece of a slow drip would begin it anew.
    if (steady_now() - began > std::chrono::milliseconds{100}) {
        begin_patience();
    }
    passed_on_ += asio::buffer_size(parts);
    co_return phase::running;
}

// A piece is consumed before it is sent: what the origin did not take is lost to it either way.
awaitable<upload::phase> upload::pass_counted(net::byte_stream* origin) {
    const auto piece = client_.input().data().substr(
        0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, piece_size)));
    take(piece.size());
    left_ -= piece.size();
    if (origin == nullptr) {
        co_return phase::running;
    }
    const std::array<asio::const_buffer, 3> parts{asio::buffer(piece)};
    co_return co_await send(*origin, parts);
}

awaitable<upload::phase> upload::pass_chunk(net::byte_stream* origin) {
    const auto step = decoder_.feed(client_.input().data().substr(0, piece_size));
    if (step.error != nullptr) {
        why_ = failure{failure_code::bad_request, step.error};
        co_return phase::bad_framing;
    }
    take(step.consumed);
    last_chunk_taken_ = step.done;
    if (origin != nullptr && (!step.data.empty() || step.done)) {
        std::string frame;
        std::string last;
        if (!step.data.empty()) {
            http::append_chunk_header(frame, step.data.size());
            last = "\r\n";
        }
        if (step.done) {
            http::append_last_chunk(last, decoder_.trailers());
        }
        const std::array<asio::const_buffer, 3> parts{
            asio::buffer(frame),
            asio::buffer(step.data.data(), step.data.size()),
            asio::buffer(last)};
        const auto sent = co_await send(*origin, parts);
        if (sent != phase::running) {
            co_return sent;
        }
    }
    co_return phase::running;
}

// One loop for both uses: with an origin the body is sent on, without one it is dropped.
awaitable<void> upload::pass(net::byte_stream* origin, std::uint64_t most) {
    phase_ = phase::running;
    taken_ = 0;
    if (!client_.input().empty() || origin == nullptr) {
        asks_first_ = false;
    }
    if (asks_first_) {
        patience_.expire_at(steady_time::max());
    } else {
        begin_patience();
    }
    const bool counted = framing_.kind == http::body_kind::length;
    auto how = phase::running;
    while (how == phase::running) {
        if (counted ? left_ == 0 : last_chunk_taken_) {
            how = phase::done;
        } else if (stopping_ || taken_ > most) {
            how = phase::stopped;
        } else if (client_.input().empty()) {
            how = co_await fill();
        } else if (counted) {
            how = co_await pass_counted(origin);
        } else {
            how = co_await pass_chunk(origin);
        }
    }
    end(how);
    tell_ended();
}

void upload::tell_ended() {
    patience_.clear();
    outlived_.close();
    over_for_producer_.notify();
    over_for_exchange_.notify();
}

void upload::give_up() {
    if (phase_ == phase::running || phase_ == phase::untouched) {
        threw_ = true;
        end(phase::origin_failed);
        tell_ended();
    }
}

void upload::abandon() {
    stop();
    abandoned_ = true;
    patience_.clear();
}

void upload::outlive(net::origin_lease origin) {
    error_code ignored;
    origin.socket().close(ignored);
    stop();
    outlived_ = std::move(origin);
}

awaitable<void> upload::run(std::shared_ptr<upload> self, net::byte_stream& origin) {
    co_await self->pass(&origin, ~std::uint64_t{0});
}

void upload::go() {
    if (std::exchange(asks_first_, false) && phase_ == phase::running && !stopping_) {
        begin_patience();
    }
}

// What a reading has put into the slot stays there behind it, and speaks of the client's socket, which may have gone
// when this is abandoned.
void upload::stop() {
    stopping_ = true;
    if (!abandoned_) {
        cancel_.emit(asio::cancellation_type::total);
    }
}

awaitable<void> upload::over(waiter who) {
    auto& news = who == waiter::producer ? over_for_producer_ : over_for_exchange_;
    while (phase_ == phase::running) {
        const bool signalled = co_await news.wait(steady_time::max());
        if (!signalled && phase_ == phase::running) {
            co_await asio::post(executor_, asio::use_awaitable_t<executor>{});
        }
    }
}

awaitable<ended> upload::drain(std::shared_ptr<upload> self, std::uint64_t most) {
    if (self->threw_) {
        co_return ended::close;  // where in the body it stands nobody knows
    }
    if (self->phase_ == phase::stopped || self->phase_ == phase::origin_failed) {
        // What was taken is gone, and the framing knows how much is left: go on from there.
        self->phase_ = phase::untouched;
    }
    if (self->phase_ == phase::untouched) {
        self->stopping_ = false;
        co_await self->pass(nullptr, most);
    }
    co_return self->phase_ == phase::done ? ended::keep : ended::close;
}

}  // namespace reprise::proxy::fetch
