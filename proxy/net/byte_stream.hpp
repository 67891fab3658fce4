#pragma once
// A connection's bytes, encrypted or not: a TCP socket, and a TLS session where there is TLS.
// Everything above net/ reads and writes this; whether there is TLS is one branch, foretold for
// none, and no virtual call. Where it does what Asio's sockets do it has their names, so that a
// coroutine can await either, by any completion token.
//
// Ends are kept apart as TCP keeps them. The end (eof) is a FIN, with TLS a close_notify, in both
// directions and each on its own. A TLS connection that ends without one, which anybody on the way
// can bring about, is connection_reset, after the bytes before it; and ours ends by a reset, even
// when the process dies, unless close_notify has been sent.

#include "proxy/net/asio.hpp"
#include "proxy/net/read_wait.hpp"
#include "proxy/net/tls_session.hpp"

#include <boost/asio/append.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/post.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace reprise::proxy::net {

/// Threads   the one of its executor.
/// Waits     none but the async ones, which have no time limit: whoever has one cancels or closes.
///           At most one reads and one writes at a time; closing ends both with an error. The
///           stream outlives the call of their handlers, and is not moved meanwhile.
class byte_stream final {
public:
    using executor_type = executor;

    /// Plain. @pre the socket is prepared (io.hpp)
    byte_stream(tcp_socket socket) noexcept : socket_{std::move(socket)} {}
    /// @pre hands are shaken
    /// @throws std::bad_alloc
    byte_stream(tcp_socket socket, std::unique_ptr<tls_session> tls);
    byte_stream(byte_stream&&) noexcept = default;
    byte_stream& operator=(byte_stream&& other) noexcept;
    /// Closes.
    ~byte_stream();

    /// What is there now. Nothing there: 0 without an error. The end: asio::error::eof.
    [[nodiscard]] std::size_t try_read(asio::mutable_buffer into, error_code& error);
    /// Gives the kernel what it takes now; 0 without an error: it takes nothing. After a part the
    /// caller offers the rest, these bytes and no others: some of it may be encrypted already.
    template <class Buffers>
    [[nodiscard]] std::size_t try_write(const Buffers& buffers, error_code& error);
    /// Says that nothing follows, while reading may go on. False without an error: the kernel has
    /// no room for the close_notify; wait_writable, and again. A FIN always goes.
    [[nodiscard]] bool try_end(error_code& error);

    /// Reads at least one byte, or reports the end. void(error_code, std::size_t)
    template <class Token>
    auto async_read_some(asio::mutable_buffer into, Token&& token);
    /// Writes at least one byte. void(error_code, std::size_t)
    template <class Buffers, class Token>
    auto async_write_some(const Buffers& buffers, Token&& token);
    /// Until there may be something to read: at once where that is known. void(error_code)
    template <class Token>
    auto wait_readable(Token&& token);
    /// The same in the waiter's own memory. `same_turn`: what was read last was read in this turn of
    /// the loop. Cancelling and closing end it; a reset that came with the bytes that were read last
    /// may show at the next write alone. @pre nothing else reads
    void wait_readable(read_wait& by, bool same_turn);
    /// Until the kernel takes something. void(error_code)
    template <class Token>
    auto wait_writable(Token&& token) {
        return watched().async_wait(tcp_socket::wait_write, std::forward<Token>(token));
    }

    /// Asks the kernel what is there; takes nothing, but what is TLS's own.
    [[nodiscard]] stream_look look();
    /// Bytes written that the other side's machine has not acknowledged. 0 when the kernel doesn't
    /// say.
    [[nodiscard]] std::uint64_t not_acknowledged() noexcept;

    /// `on`: from now on closing resets the connection, also when the process dies. Off: it ends
    /// it. No effect with TLS, where closing without a close_notify always resets.
    void set_reset_on_close(bool on) noexcept;
    /// Ends the connection. With TLS it says close_notify if the kernel takes that now; otherwise,
    /// or in the middle of a write, it is a reset.
    void close(error_code& error) noexcept;
    /// Ends it so that the other side cannot take what it got for the whole: a reset.
    void reset() noexcept;

    /// The socket, with which this stream has nothing more to do; maybe not watched yet (watched.hpp).
    /// @pre it is not encrypted, and nothing reads or writes
    [[nodiscard]] tcp_socket take_socket() noexcept { return std::move(socket_); }

    [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }
    [[nodiscard]] bool is_encrypted() const noexcept { return tls_ != nullptr; }
    /// The server wants, or would take, a certificate of ours, and was shown none.
    [[nodiscard]] bool was_asked_for_certificate() const noexcept {
        return tls_ && tls_->was_asked_for_certificate();
    }
    /// What was agreed on by ALPN; empty: nothing, or no TLS.
    [[nodiscard]] std::string_view protocol() const noexcept {
        return tls_ ? tls_->protocol() : std::string_view{};
    }
    /// Ends what waits, with an error.
    void cancel(error_code& error) {
        if (marks_) {
            ++marks_->cancels;
        }
        socket_.cancel(error);
    }
    [[nodiscard]] executor_type get_executor() noexcept { return socket_.get_executor(); }
    [[nodiscard]] int native_handle() { return socket_.native_handle(); }
    [[nodiscard]] tcp::endpoint local_endpoint(error_code& error) const {
        return socket_.local_endpoint(error);
    }
    [[nodiscard]] tcp::endpoint remote_endpoint(error_code& error) const {
        return socket_.remote_endpoint(error);
    }

private:
    // What a stream and its operations over TLS have in common: one that is cancelled may complete
    // after the stream has gone, and touches nothing else of it then.
    struct marks {
        bool reading = false;  // a read has begun, and its end is not told yet
        std::uint32_t cancels = 0;
    };
    // One piece of work over TLS: tried at once where it may succeed, and again whenever the socket
    // is ready. `Try` returns what there is; 0 without an error: nothing yet.
    // A cancel between two waits finds nothing to cancel, so it is asked for before each.
    template <class Try>
    struct encrypted_operation {
        byte_stream& of;
        tcp_socket::wait_type readiness;
        Try attempt;
        bool wait_first;
        std::shared_ptr<marks> in_common = of.marks_;
        std::uint32_t cancels = in_common->cancels;
        enum class stage : std::uint8_t { begun, waiting, done } at = stage::begun;
        error_code error{};
        std::size_t count = 0;

        [[nodiscard]] bool is_read() const noexcept { return readiness == tcp_socket::wait_read; }

        template <class Self>
        void operator()(Self& self, error_code waited = {}) {
            if (at == stage::begun) {
                self.reset_cancellation_state(asio::enable_total_cancellation());
                in_common->reading = in_common->reading || is_read();
            }
            if (at == stage::waiting) {
                const bool cancelled = in_common->cancels != cancels ||
                                       self.cancelled() != asio::cancellation_type::none;
                error = cancelled ? error_code{asio::error::operation_aborted} : waited;
            }
            if (at != stage::done && !error && !(at == stage::begun && wait_first)) {
                count = attempt(of, error);
            }
            if (at == stage::done || (at == stage::waiting && (error || count > 0))) {
                in_common->reading = in_common->reading && !is_read();
                self.complete(error, count);
            } else if (error || count > 0) {
                at = stage::done;  // not within the call that begins it
                asio::post(of.get_executor(), std::move(self));
            } else {
                at = stage::waiting;
                of.socket_.async_wait(readiness, std::move(self));
            }
        }
    };
    template <class Try, class Handler>
    void run_encrypted(tcp_socket::wait_type readiness, Try attempt, bool first, Handler handler) {
        asio::async_compose<Handler, void(error_code, std::size_t)>(
            encrypted_operation<Try>{*this, readiness, std::move(attempt), first},
            handler,
            socket_);
    }

    [[nodiscard]] tcp_socket& watched() {
        static_cast<void>(watch(socket_));
        return socket_;
    }

    tcp_socket socket_;
    std::unique_ptr<tls_session> tls_;  // null: plain
    std::shared_ptr<marks> marks_;      // null: plain
    bool saw_all_ = false;              // plain: try_read found all there was, and no end of it
};

template <class Buffers>
std::size_t byte_stream::try_write(const Buffers& buffers, error_code& error) {
    if (tls_) [[unlikely]] {
        std::array<asio::const_buffer, 32> parts;  // what lies behind is offered again
        std::size_t count = 0;
        const auto end = asio::buffer_sequence_end(buffers);
        for (auto at = asio::buffer_sequence_begin(buffers); at != end && count < parts.size();
             ++at) {
            parts[count++] = *at;
        }
        return tls_->write(std::span{parts}.first(count), error);
    }
    const auto count = socket_.write_some(buffers, error);
    if (error == asio::error::would_block || error == asio::error::try_again) {
        error.clear();
    }
    return count;
}

template <class Token>
auto byte_stream::async_read_some(asio::mutable_buffer into, Token&& token) {
    const auto begin = [this](auto handler, asio::mutable_buffer room) {
        if (!tls_) [[likely]] {
            saw_all_ = false;
            watched().async_read_some(room, std::move(handler));
            return;
        }
        const auto attempt = [room](byte_stream& of, error_code& error) {
            return of.try_read(room, error);
        };
        run_encrypted(tcp_socket::wait_read, attempt, tls_->must_wait(), std::move(handler));
    };
    return asio::async_initiate<Token, void(error_code, std::size_t)>(begin, token, into);
}

template <class Buffers, class Token>
auto byte_stream::async_write_some(const Buffers& buffers, Token&& token) {
    const auto begin = [this](auto handler, const Buffers& from) {
        if (!tls_) [[likely]] {
            watched().async_write_some(from, std::move(handler));
            return;
        }
        const auto attempt = [from](byte_stream& of, error_code& error) {
            return of.try_write(from, error);
        };
        run_encrypted(tcp_socket::wait_write, attempt, false, std::move(handler));
    };
    return asio::async_initiate<Token, void(error_code, std::size_t)>(begin, token, buffers);
}

template <class Token>
auto byte_stream::wait_readable(Token&& token) {
    const auto begin = [this](auto handler) {
        if (!tls_ || tls_->must_wait()) [[likely]] {
            watched().async_wait(tcp_socket::wait_read, std::move(handler));
            return;
        }
        asio::post(get_executor(), asio::append(std::move(handler), error_code{}));
    };
    return asio::async_initiate<Token, void(error_code)>(begin, token);
}

}  // namespace reprise::proxy::net
