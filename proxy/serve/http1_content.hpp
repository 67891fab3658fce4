#pragma once
// A request's content as HTTP/1.1 frames it: so many bytes of the connection's input, or chunks of them
// (RFC 9112 6.3). What stands behind it there is the next request's.

#include "proxy/fetch/content_source.hpp"
#include "proxy/http/chunked.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/net/client_stream.hpp"

#include <cstdint>

namespace reprise::proxy::serve {

/// Threads   its worker's.
/// Cost      what comes is decoded where it was read, and copied nowhere.
class http1_content final : public fetch::content_source {
public:
    /// `from` outlives it, or leave().
    http1_content(net::client_stream& from,
                  const http::body_framing& framing,
                  const http::chunked_limits& limits);

    bool is_counted() const noexcept override { return is_counted_; }
    bool is_over() const noexcept override { return is_counted_ ? left_ == 0 : last_chunk_taken_; }
    bool has_some() const noexcept override { return from_ != nullptr && !from_->input().empty(); }
    piece take(std::size_t most) override;
    awaitable<std::size_t> fill(std::size_t most, asio::cancellation_slot given_up) override;
    void hold() noexcept override;
    void release() noexcept override;
    void leave() noexcept override { from_ = nullptr; }

private:
    net::client_stream* from_;  // null: it is not to be touched
    net::read_buffer held_;     // the input, while a piece of it is sent
    http::chunked_decoder decoder_;
    const bool is_counted_;
    bool last_chunk_taken_ = false;
    std::uint64_t left_;  // where it is counted
};

}  // namespace reprise::proxy::serve
