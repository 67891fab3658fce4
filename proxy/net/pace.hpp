#pragma once
// Whether the other side takes what it is sent.
// What the kernel takes of us says nothing of that: its buffer swallows megabytes at once, and then
// nothing until a third of them has gone, which takes a steady slow reader a minute or more. What
// counts is what the other side has acknowledged. (Its machine may hold that back too: Linux keeps
// what it received in pieces of up to half a megabyte, and gives the room of one back when all of
// it has been read. A reader who takes longer than a period for that looks as if it stood still.)
// The kernel is asked for that only when a wait has
// lasted an eighth of its time; nearly none does.

#include "proxy/base/clock.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/deadlines.hpp"

#include <chrono>
#include <cstdint>
#include <functional>

namespace reprise::proxy::net {

/// Lets the kernel hold little of what the other side has no room for yet (TCP_NOTSENT_LOWAT), so
/// that slow readers cost little memory and what is written is soon sent. Sockets that a listening
/// one accepts have what it has, without a call of their own. Errors are ignored.
/// @param most_bytes  a batch of a body, so that the next one is there when the last has gone
void keep_little_unsent(int descriptor, int most_bytes = 128 << 10) noexcept;

/// A guard against a peer that reads too slowly: deadline::guard_rate over a figure that is looked
/// at. Its clock runs while somebody waits, from begin() to end(), and stands between these: short
/// waits add up, so that the size of the pieces that are sent is no matter; and time that a reader
/// was not waited for is not held against it.
///
/// Threads   its deadlines' one.
/// Errs      only towards patience: progress is looked for every eighth of `timeout`, so that a
///           reader is given up between `timeout` and nine eighths of it after its last.
class pace_guard {
public:
    /// Bytes that have moved so far; only differences count, modulo 2^64. It may fall back a little.
    using gauge = std::function<std::uint64_t()>;

    /// @param too_slow  as a deadline's action; deadlines::stop brings it about too
    pace_guard(deadlines& all, gauge moved, deadline::action too_slow);
    pace_guard(const pace_guard&) = delete;
    pace_guard& operator=(const pace_guard&) = delete;

    /// Until end(): `bytes_per_second` (never less than a byte in all) over each `timeout`.
    void begin(std::uint64_t bytes_per_second, std::chrono::milliseconds timeout);
    void end() noexcept;

    /// True from the moment that the action runs until the next begin().
    [[nodiscard]] bool expired() const noexcept { return next_look_.expired(); }

private:
    void look();

    deadlines& all_;
    gauge moved_;
    deadline::action too_slow_;
    deadline next_look_;
    std::chrono::milliseconds timeout_{0};
    std::uint64_t enough_ = 0;
    std::uint64_t moved_before_ = 0;
    unsigned looks_left_ = 0;  // 0: none yet, so that nobody knows what has moved
    steady_time look_at_{};
    steady_time::duration look_in_{0};  // while nobody waits
};

}  // namespace reprise::proxy::net
