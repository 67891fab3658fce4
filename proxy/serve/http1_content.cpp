#include "proxy/serve/http1_content.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>

#include <algorithm>
#include <utility>

namespace reprise::proxy::serve {

namespace {
// Of an input whose memory was given back meanwhile, or that has hardly any: a byte at a time would do else.
constexpr std::size_t least_room = 4u << 10;
}  // namespace

http1_content::http1_content(net::client_stream& from,
                             const http::body_framing& framing,
                             const http::chunked_limits& limits)
    : from_{&from},
      decoder_{limits},
      is_counted_{framing.kind != http::body_kind::chunked},
      left_{framing.kind == http::body_kind::length ? framing.length : 0} {}

// The input's bytes stay where they are when they are consumed: the buffer only forgets them.
fetch::content_source::piece http1_content::take(std::size_t most) {
    const auto here = from_->input().data();
    piece one;
    if (is_counted_) {
        one.data = here.substr(
            0, static_cast<std::size_t>(std::min<std::uint64_t>({left_, most, here.size()})));
        one.taken = one.data.size();
        left_ -= one.taken;
    } else {
        const auto step = decoder_.feed(here.substr(0, most));
        if (step.error != nullptr) {
            one.error = step.error;
            return one;
        }
        one.data = step.data;
        one.taken = step.consumed;
        last_chunk_taken_ = step.done;
        if (step.done) {
            one.trailers = decoder_.trailers();
        }
    }
    from_->input().consume(one.taken);
    return one;
}

awaitable<std::size_t> http1_content::fill(std::size_t most, asio::cancellation_slot given_up) {
    const auto room = from_->input().prepare(std::min(most, least_room));
    const auto into = asio::buffer(room.data(), std::min(room.size(), most));
    auto token = asio::bind_cancellation_slot(given_up, use_tuple);
    const auto [error, got] = co_await from_->socket().async_read_some(into, std::move(token));
    if (from_ == nullptr) {
        co_return 0;
    }
    // The wait may have been ended since the bytes were read: they have left the socket all the same.
    from_->note_read(got);
    co_return got;
}

void http1_content::hold() noexcept {
    held_ = std::move(from_->input());
}

void http1_content::release() noexcept {
    from_->input() = std::move(held_);
}

}  // namespace reprise::proxy::serve
