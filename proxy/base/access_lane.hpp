#pragma once
// The ring of bytes between one thread that logs and the thread that writes.
// One producer, one consumer: positions only grow, each is written by one side, and what lies
// between them belongs to the consumer. No lock, and no write of one side waits for the other.

#include "proxy/base/counters.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace reprise::proxy {

class access_lane {
public:
    explicit access_lane(std::size_t bytes)
        : size_{bytes},
          ring_{std::make_unique_for_overwrite<char[]>(bytes)} {}

    /// Producer. False: there is no room for all of it, and none of it was taken.
    [[nodiscard]] bool push(std::string_view line) noexcept {
        const auto head = head_.load(std::memory_order_relaxed);
        const auto used = head - tail_.load(std::memory_order_acquire);
        if (line.size() > size_ - used) {
            return false;
        }
        const auto at = head % size_;
        const auto before_wrap = std::min(line.size(), size_ - at);
        std::memcpy(ring_.get() + at, line.data(), before_wrap);
        std::memcpy(ring_.get(), line.data() + before_wrap, line.size() - before_wrap);
        head_.store(head + line.size(), std::memory_order_release);
        return true;
    }

    /// Either side: whether so much is used that the consumer should not wait for its next round.
    [[nodiscard]] bool half_full() const noexcept {
        const auto tail = tail_.load(std::memory_order_relaxed);
        return head_.load(std::memory_order_relaxed) - tail >= size_ / 2;
    }

    /// Where the producer has got to, in bytes since the lane began. Any thread.
    [[nodiscard]] std::size_t head() const noexcept {
        return head_.load(std::memory_order_acquire);
    }

    /// Consumer: the bytes not yet taken that come before position `end`, as far as they lie in one
    /// piece. Empty when there are none.
    [[nodiscard]] std::string_view peek(std::size_t end) const noexcept {
        const auto tail = tail_.load(std::memory_order_relaxed);
        if (static_cast<std::ptrdiff_t>(end - tail) <= 0) {
            return {};
        }
        const auto at = tail % size_;
        return {ring_.get() + at, std::min(end - tail, size_ - at)};
    }

    [[nodiscard]] bool empty() const noexcept { return peek(head()).empty(); }

    /// Consumer: gives `bytes` of what it saw back to the producer.
    void take(std::size_t bytes) noexcept {
        tail_.store(tail_.load(std::memory_order_relaxed) + bytes, std::memory_order_release);
    }

    std::string scratch;  ///< producer's: where its line is made before it is known to fit
    counter lines;        ///< producer's: handed over, dropped ones included
    counter dropped;      ///< producer's: of those, found no room
    std::atomic<bool> abandoned{false};  ///< its thread has ended: drain it, then forget it

private:
    const std::size_t size_;
    const std::unique_ptr<char[]> ring_;
    alignas(64) std::atomic<std::size_t> head_{0};
    alignas(64) std::atomic<std::size_t> tail_{0};
};

}  // namespace reprise::proxy
