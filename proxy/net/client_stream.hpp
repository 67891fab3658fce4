#pragma once
// A client's connection as bytes: reads into one flat buffer, writes with back-pressure, and a
// deadline on every wait. Writing tries the kernel first: most replies leave without a suspension.
//
// It knows whether a reply is under way: bytes of it have gone out, and nobody has said since that
// it is whole. Until then the connection ends by a reset, whoever ends it and why: a FIN, or TLS's
// close_notify, is the end of a body to a client that was told no length.
//
// What is limited (limits.client_rate) waits its turn by a timer. That is no time in which the client
// owes us anything, and no deadline runs meanwhile, but where others wait for this client.

#include "proxy/base/ended.hpp"
#include "proxy/net/client_rate.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/net/io.hpp"
#include "proxy/net/pace.hpp"
#include "proxy/net/read_buffer.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace reprise::proxy::net {

/// Threads: its worker's. The deadline's action cancels what waits; every operation asks first
/// whether it has passed.
class client_stream {
public:
    client_stream(byte_stream stream, deadlines& timer);
    ~client_stream();
    client_stream(const client_stream&) = delete;
    client_stream& operator=(const client_stream&) = delete;

    [[nodiscard]] byte_stream& socket() noexcept { return socket_; }
    [[nodiscard]] read_buffer& input() noexcept { return input_; }
    [[nodiscard]] const read_buffer& input() const noexcept { return input_; }
    [[nodiscard]] deadline& patience() noexcept { return patience_; }

    enum class read_end : std::uint8_t { some, closed, timed_out };
    /// Reads once, at least one byte, into input(); at most `most` bytes. patience() is armed by
    /// the caller.
    [[nodiscard]] awaitable<read_end> read(std::size_t most);

    /// The same where many may wait for long: there is no room for the bytes before they have come,
    /// and input() holds no more than what it has. @pre no TLS
    [[nodiscard]] awaitable<read_end> read_lean(std::size_t most);

    /// From now on what is sent is this client's share; null: there is no limit. A stream that was
    /// never limited pays one branch a call for that. @pre nothing is half sent
    /// @param waits  counts each wait for a turn
    /// @throws std::bad_alloc
    void limit_to(client_bucket_ptr whose, counter& waits);
    [[nodiscard]] bool is_limited_as(const client_name& whose) const noexcept {
        return share_ && share_->is_of(whose);
    }
    /// For what sends to the socket without passing here (a tunnel); null: it was never limited.
    [[nodiscard]] rate_share* share() noexcept { return share_.get(); }

    /// Sends what the kernel takes of `parts`, and the client may have, which then holds only what
    /// was not sent. True when all has gone or the connection has failed (then failed() is true).
    /// Once `most_at_once` of a reply has gone without a wait for the client it takes nothing: a client that reads
    /// as fast as we write would have the loop for itself, up to the end of the largest object.
    [[nodiscard]] bool send_now(std::vector<asio::const_buffer>& parts);
    /// From there on each call lets the loop do what else is ready before it sends more.
    static constexpr std::size_t most_at_once = 4u << 20;
    /// Sends the rest, waiting at most `timeout` without enough progress: bytes that the client
    /// has acknowledged, or sends itself. `gone`: it has left, or is too slow.
    /// @param others_wait  outlives the wait; while it is true what the client waits for its turn
    ///                     counts too. Null: it never does.
    [[nodiscard]] awaitable<ended> send(std::vector<asio::const_buffer>& parts,
                                        std::uint64_t bytes_per_second,
                                        std::chrono::milliseconds timeout,
                                        const std::atomic<bool>* others_wait = nullptr);

    /// Says that nothing follows: a FIN, or close_notify, for which there must be room: waits like
    /// send. `gone`: the connection has failed.
    [[nodiscard]] awaitable<ended> end_sending(std::uint64_t bytes_per_second,
                                               std::chrono::milliseconds timeout);

    [[nodiscard]] bool failed() const noexcept { return failed_; }
    [[nodiscard]] std::uint64_t bytes_in() const noexcept { return bytes_in_; }
    [[nodiscard]] std::uint64_t bytes_out() const noexcept { return bytes_out_; }

    /// The connection goes on over `next`, which was made of socket(). @pre nothing waits, and
    /// input() is empty
    void go_on_over(byte_stream next) { socket_ = std::move(next); }

    /// Bytes that somebody else read into input().
    void note_read(std::size_t bytes) noexcept {
        input_.commit(bytes);
        bytes_in_ += bytes;
    }

    /// Bytes that went through the socket without passing here (a tunnel's).
    void note_relayed(std::uint64_t in, std::uint64_t out) noexcept {
        bytes_in_ += in;
        bytes_out_ += out;
    }

    /// Something has gone out that is no whole message.
    [[nodiscard]] bool reply_under_way() const noexcept { return bytes_out_ != whole_until_; }
    /// What has gone out so far is whole messages.
    void reply_is_whole() noexcept;
    /// The end of the reply that begins will be the connection's. Until reply_is_whole() any end
    /// of it is a reset, were it the kernel's when the process dies.
    void reply_ends_by_closing() noexcept;

    /// How many bytes of what went out have been acknowledged by the client's machine, less what
    /// TLS adds to those that have not.
    [[nodiscard]] std::uint64_t acknowledged() noexcept;

    /// True when the client has closed or broken its side: asks the kernel, takes nothing.
    [[nodiscard]] bool client_left();

    /// Ends the connection: by a reset while a reply is under way.
    void close() noexcept;
    /// Ends the connection so that the client can't take what it got for a whole answer: a reset.
    void break_off() noexcept;

private:
    [[nodiscard]] pace_guard& taking();
    /// Something was waited for, or another reply begins.
    void begin_turn() noexcept { sent_at_once_ = 0; }
    void note_sent(std::size_t bytes) noexcept {
        bytes_out_ += bytes;
        sent_at_once_ += bytes;
    }
    [[nodiscard]] bool send_share_now(std::vector<asio::const_buffer>& parts);
    [[nodiscard]] awaitable<ended> send_share(std::vector<asio::const_buffer>& parts,
                                              std::uint64_t bytes_per_second,
                                              std::chrono::milliseconds timeout,
                                              const std::atomic<bool>* others_wait);

    byte_stream socket_;
    read_buffer input_;
    deadline patience_;
    std::unique_ptr<pace_guard> taking_;  // once a send has waited
    std::unique_ptr<rate_share> share_;   // once it was limited
    bool failed_ = false;
    bool resets_ = false;  // the socket is set so that closing it is a reset
    std::uint64_t bytes_in_ = 0;
    std::uint64_t bytes_out_ = 0;
    std::uint64_t whole_until_ = 0;  // of bytes_out_
    std::size_t sent_at_once_ = 0;   // of a reply, without a wait
};

}  // namespace reprise::proxy::net
