#pragma once
// What a byte_stream has where there is TLS: OpenSSL's state of one connection, between the
// caller's bytes and a socket's descriptor. It waits for nothing and knows no loop.
//
// OpenSSL does not see the socket. What it wants to read comes from there at once (its own buffer
// of a record, which it has only while something is in it); what it writes is gathered in a block
// that all sessions of a thread share, and sent when the call is over: the pieces of an answer are
// one record, and its records one system call. What the kernel does not take of that is kept until
// it does, and nothing more is encrypted meanwhile.

#include "proxy/net/asio.hpp"
#include "proxy/net/tls_context.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::net {

/// What looking at a connection without taking anything finds.
enum class stream_look : std::uint8_t { nothing, bytes, end };

/// Threads   the one of its connection.
/// Memory    OpenSSL's state; its buffers of 16 KiB each way only within a call, or while a record
///           is in parts; and ciphertext that was not taken, at most `most_at_once` and one record.
///           Before more than one record is encrypted the kernel is asked whether it takes any, so
///           that a peer that reads nothing has little of it. Where there is no memory for these
///           the connection is over; but for the constructor nothing throws.
/// Errors    the end without a close_notify, and whatever is no TLS, is connection_reset, after the
///           bytes before it, and from then on for every call.
class tls_session {
public:
    static constexpr std::size_t most_at_once = 64 << 10;  ///< encrypted for one send

    /// @param first  what somebody has read of the connection already: it comes before what the
    /// socket holds
    /// @throws std::bad_alloc
    tls_session(ssl_ptr ssl, int socket, std::string first = {});
    ~tls_session();
    tls_session(const tls_session&) = delete;
    tls_session& operator=(const tls_session&) = delete;

    enum class handshake : std::uint8_t { done, wants_to_read, wants_to_write, failed };
    [[nodiscard]] handshake shake_hands() noexcept;
    /// Why the handshake failed, in OpenSSL's words, once.
    [[nodiscard]] std::string why();
    [[nodiscard]] ssl_st* ssl() const noexcept { return ssl_.get(); }

    /// What is there now, as much as fits. Nothing there: 0 without an error. close_notify: eof.
    [[nodiscard]] std::size_t read(asio::mutable_buffer into, error_code& error) noexcept;
    /// Nothing that was received is left to be given out, as far as one knows without asking the
    /// socket: whoever waits for bytes waits for the socket first.
    [[nodiscard]] bool must_wait() const noexcept;
    /// The last reading of the socket found all that was there and no end of it (socket_read.hpp), and
    /// was made by the last read() or something later. False where one does not know.
    [[nodiscard]] bool saw_all() const noexcept { return saw_all_; }
    [[nodiscard]] stream_look look() noexcept;

    /// How many bytes of `from` need not be offered again; 0 without an error: the kernel takes
    /// nothing now. While ciphertext is kept the last byte of what it was made from counts as not
    /// taken, so that nobody takes for sent what is not: whoever is told of a part offers the rest.
    [[nodiscard]] std::size_t write(std::span<const asio::const_buffer> from,
                                    error_code& error) noexcept;
    /// Says that nothing follows (close_notify). False without an error: the kernel takes nothing
    /// now. An error while a write is not done: then the end would not be one.
    [[nodiscard]] bool say_end(error_code& error) noexcept;
    /// Ciphertext that the kernel has not taken.
    [[nodiscard]] std::size_t kept() const noexcept { return kept_.size() - kept_sent_; }

    /// The server wants, or would take, a certificate of ours.
    [[nodiscard]] bool was_asked_for_certificate() const noexcept;

    /// By ALPN (RFC 7301); empty: nothing was agreed on.
    [[nodiscard]] std::string_view protocol() const noexcept;

private:
    friend struct tls_wire;
    [[nodiscard]] bool is_over() const noexcept { return cut_ || mute_; }
    [[nodiscard]] bool takes_more() const noexcept;
    [[nodiscard]] std::size_t take_first(char* into, std::size_t most) noexcept;
    [[nodiscard]] std::size_t give(std::string_view ciphertext) noexcept;
    void flush() noexcept;
    bool flush_kept() noexcept;

    int socket_;
    bool drained_ = false;  // the last reading of the socket brought all there was, about
    bool saw_all_ = false;  // and that for certain
    bool starved_ = false;  // OpenSSL needs more than it has to go on
    bool saw_fin_ = false;
    bool ended_ = false;  // their close_notify
    bool said_end_ = false;
    bool cut_ = false;             // it ended otherwise, or is no TLS
    bool mute_ = false;            // the socket takes no more; what was received may still be read
    bool owes_a_byte_ = false;     // of what was encrypted, the last was not counted as taken
    std::size_t may_receive_ = 0;  // in this call, from the socket
    std::uint32_t at_once_ = most_at_once;
    std::uint32_t kept_sent_ = 0;
    std::vector<char> kept_;
    std::string first_;  // what is left of it lies behind first_taken_
    std::size_t first_taken_ = 0;
    ssl_ptr ssl_;
};

}  // namespace reprise::proxy::net
