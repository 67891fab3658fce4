#pragma once
// What the preloaded library (loop_shim.cpp) tells the bench, in one shared mapping of a file:
// for each thread of the program how long its event loop was held, and whom it waited for at locks.
//
// A thread has a slot, which it alone writes. The bench starts a measurement by raising `turn`; a
// thread that finds another turn than its slot's clears the slot first. So nothing is locked, and
// what is read are the spans of this turn, but for a span that ends while it is being read.

#include "tools/bench_proxy/span_histogram.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <sys/types.h>

namespace reprise::bench {

/// The environment's name for the file of the mapping.
inline constexpr const char* loop_times_variable = "REPRISE_LOOP_TIMES";

struct loop_times {
    static constexpr std::size_t slots = 32;
    static constexpr std::size_t places = 16;
    static constexpr std::uint64_t few = 4;
    static constexpr std::size_t long_spans = 64;
    static constexpr std::uint64_t long_from = 1'000'000;  ///< nanoseconds

    struct place {
        std::atomic<std::uint64_t> caller{0};  ///< address within the program's file, 0: none
        std::atomic<std::uint64_t> waits{0}, longest{0};  ///< nanoseconds
    };

    /// A span that held the loop for long, by the clock on the wall (CLOCK_MONOTONIC): a profile
    /// taken meanwhile (`perf record -k CLOCK_MONOTONIC`) says what was done in it.
    struct long_span {
        std::atomic<std::uint64_t> began{0}, ended{0}, held{0}, events{0};
    };

    struct slot {
        std::atomic<std::uint32_t> turn{0};  ///< that all below belongs to
        std::atomic<pid_t> thread{0};
        std::atomic<std::uint64_t> name[2];  ///< the thread's, as the kernel knows it: 15 letters
        /// The thread's own processor time, from one look at its events to the next; and by the
        /// clock on the wall, which counts blocking and what the system took for others.
        span_histogram held, passed;
        span_histogram held_by_few;  ///< held, after looks that brought at most `few` events
        std::atomic<std::uint64_t> events_at_longest{0};  ///< that its look had brought
        std::atomic<std::uint64_t> longs{0};  ///< since the turn began; the last of them are below
        std::array<long_span, long_spans> last_longs;
        /// pthread_mutex_lock: calls, those that had to wait, and for how long.
        std::atomic<std::uint64_t> locks{0};
        span_histogram waited;
        std::array<place, places> where;  ///< who called it, of those that waited
    };

    std::atomic<std::uint32_t> turn{0};
    std::atomic<std::uint32_t> taken{0};  ///< slots given away
    std::array<slot, slots> threads;
};

}  // namespace reprise::bench
