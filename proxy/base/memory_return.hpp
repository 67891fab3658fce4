#pragma once
// When memory that nobody uses any more is given back to the system.
//
// glibc keeps what is freed below something that is in use: after a peak (thousands of connections
// at once, large bodies on their way, a store that was purged) the process would stay as large as
// it was. malloc_trim gives it back, page by page, and holds the lock of the heap for as long: some
// 0.15 ms per MiB that it gives, and more where what is free lies scattered. Loops that need a large
// block wait for it; hits need none. So it is called where there is something to be given, and
// seldom. What there is, is known without asking the heap: what is resident, less what is in use.

#include "proxy/base/clock.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

namespace reprise::proxy {

/// Threads: one. Cost: none.
class memory_return {
public:
    struct look {
        std::uint64_t resident = 0;  ///< bytes that the process has of the machine; 0: not known
        std::uint64_t in_use = 0;    ///< bytes of the heap that somebody has (heap_use.hpp)
    };
    static constexpr std::uint64_t worth_it = 16u << 20;  ///< bytes; and a sixteenth of the process
    static constexpr std::chrono::seconds lasts{20};

    /// Something may be given back: for `lasts`, at each look, more has been resident beside what is
    /// in use than at any look since the last time, by `worth_it` and a sixteenth of all. A peak
    /// that is over is one, whoever took it; while it lasts it is in use.
    [[nodiscard]] bool is_due(const look& at, steady_time now);
    /// It was done, and this is left.
    void note_done(const look& after) noexcept;

private:
    // What else there is (the program, stacks, arrays that were never touched) is here too, with
    // either sign, and the same at each look.
    [[nodiscard]] static std::int64_t beside(const look& at) noexcept {
        return static_cast<std::int64_t>(at.resident) - static_cast<std::int64_t>(at.in_use);
    }
    std::optional<std::int64_t> least_;  // beside what is in use, since the last; none: not begun
    std::optional<steady_time> more_since_;
};

/// How much to free between one giving back and the next, where far more than that is freed and
/// there is time for it. What a trim costs hangs on what it gives, but it also walks through all
/// that is free. What lay together and was freed in one order costs some 0.1 ms per MiB, whatever
/// the step; where what stays lies in between, the walk does not end sooner for a smaller step, and
/// steps grow, or the walks together would hold the heap for many times as long as a single one.
///
/// Threads: one. Cost: none.
class steps_of_return {
public:
    static constexpr std::uint64_t first = 8u << 20;  ///< bytes; a millisecond's work
    static constexpr std::chrono::microseconds dear_per_mib{300};

    [[nodiscard]] std::uint64_t next() const noexcept { return step_; }
    /// So long the last took.
    void note(std::chrono::nanoseconds took) noexcept {
        if (took > dear_per_mib * static_cast<std::int64_t>(step_ >> 20)) {
            step_ *= 2;
        }
    }

private:
    std::uint64_t step_ = first;
};

/// Gives back what it can. Any thread; cost as told above.
void give_memory_back();

/// What the process has of the machine's memory, by the kernel: bytes; 0 where it doesn't say.
/// Reads a file of /proc; takes no memory.
[[nodiscard]] std::uint64_t resident_bytes() noexcept;
/// The part of that which the program's own file and its libraries' have: code, and data as it is
/// in them.
[[nodiscard]] std::uint64_t resident_bytes_of_files() noexcept;

}  // namespace reprise::proxy
