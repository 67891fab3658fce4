#pragma once
// A client's connection as bytes: reads into one flat buffer, writes with back-pressure, and a
// deadline on every wait. Writing tries the kernel first: most replies leave without a suspension.

#include "proxy/net/deadlines.hpp"
#include "proxy/net/io.hpp"
#include "proxy/net/read_buffer.hpp"
#include "proxy/net/tls.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace reprise::proxy {

/// Threads: its worker's. The deadline's action cancels what waits; every operation asks first
/// whether it has passed.
class client_stream {
public:
    client_stream(tcp_socket socket, deadlines& timer);
    client_stream(const client_stream&) = delete;
    client_stream& operator=(const client_stream&) = delete;

    [[nodiscard]] tcp_socket& socket() noexcept { return socket_; }
    [[nodiscard]] read_buffer& input() noexcept { return input_; }
    [[nodiscard]] deadline& patience() noexcept { return patience_; }

    enum class read_end : std::uint8_t { some, closed, timed_out };
    /// Reads once, at least one byte, into input(); at most `most` bytes. patience() is armed by
    /// the caller.
    [[nodiscard]] awaitable<read_end> read(std::size_t most);
    /// What is there already, without waiting. False: nothing was.
    bool read_now(std::size_t most);

    /// Sends what the kernel takes of `parts` (of the rest, `parts` keeps nothing that was sent).
    /// True when all has gone or the connection has failed (then failed() is true).
    [[nodiscard]] bool send_now(std::vector<net::const_buffer>& parts);
    /// Sends the rest, waiting at most `timeout` without enough progress. False: the client is gone
    /// or too slow.
    [[nodiscard]] awaitable<bool> send(std::vector<net::const_buffer>& parts,
                                       std::uint64_t bytes_per_second,
                                       std::chrono::milliseconds timeout);

    [[nodiscard]] bool failed() const noexcept { return failed_; }
    [[nodiscard]] std::uint64_t bytes_in() const noexcept { return bytes_in_; }
    [[nodiscard]] std::uint64_t bytes_out() const noexcept { return bytes_out_; }

    /// Bytes that somebody else read into input().
    void note_read(std::size_t bytes) noexcept {
        input_.commit(bytes);
        bytes_in_ += bytes;
    }
    /// The same of a request's body. Who sends is not gone, were it that it reads nothing of an
    /// early answer until all is sent.
    void note_body_read(std::size_t bytes) noexcept;

    /// Bytes that went through the socket without passing here (a tunnel's).
    void note_relayed(std::uint64_t in, std::uint64_t out) noexcept {
        bytes_in_ += in;
        bytes_out_ += out;
    }

    /// True when the client has closed or broken its side: asks the kernel, takes nothing.
    [[nodiscard]] bool client_left();

    /// The socket is the plain end of `link`.
    void is_behind(std::shared_ptr<tls_link> link) noexcept { link_ = std::move(link); }

    /// Ends the connection so that the client can't take what it got for a whole answer: a reset.
    void break_off() noexcept;

private:
    tcp_socket socket_;
    read_buffer input_;
    deadline patience_;
    std::shared_ptr<tls_link> link_;  // null: the client's own TCP connection
    bool failed_ = false;
    bool sending_ = false;  // patience_ is for a send
    std::uint64_t bytes_in_ = 0;
    std::uint64_t bytes_out_ = 0;
};

}  // namespace reprise::proxy
