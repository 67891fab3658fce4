#include "proxy/fetch/upload.hpp"

#include "proxy/http/chunked.hpp"
#include "proxy/net/io.hpp"

#include <algorithm>
#include <string>
#include <utility>

// A client's bytes go out from where they were read, and the origin may take longer than the client lives. So an exchange
// that ends meanwhile (abandoned_) leaves them to this, and every await is followed by that question.

namespace reprise::proxy::fetch {

namespace {
constexpr std::size_t piece_size = 64u << 10;
}  // namespace

upload::upload(std::unique_ptr<content_source> from,
               const config::options& options,
               bool asks_first,
               net::deadlines& timer)
    : from_{std::move(from)},
      executor_{timer.io().get_executor()},
      bytes_per_second_{options.limits.body_rate},
      timeout_{options.timeouts.client_body},
      patience_{timer, [this] { cancel_.emit(asio::cancellation_type::total); }},
      over_for_producer_{timer},
      over_for_exchange_{timer},
      asks_first_{asks_first} {}

awaitable<upload::phase> upload::fill() {
    if (patience_.expired()) {
        co_return phase::client_failed;
    }
    const auto got = co_await from_->fill(piece_size, cancel_.slot());
    if (abandoned_ || stopping_) {
        co_return phase::stopped;
    }
    if (got == 0) {
        co_return phase::client_failed;
    }
    go();  // it does not wait any longer
    patience_.progress(got);
    co_return phase::running;
}

awaitable<upload::phase> upload::send(net::byte_stream& origin,
                                      std::array<asio::const_buffer, 3> parts) {
    const auto began = steady_now();
    from_->hold();
    const auto error = co_await net::write_all(origin, parts);
    if (abandoned_) {
        co_return phase::stopped;
    }
    from_->release();
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

// What nobody said the length of is framed anew: no odd form of a client's reaches the origin.
awaitable<upload::phase> upload::send_chunk(net::byte_stream& origin, content_source::piece one) {
    if (one.data.empty() && !from_->is_over()) {
        co_return phase::running;
    }
    std::string frame;
    std::string last;
    if (!one.data.empty()) {
        http::append_chunk_header(frame, one.data.size());
        last = "\r\n";
    }
    if (from_->is_over()) {
        http::append_last_chunk(last, one.trailers);
    }
    const std::array<asio::const_buffer, 3> parts{
        asio::buffer(frame), asio::buffer(one.data.data(), one.data.size()), asio::buffer(last)};
    co_return co_await send(origin, parts);
}

// A piece is consumed before it is sent: what the origin did not take is lost to it either way.
awaitable<upload::phase> upload::pass_piece(net::byte_stream* origin) {
    const auto one = from_->take(piece_size);
    if (one.error != nullptr) {
        why_ = failure{failure_code::bad_request, one.error};
        co_return phase::bad_framing;
    }
    taken_ += one.taken;
    if (origin == nullptr) {
        co_return phase::running;
    }
    if (!from_->is_counted()) {
        co_return co_await send_chunk(*origin, one);
    }
    const std::array<asio::const_buffer, 3> parts{asio::buffer(one.data)};
    co_return co_await send(*origin, parts);
}

// One loop for both uses: with an origin the body is sent on, without one it is dropped.
awaitable<void> upload::pass(net::byte_stream* origin, std::uint64_t most) {
    phase_ = phase::running;
    taken_ = 0;
    if (from_->has_some() || origin == nullptr) {
        asks_first_ = false;
    }
    if (asks_first_) {
        patience_.expire_at(steady_time::max());
    } else {
        begin_patience();
    }
    auto how = phase::running;
    while (how == phase::running) {
        if (from_->is_over()) {
            how = phase::done;
        } else if (stopping_ || taken_ > most) {
            how = phase::stopped;
        } else if (!from_->has_some()) {
            how = co_await fill();
        } else {
            how = co_await pass_piece(origin);
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
    from_->leave();
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
    auto& wakeup = who == waiter::producer ? over_for_producer_ : over_for_exchange_;
    while (phase_ == phase::running) {
        const bool signalled = co_await wakeup.wait(steady_time::max());
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
