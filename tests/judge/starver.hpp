#pragma once
// Keeps one event loop of the program from running, again and again for a while, as a busy machine
// does: the others go on.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <sys/types.h>
#include <thread>

namespace reprise::tests::judge {

/// From construction to destruction. Does nothing where threads may not be traced.
class starver {
public:
    /// `halted` out of every `halted` + `running`.
    starver(pid_t program,
            std::size_t worker,
            std::chrono::milliseconds halted,
            std::chrono::milliseconds running);
    starver(const starver&) = delete;
    starver& operator=(const starver&) = delete;
    ~starver();

private:
    void starve(pid_t thread, std::chrono::milliseconds halted, std::chrono::milliseconds running);

    std::atomic<bool> stop_{false};
    std::thread tracer_;  // a tracer is a thread: all its calls must come from the same
};

}  // namespace reprise::tests::judge
