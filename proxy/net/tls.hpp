#pragma once
// TLS in front of code that knows only plain sockets.
// After the handshake two coroutines carry bytes between the TLS connection and one end of a
// socket pair (AF_UNIX), the other end of which is given out as a `tcp_socket` like any other: so
// nothing on the way of a plain connection asks whether there is TLS. An encrypted one costs two
// descriptors more and a copy through the kernel. The pair has no address: who wants the other
// side's asks the TCP socket before.
//
// OpenSSL writes to sockets without MSG_NOSIGNAL: the program ignores SIGPIPE.
//
// Ends are kept apart as TCP keeps them. What a plain socket calls the end (0 bytes) is TLS's
// close_notify, in both directions and each on its own; a connection that ends without one, which
// anybody on the way can bring about, is read as connection_reset, after the bytes before it. The
// TCP connection ends by a reset, even if the process dies, unless a close_notify was sent.

#include "proxy/base/clock.hpp"
#include "proxy/base/failure.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/net/pace.hpp"
#include "proxy/net/tls_context.hpp"
#include "proxy/net/wakeup.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace reprise::proxy::net {

/// What the other side must acknowledge to be written to: pace_guard::begin's arguments.
struct tls_pace {
    std::uint64_t bytes_per_second = 0;
    std::chrono::milliseconds timeout{60'000};
};

/// An established TLS connection, as long as bytes may pass. It lives on its own: it ends when the
/// plain end is closed and what was written there has gone out, when the other side ends or breaks
/// it, when it does not take what it is sent (tls_pace), or with deadlines::stop.
///
/// Threads   the one of its `deadlines`.
/// Memory    OpenSSL's state (some 20 KiB, buffers of 16 KiB each way only while they hold
///           something), the kernel's buffers of the pair, and what a slow reader has not taken of
///           the last block, at most 32 KiB each way. Nothing more is read from a side then.
/// Waits     reading from either side has no time limit here: it ends with the plain end, whose
///           owner has one.
class tls_link {
public:
    tls_link(ssl_ptr ssl, tcp_socket outer, tls_pace pace, deadlines& timer);
    tls_link(const tls_link&) = delete;
    tls_link& operator=(const tls_link&) = delete;
    ~tls_link();

    /// Ends it now, so that the other side cannot take what it got for the whole: a reset, without
    /// a close_notify.
    void break_off() noexcept;

    /// Bytes that the other side's machine has acknowledged, TLS's own included.
    [[nodiscard]] std::uint64_t acknowledged() noexcept;

    /// Until it has ended. One at a time may wait, and must hold the link meanwhile.
    [[nodiscard]] awaitable<void> ended();

    /// Makes the pair and starts carrying; the end to give out. Once.
    /// @throws boost::system::system_error when there are no descriptors, or sockets have no cookie
    [[nodiscard]] static tcp_socket start(const std::shared_ptr<tls_link>& self);

private:
    enum class step_end : std::uint8_t { moved, want_read, want_write, end, cut };
    struct step {
        step_end end;
        std::size_t bytes = 0;
    };
    static awaitable<void> carry_out(std::shared_ptr<tls_link> self);
    static awaitable<void> carry_in(std::shared_ptr<tls_link> self);
    awaitable<bool> send_rest(std::string_view bytes);
    awaitable<bool> say_end();
    awaitable<bool> wait_outer(step_end what);
    awaitable<bool> wait_inner();
    step encrypt(std::string_view bytes);
    step decrypt(char* into, std::size_t room);
    [[nodiscard]] step failed(int result) const;
    void cut_inner() noexcept;
    void close() noexcept;
    void one_done();

    ssl_ptr ssl_;
    tcp_socket outer_;
    tcp_socket inner_;
    tls_pace pace_;
    pace_guard stalled_;  // the other side does not take what it is sent
    deadline stopping_;   // never comes but with deadlines::stop
    wakeup done_;
    int given_ = -1;                  // the descriptor given out, as long as it has
    std::uint64_t given_cookie_ = 0;  // this mark
    unsigned running_ = 0;
    bool closed_ = false;
    bool in_ended_ = false;
    bool out_ended_ = false;
};

struct tls_connection {
    tcp_socket plain;
    std::shared_ptr<tls_link> link;
};

/// The server's side, on a connection just accepted. Nothing is answered to who speaks no TLS.
/// Bytes of a handshake are bounded by OpenSSL (some 130 KiB), its time by `until`; its
/// computations run on this loop, about a millisecond with an RSA key of 2048 bits, a tenth with
/// P-256.
/// Errors: tls_failed, with a detail for the log; there is nobody to be told.
[[nodiscard]] awaitable<attempt<tls_connection>> accept_tls(tcp_socket socket,
                                                            tls_identity_ptr identity,
                                                            tls_pace pace,
                                                            deadlines& timer,
                                                            steady_time until);

/// The client's side, on a socket that dial connected to `host`.
/// Errors: tls_certificate, with the reason; tls_failed; connect_timeout. All may be tried
/// elsewhere.
[[nodiscard]] awaitable<attempt<tcp_socket>> connect_tls(tcp_socket socket,
                                                         tls_trust_ptr trust,
                                                         std::string host,
                                                         tls_pace pace,
                                                         deadlines& timer,
                                                         steady_time until);

}  // namespace reprise::proxy::net
