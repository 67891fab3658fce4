#pragma once
// When memory that nobody uses any more is given back to the system.
//
// glibc keeps what is freed below something that is in use: after a peak (thousands of connections
// at once, large bodies on their way, a store that was purged) the process would stay as large as
// it was. malloc_trim gives it back, page by page, and holds the lock of the heap for as long: some
// 0.15 ms per MiB that it gives. Loops that need a large block wait for it; hits need none. So it is
// called where there is something to be given, and seldom.

#include "proxy/base/clock.hpp"

#include <chrono>
#include <cstdint>

namespace reprise::proxy {

/// Threads: one. Cost: none.
class memory_return {
public:
    /// What is known of the process without asking the heap.
    struct look {
        std::uint64_t resident = 0;     ///< bytes
        std::uint64_t stored = 0;       ///< bytes of it that the store says it holds
        std::uint64_t connections = 0;  ///< of clients
    };
    static constexpr std::uint64_t worth_it = 16u << 20;  ///< bytes
    static constexpr std::chrono::seconds between{10};
    static constexpr std::chrono::minutes longest_wait{16};

    /// Something may be given back: more is resident beside the store, by `worth_it` and an eighth,
    /// than after the last time, or half of the connections (of 256 or more) have gone since then.
    /// And while more is resident than there was at the least, once in a while: a minute after the
    /// last time, then two, up to `longest_wait`.
    [[nodiscard]] bool is_due(const look& at, steady_time now);
    /// It was done, and this is left.
    void note_done(const look& after, steady_time now);

private:
    [[nodiscard]] static std::uint64_t beside(const look& at) noexcept {
        return at.resident - (at.stored < at.resident ? at.stored : at.resident);
    }
    bool begun_ = false;
    std::uint64_t least_ = 0;      // beside the store, after any
    std::uint64_t left_ = 0;       // after the last
    std::uint64_t most_here_ = 0;  // connections, since the last
    steady_time last_{};
    std::chrono::minutes again_{1};
};

/// Gives back what it can. Any thread; cost as told above.
void give_memory_back();

/// What the process has of the machine's memory, by the kernel: bytes; 0 where it doesn't say.
/// Reads a file of /proc.
[[nodiscard]] std::uint64_t resident_bytes();

}  // namespace reprise::proxy
