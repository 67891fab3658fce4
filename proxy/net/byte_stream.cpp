#include "proxy/net/byte_stream.hpp"

#include "proxy/net/socket_read.hpp"

#include <cerrno>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace reprise::proxy::net {
namespace {

// Asio's own option is undone by a socket's destructor.
void set_linger(tcp_socket& socket, bool resets) noexcept {
    const ::linger how{resets ? 1 : 0, 0};
    static_cast<void>(
        ::setsockopt(socket.native_handle(), SOL_SOCKET, SO_LINGER, &how, sizeof how));
}

}  // namespace

byte_stream::byte_stream(tcp_socket socket, std::unique_ptr<tls_session> tls)
    : socket_{std::move(socket)},
      tls_{std::move(tls)},
      marks_{std::make_shared<marks>()} {
    set_linger(socket_, true);  // until try_end
}

byte_stream& byte_stream::operator=(byte_stream&& other) noexcept {
    if (this != &other) {
        error_code ignored;
        close(ignored);
        socket_ = std::move(other.socket_);
        tls_ = std::move(other.tls_);
        marks_ = std::move(other.marks_);
        saw_all_ = other.saw_all_;
    }
    return *this;
}

byte_stream::~byte_stream() {
    if (tls_) {
        error_code ignored;
        close(ignored);
    }
}

bool byte_stream::try_end(error_code& error) {
    if (tls_) {
        if (!tls_->say_end(error)) {
            return false;
        }
        set_linger(socket_, false);
    }
    socket_.shutdown(tcp_socket::shutdown_send, error);
    return !error;
}

stream_look byte_stream::look() {
    const bool reading = marks_ && marks_->reading;
    if (tls_ && !reading && !tls_->must_wait()) {
        return tls_->look();
    }
    char byte = 0;
    const auto got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        return stream_look::nothing;
    }
    if (tls_ && !reading) {  // or the reader would wait for what OpenSSL has by now
        return tls_->look();
    }
    return got > 0 ? stream_look::bytes : stream_look::end;
}

std::size_t byte_stream::try_read(asio::mutable_buffer into, error_code& error) {
    error.clear();
    if (tls_) [[unlikely]] {
        return tls_->read(into, error);
    }
    const auto read = read_socket(socket_.native_handle(), into.data(), into.size());
    saw_all_ = read.saw_all;
    if (read.got > 0) {
        return static_cast<std::size_t>(read.got);
    }
    if (read.got == 0 && into.size() > 0) {
        error = asio::error::eof;
    } else if (read.got < 0 && !read.saw_all) {
        error.assign(errno, boost::system::system_category());
    }
    return 0;
}

void byte_stream::wait_readable(read_wait& by, bool same_turn) {
    using mode = read_wait::mode;
    if (tls_ && !tls_->must_wait()) [[unlikely]] {
        by.start_at_once();
        return;
    }
    const bool saw_all = tls_ ? tls_->saw_all() : saw_all_;
    by.start(socket_, saw_all && same_turn ? mode::just_seen : mode::asking);
}

std::uint64_t byte_stream::not_acknowledged() noexcept {
    int bytes = 0;
    const bool told = ::ioctl(socket_.native_handle(), SIOCOUTQ, &bytes) == 0;
    return (told && bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0) + (tls_ ? tls_->kept() : 0);
}

void byte_stream::set_reset_on_close(bool on) noexcept {
    if (!tls_) {
        set_linger(socket_, on);
    }
}

void byte_stream::close(error_code& error) noexcept {
    if (tls_ && socket_.is_open()) {
        static_cast<void>(try_end(error));
    }
    tls_.reset();
    socket_.close(error);
}

void byte_stream::reset() noexcept {
    if (socket_.is_open()) {
        set_linger(socket_, true);
    }
    tls_.reset();
    error_code ignored;
    socket_.close(ignored);
}

}  // namespace reprise::proxy::net
