#pragma once
// How tests wait: for a condition, never for a time.
// Every wait is bounded by patience(), so that a proxy that hangs fails a test by name and does not
// hang the run; nothing passes because something was slept through.

#include "tests/support/under_test.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace reprise::tests {

/// How long anything that should happen at once may take on a busy machine.
inline const std::chrono::milliseconds patience{sanitized ? 30'000 : 10'000};

/// Long enough that what would happen at once has happened: for asserting that something does not.
inline const std::chrono::milliseconds a_moment{sanitized ? 600 : 200};

/// Polls until `condition()` is true; false when it is not within `limit`. Between two questions are
/// 2 ms, or six times what the question took, 100 ms at most: asking may be a request for all
/// figures, which takes the processor from what is waited for. (With four times and 50 ms such
/// questions took a quarter of a story's time under ThreadSanitizer.)
template <class Condition>
[[nodiscard]] bool eventually(Condition&& condition, std::chrono::milliseconds limit = patience) {
    using namespace std::chrono_literals;
    const auto until = std::chrono::steady_clock::now() + limit;
    while (true) {
        const auto asked = std::chrono::steady_clock::now();
        if (condition()) {
            return true;
        }
        const auto now = std::chrono::steady_clock::now();
        if (now >= until) {
            return false;
        }
        std::this_thread::sleep_for(
            std::clamp<std::chrono::steady_clock::duration>(6 * (now - asked), 2ms, 100ms));
    }
}

/// True when `condition()` stays false for `a_moment`.
template <class Condition>
[[nodiscard]] bool never_within_a_moment(Condition&& condition) {
    return !eventually(condition, a_moment);
}

/// A door between threads, closed at first. Once open it stays open. Any thread may call anything.
class gate {
public:
    void open() {
        const std::lock_guard lock{mutex_};
        open_ = true;
        opened_.notify_all();
    }

    /// False when nobody opened it in time.
    bool wait(std::chrono::milliseconds limit = patience) {
        std::unique_lock lock{mutex_};
        return opened_.wait_for(lock, limit, [this] { return open_; });
    }

private:
    std::mutex mutex_;
    std::condition_variable opened_;
    bool open_ = false;
};

}  // namespace reprise::tests
