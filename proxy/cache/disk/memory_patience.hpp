#pragma once
// Does again what lacked memory, a while later, until there is some: for a thread whose work is to be done
// once, and which nobody waits for.
//
// Threads   with_memory: one; all else: any.

#include "proxy/base/log.hpp"
#include "proxy/base/relaxed.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <string>

namespace reprise::proxy::cache::disk {

class memory_patience {
public:
    struct waits {
        std::chrono::milliseconds first, most;  ///< twice as long each time
    };
    /// `lacks` is true while it waits. Both outlive this, as does `path`, for the log.
    memory_patience(const std::string& path, waits between, std::atomic<bool>& lacks) noexcept
        : path_{path},
          between_{between},
          lacks_{lacks} {}

    /// Does the step, once more after each std::bad_alloc. False: stopped before it was done.
    template <class Step>
    bool with_memory(const Step& step) {
        for (auto wait = between_.first;; wait = std::min(2 * wait, between_.most)) {
            try {
                step();
                if (lacks_.load(relaxed)) {
                    lacks_.store(false, relaxed);
                }
                return true;
            } catch (const std::bad_alloc&) {
                if (!waits_for_memory(wait)) {
                    return false;
                }
            }
        }
    }

    void stop() noexcept {
        {
            const std::lock_guard lock{guard_};
            stopped_.store(true, relaxed);
        }
        stop_.notify_all();
    }
    [[nodiscard]] bool is_stopped() const noexcept { return stopped_.load(relaxed); }

private:
    // False: stopped.
    bool waits_for_memory(std::chrono::milliseconds wait) {
        if (!lacks_.exchange(true, relaxed)) {
            log::warn(
                "disk: ", path_, ": no memory to read what is there; tried again until there is");
        }
        std::unique_lock lock{guard_};
        return !stop_.wait_for(lock, wait, [this] { return is_stopped(); });
    }

    const std::string& path_;
    const waits between_;
    std::atomic<bool>& lacks_;
    std::mutex guard_;
    std::condition_variable stop_;
    std::atomic<bool> stopped_{false};
};

}  // namespace reprise::proxy::cache::disk
