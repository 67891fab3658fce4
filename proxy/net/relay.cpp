#include "proxy/net/relay.hpp"

#include "proxy/net/io.hpp"

#include <array>
#include <string_view>
#include <utility>

// Each direction is a machine of three steps: write what rests, say the end, read once. It goes on
// until a step waits, for bytes, for room or for its turn; the wait's handler resumes it. The whole
// is over when both directions are.

namespace reprise::proxy::net {
namespace {

constexpr std::size_t scratch_bytes = 64 << 10;
constexpr unsigned most_rounds = 16;  // blocks moved before the loop's other work has its turn

/// Filled and emptied between two waits only, so that all tunnels of a thread can share it.
std::array<char, scratch_bytes>& scratch() {
    static thread_local std::array<char, scratch_bytes> block;
    return block;
}

}  // namespace

relaying::relaying(byte_stream& a, byte_stream& b, deadlines& timer, owner& to, rate_share* to_a)
    : owner_{to},
      a_{a},
      b_{b},
      a_to_b_{*this, a, b, nullptr, timer.io()},
      b_to_a_{*this, b, a, to_a, timer.io()},
      to_a_{to_a},
      quiet_{timer, [this] { return moved(); }, [this] { break_off(); }} {}

void relaying::begin(std::string from_a, std::string from_b, std::chrono::milliseconds idle) {
    keep_little_unsent(b_.native_handle());
    quiet_.begin(0, idle);
    a_to_b_.begin(std::move(from_a));
    b_to_a_.begin(std::move(from_b));
}

std::uint64_t relaying::moved() {
    turns_awaited_ += b_to_a_.waits_its_turn() ? 1 : 0;
    return 2 * (a_to_b_.moved + b_to_a_.moved) + turns_awaited_ - not_acknowledged(a_) -
           not_acknowledged(b_);
}

// Whoever waits is told of it by the loop.
void relaying::break_off() noexcept {
    broken_ = true;
    if (to_a_ != nullptr) {
        to_a_->end_wait();
    }
    a_.reset();
    b_.reset();
}

void relaying::note_over() {
    if (--under_way_ > 0) {
        return;
    }
    quiet_.end();
    error_code ignored;
    a_.close(ignored);
    b_.close(ignored);
    const auto end = quiet_.expired() ? relay_end::timed_out
                     : broken_        ? relay_end::reset
                                      : relay_end::finished;
    owner_.on_relayed({a_to_b_.moved, b_to_a_.moved, end});
}

void relaying::note_loop_gone() noexcept {
    if (--under_way_ == 0) {
        owner_.on_loop_gone();
    }
}

void relaying::direction::begin(std::string first) {
    rest_ = std::move(first);
    readable_.start_at_once();
}

// Its last word may be the whole's end.
void relaying::direction::resume(error_code over) noexcept {
    auto next = step::broken;
    if (!over) {
        try {
            next = go_on();
        } catch (const std::bad_alloc&) {
            next = step::broken;
        }
    }
    if (next == step::waits) {
        return;
    }
    if (next == step::broken) {
        whole_.break_off();
    }
    whole_.note_over();
}

relaying::direction::step relaying::direction::go_on() {
    for (unsigned rounds = 0;;) {
        const auto next = !rest_.empty() ? move_rest(rounds)
                          : from_ended_  ? say_end()
                                         : read_once(rounds);
        if (next != step::goes_on) {
            return next;
        }
    }
}

// Piece by piece, so that a slow receiver counts as progress; and no more of them than blocks, for one that
// makes room as fast as it is filled would have the loop for itself.
relaying::direction::step relaying::direction::move_rest(unsigned& rounds) {
    error_code error;
    const auto left = std::string_view{rest_}.substr(taken_);
    const auto taken = write(left, error);
    if (error) {
        return step::broken;
    }
    taken_ += taken;
    if (taken_ < rest_.size()) {
        if (taken == 0) {
            return may_write(left.size()) ? wait_for_room() : wait_for_turn();
        }
        if (++rounds < most_rounds) {
            return step::goes_on;
        }
        readable_.start_at_once();
        return step::waits;
    }
    std::string{}.swap(rest_);
    taken_ = 0;
    return step::goes_on;
}

relaying::direction::step relaying::direction::say_end() {
    error_code error;
    if (to_.try_end(error)) {
        return step::over;
    }
    return error ? step::broken : wait_for_room();
}

// Where a reading has just found nothing, and no end, what comes next is told without being asked
// for. One that took bytes may have left an end behind them.
relaying::direction::step relaying::direction::read_once(unsigned& rounds) {
    error_code error;
    const auto count = from_.try_read(asio::buffer(scratch()), error);
    if (error == asio::error::eof) {
        from_ended_ = true;
        return step::goes_on;
    }
    if (error) {
        return step::broken;
    }
    if (count > 0) {
        const auto taken = write({scratch().data(), count}, error);
        if (error) {
            return step::broken;
        }
        if (taken < count) {
            rest_.assign(scratch().data() + taken, count - taken);
            ++rounds;
            return step::goes_on;
        }
        if (++rounds < most_rounds) {
            return step::goes_on;
        }
    }
    from_.wait_readable(readable_, count == 0);
    return step::waits;
}

bool relaying::direction::may_write(std::size_t bytes) noexcept {
    return share_ == nullptr || share_->may_send(bytes) > 0;
}

// What was taken: nothing may be as much as the receiver may have now.
std::size_t relaying::direction::write(std::string_view bytes, error_code& error) {
    if (share_ != nullptr) [[unlikely]] {
        bytes = bytes.substr(0, share_->may_send(bytes.size()));
        if (bytes.empty()) {
            return 0;
        }
    }
    const auto taken = to_.try_write(asio::buffer(bytes), error);
    moved += taken;
    if (share_ != nullptr) [[unlikely]] {
        share_->note_sent(taken);
    }
    return taken;
}

// Nothing would tell it that the socket has gone.
relaying::direction::step relaying::direction::wait_for_turn() {
    if (whole_.broken_) {
        return step::broken;
    }
    share_->wait([this](const error_code& over) { resume(over); });
    return step::waits;
}

relaying::direction::step relaying::direction::wait_for_room() {
    to_.wait_writable([this](const error_code& over) { resume(over); });
    return step::waits;
}

}  // namespace reprise::proxy::net
