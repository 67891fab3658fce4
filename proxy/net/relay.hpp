#pragma once
// Bytes both ways between two connections until both ends are done: CONNECT and WebSocket.
// An idle tunnel holds no buffer and no coroutine: it waits in memory of its own (read_wait), a
// thread's one scratch block is filled and emptied between two waits, and only what a slow receiver
// would not take, or may not have yet (limits.client_rate), is copied to wait for it.

#include "proxy/net/byte_stream.hpp"
#include "proxy/net/client_rate.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/net/pace.hpp"
#include "proxy/net/read_wait.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::proxy::net {

enum class relay_end : std::uint8_t {
    finished,   ///< both sides ended their stream
    reset,      ///< one side broke off
    timed_out,  ///< nothing moved for `idle`, or the thread is stopping
};

struct relay_result {
    std::uint64_t a_to_b = 0;  ///< bytes handed to b's socket, those of `from_a` included
    std::uint64_t b_to_a = 0;
    relay_end end = relay_end::finished;
};

/// First `from_a` to b and `from_b` to a, then everything that arrives. A side's FIN is passed on
/// and the other direction goes on. Any other end resets both sides: a FIN could make what is
/// inside look complete. With TLS its close_notify is the FIN. Nothing is read from a side while
/// the other has not taken what was read before: memory is bounded by one scratch block per
/// direction. Afterwards both sockets are closed.
///
/// Threads   its streams'.
/// Lifetime  from begin() until its owner has been told it stays where it is, and so do the streams.
/// Memory    its own; what was not taken; and while that is so a handler of Asio's.
class relaying {
public:
    class owner {
    public:
        /// It is over, and may be destroyed. From the loop, never within begin().
        virtual void on_relayed(const relay_result& how) = 0;
        /// The loop has gone while both directions waited for bytes: nobody will tell more.
        virtual void on_loop_gone() noexcept = 0;

    protected:
        ~owner() = default;
    };

    /// @param to_a  bounds what a gets, and outlives it; null: nothing does. Bytes that wait for their
    ///              turn are no quiet tunnel
    relaying(
        byte_stream& a, byte_stream& b, deadlines& timer, owner& to, rate_share* to_a = nullptr);
    relaying(const relaying&) = delete;
    relaying& operator=(const relaying&) = delete;

    /// @param from_a  read from a before
    /// @param idle    ends the tunnel when nothing moved in either direction for so long
    ///                (pace_guard); what a slow receiver acknowledges of what it was sent before has
    ///                moved too
    void begin(std::string from_a, std::string from_b, std::chrono::milliseconds idle);

private:
    /// One direction, until its source ends or either side breaks off.
    class direction final : read_wait::waiter {
    public:
        direction(relaying& whole,
                  byte_stream& from,
                  byte_stream& to,
                  rate_share* share,
                  asio::io_context& io)
            : whole_{whole},
              from_{from},
              to_{to},
              share_{share},
              readable_{io, *this} {}
        void begin(std::string first);
        [[nodiscard]] bool waits_its_turn() const noexcept {
            return share_ != nullptr && share_->is_waiting() && !rest_.empty();
        }
        std::uint64_t moved = 0;

    private:
        enum class step : std::uint8_t { goes_on, waits, broken, over };
        [[nodiscard]] step move_rest(unsigned& rounds);
        [[nodiscard]] step say_end();
        [[nodiscard]] step read_once(unsigned& rounds);
        [[nodiscard]] step wait_for_room();
        [[nodiscard]] step wait_for_turn();
        [[nodiscard]] std::size_t write(std::string_view bytes, error_code& error);
        [[nodiscard]] bool may_write(std::size_t bytes) noexcept;
        [[nodiscard]] step go_on();
        void resume(error_code over) noexcept;
        void on_readable(error_code over) override { resume(over); }
        void on_loop_gone() noexcept override { whole_.note_loop_gone(); }

        relaying& whole_;
        byte_stream& from_;
        byte_stream& to_;
        rate_share* const share_;  // null: not limited
        read_wait readable_;
        std::string rest_;  // what `to_` has not taken, from `taken_` on
        std::size_t taken_ = 0;
        bool from_ended_ = false;
    };

    [[nodiscard]] std::uint64_t moved();
    void break_off() noexcept;
    void note_over();
    void note_loop_gone() noexcept;

    owner& owner_;
    byte_stream& a_;
    byte_stream& b_;
    direction a_to_b_;
    direction b_to_a_;
    rate_share* const to_a_;
    pace_guard quiet_;
    std::uint64_t turns_awaited_ = 0;  // looks that found bytes which waited for theirs
    std::uint8_t under_way_ = 2;       // directions
    bool broken_ = false;
};

}  // namespace reprise::proxy::net
