#include "proxy/net/client_stream.hpp"

#include "proxy/base/relaxed.hpp"

#include <boost/beast/core/buffers_prefix.hpp>

#include <utility>

// There are two ways out: send_now() and send() for a client without a limit, and their likes with
// `share` in the name for one that waits its turn. Both try the kernel first, and guard the
// client's pace only while they wait.

namespace reprise::proxy::net {

client_stream::client_stream(byte_stream stream, deadlines& timer)
    : socket_{std::move(stream)},
      patience_{timer, [this] {
                    error_code ignored;
                    socket_.cancel(ignored);
                }} {}

client_stream::~client_stream() {
    close();
}

pace_guard& client_stream::taking() {
    if (!taking_) {
        // A client that still sends is not gone, even if it reads nothing before it has sent all.
        taking_ = std::make_unique<pace_guard>(
            patience_.all(),
            [this] { return acknowledged() + bytes_in_; },
            [this] {
                error_code ignored;
                socket_.cancel(ignored);
            });
    }
    return *taking_;
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

awaitable<client_stream::read_end> client_stream::read_lean(std::size_t most) {
    constexpr std::size_t at_once = 4096;
    input_.trim();
    error_code error;
    while (!error && !patience_.expired()) {
        const auto [waited] = co_await socket_.wait_readable(use_tuple);
        error = waited;
        if (error || patience_.expired()) {
            break;
        }
        const auto room = input_.prepare(std::min(at_once, most));
        const auto got = socket_.try_read(asio::buffer(room.data(), std::min(room.size(), most)),
                                          error);
        if (got > 0) {
            input_.commit(got);
            bytes_in_ += got;
            co_return read_end::some;
        }
        input_.trim();
    }
    if (patience_.expired()) {
        co_return read_end::timed_out;
    }
    failed_ = true;
    co_return read_end::closed;
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

void client_stream::limit_to(client_bucket_ptr whose, counter& waits) {
    if (!share_) {
        if (!whose) {
            return;
        }
        share_ = std::make_unique<rate_share>(patience_.all().io(), waits);
    }
    share_->limit_to(std::move(whose));
}

bool client_stream::send_now(std::vector<asio::const_buffer>& parts) {
    if (share_) [[unlikely]] {
        return send_share_now(parts);
    }
    while (!parts.empty() && !failed_) {
        if (sent_at_once_ >= most_at_once) [[unlikely]] {
            return asio::buffer_size(parts) == 0;
        }
        error_code error;
        const auto sent = socket_.try_write(parts, error);
        note_sent(sent);
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

bool client_stream::send_share_now(std::vector<asio::const_buffer>& parts) {
    while (!failed_) {
        const auto size = asio::buffer_size(parts);
        if (size == 0) {
            return true;
        }
        if (sent_at_once_ >= most_at_once) {
            return false;
        }
        const auto may = share_->may_send(size);
        if (may == 0) {
            return false;
        }
        error_code error;
        const auto sent = socket_.try_write(boost::beast::buffers_prefix(may, parts), error);
        note_sent(sent);
        share_->note_sent(sent);
        if (error) {
            failed_ = true;
            break;
        }
        if (sent == 0) {
            return false;
        }
        drop_front(parts, sent);
    }
    return true;
}

// Waits for its turn, and for the kernel; the client owes progress in the second wait, and in the
// first where others wait for it.
awaitable<ended> client_stream::send_share(std::vector<asio::const_buffer>& parts,
                                           std::uint64_t bytes_per_second,
                                           std::chrono::milliseconds timeout,
                                           const std::atomic<bool>* others_wait) {
    while (!send_share_now(parts)) {
        const auto may = share_->may_send(asio::buffer_size(parts));
        if (may == 0) {
            auto* const owed = others_wait != nullptr && others_wait->load(relaxed) ? &taking()
                                                                                    : nullptr;
            if (owed != nullptr) {
                owed->begin(bytes_per_second, timeout);
            }
            static_cast<void>(co_await share_->wait(use_tuple));
            begin_turn();
            if (owed != nullptr) {
                owed->end();
                failed_ = failed_ || owed->expired();
            }
            failed_ = failed_ || !socket_.is_open() || patience_.all().stopped();
            continue;
        }
        auto& pace = taking();
        pace.begin(bytes_per_second, timeout);
        const auto piece = boost::beast::buffers_prefix(may, parts);
        const auto [error, sent] = co_await socket_.async_write_some(piece, use_tuple);
        pace.end();
        begin_turn();
        note_sent(sent);
        share_->note_sent(sent);
        if (error || pace.expired()) {
            failed_ = true;
            break;
        }
        drop_front(parts, sent);
    }
    co_return failed_ ? ended::gone : ended::keep;
}

awaitable<ended> client_stream::send(std::vector<asio::const_buffer>& parts,
                                     std::uint64_t bytes_per_second,
                                     std::chrono::milliseconds timeout,
                                     const std::atomic<bool>* others_wait) {
    if (send_now(parts)) {
        co_return failed_ ? ended::gone : ended::keep;
    }
    if (share_) [[unlikely]] {
        co_return co_await send_share(parts, bytes_per_second, timeout, others_wait);
    }
    auto& pace = taking();
    pace.begin(bytes_per_second, timeout);
    while (!parts.empty()) {
        const auto [error, sent] = co_await socket_.async_write_some(parts, use_tuple);
        begin_turn();
        note_sent(sent);
        if (error || pace.expired()) {
            failed_ = true;
            break;
        }
        drop_front(parts, sent);
    }
    pace.end();
    co_return failed_ ? ended::gone : ended::keep;
}

awaitable<ended> client_stream::end_sending(std::uint64_t bytes_per_second,
                                            std::chrono::milliseconds timeout) {
    auto& pace = taking();
    pace.begin(bytes_per_second, timeout);
    const bool said = co_await net::end_sending(socket_, pace);
    pace.end();
    failed_ = failed_ || !said;
    co_return said ? ended::keep : ended::gone;
}

std::uint64_t client_stream::acknowledged() noexcept {
    return bytes_out_ - not_acknowledged(socket_);
}

void client_stream::reply_is_whole() noexcept {
    whole_until_ = bytes_out_;
    begin_turn();
    if (resets_) {
        resets_ = false;
        socket_.set_reset_on_close(false);
    }
}

void client_stream::reply_ends_by_closing() noexcept {
    resets_ = true;
    socket_.set_reset_on_close(true);
}

void client_stream::close() noexcept {
    if (share_) {
        share_->end_wait();
    }
    if (reply_under_way() && socket_.is_open()) {
        break_off();
        return;
    }
    error_code ignored;
    socket_.close(ignored);
}

bool client_stream::client_left() {
    return socket_.look() == stream_look::end;
}

void client_stream::break_off() noexcept {
    failed_ = true;
    socket_.reset();
}

}  // namespace reprise::proxy::net
