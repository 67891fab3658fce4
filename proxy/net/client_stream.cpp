#include "proxy/net/client_stream.hpp"

#include <sys/socket.h>

namespace reprise::proxy::net {

client_stream::client_stream(tcp_socket socket, deadlines& timer)
    : socket_{std::move(socket)},
      patience_{timer,
                [this] {
                    error_code ignored;
                    socket_.cancel(ignored);
                }},
      // Who sends is not gone, were it that it reads nothing of an early answer until all is sent.
      taking_{timer,
              [this] { return acknowledged() + bytes_in_; },
              [this] {
                  error_code ignored;
                  socket_.cancel(ignored);
              }} {
    prepare_socket(socket_);
}

client_stream::~client_stream() {
    close();
}

awaitable<client_stream::read_end> client_stream::read(std::size_t most) {
    if (patience_.expired()) {
        co_return read_end::timed_out;
    }
    const auto room = input_.prepare(1);
    const auto size = std::min(room.size(), most);
    const auto [error, got] = co_await socket_.async_read_some(asio::buffer(room.data(), size),
                                                               use_tuple);
    if (got > 0) {
        input_.commit(got);
        bytes_in_ += got;
        co_return read_end::some;
    }
    if (patience_.expired()) {
        co_return read_end::timed_out;
    }
    if (error) {
        failed_ = true;
    }
    co_return read_end::closed;
}

bool client_stream::read_now(std::size_t most) {
    const auto room = input_.prepare(1);
    error_code error;
    const auto got = try_read(
        socket_, asio::buffer(room.data(), std::min(room.size(), most)), error);
    input_.commit(got);
    bytes_in_ += got;
    return got > 0;
}

namespace {
// Removes the first `bytes` of a list of buffers.
void drop_front(std::vector<asio::const_buffer>& parts, std::size_t bytes) {
    std::size_t whole = 0;
    while (whole < parts.size() && bytes >= parts[whole].size()) {
        bytes -= parts[whole].size();
        ++whole;
    }
    parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(whole));
    if (bytes > 0 && !parts.empty()) {
        parts.front() += bytes;
    }
}
}  // namespace

bool client_stream::send_now(std::vector<asio::const_buffer>& parts) {
    while (!parts.empty() && !failed_) {
        error_code error;
        const auto sent = try_write(socket_, parts, error);
        bytes_out_ += sent;
        if (error) {
            failed_ = true;
            break;
        }
        if (sent == 0) {
            return asio::buffer_size(parts) == 0;
        }
        drop_front(parts, sent);
    }
    return true;
}

awaitable<bool> client_stream::send(std::vector<asio::const_buffer>& parts,
                                    std::uint64_t bytes_per_second,
                                    std::chrono::milliseconds timeout) {
    if (send_now(parts)) {
        co_return !failed_;
    }
    taking_.begin(bytes_per_second, timeout);
    while (!parts.empty()) {
        const auto [error, sent] = co_await socket_.async_write_some(parts, use_tuple);
        bytes_out_ += sent;
        if (error || taking_.expired()) {
            failed_ = true;
            break;
        }
        drop_front(parts, sent);
    }
    taking_.end();
    co_return !failed_;
}

std::uint64_t client_stream::acknowledged() noexcept {
    return link_ ? link_->acknowledged() : bytes_out_ - not_acknowledged(socket_);
}

void client_stream::reply_is_whole() noexcept {
    whole_until_ = bytes_out_;
    if (resets_) {
        resets_ = false;
        set_reset_on_close(socket_, false);
    }
}

void client_stream::reply_ends_by_closing() noexcept {
    if (!link_) {  // whose own socket is set so as long as it has not said the end
        resets_ = true;
        set_reset_on_close(socket_, true);
    }
}

void client_stream::close() noexcept {
    if (reply_under_way() && socket_.is_open()) {
        break_off();
        return;
    }
    error_code ignored;
    socket_.close(ignored);
}

bool client_stream::client_left() {
    char byte = 0;
    const auto got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0) {
        return false;
    }
    return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void client_stream::break_off() noexcept {
    failed_ = true;
    if (link_) {
        link_->break_off();
    }
    if (socket_.is_open()) {
        set_reset_on_close(socket_, true);
    }
    error_code ignored;
    socket_.close(ignored);
}

}  // namespace reprise::proxy::net
