#pragma once
// The thread that has what siblings are told published and told (peering's sources): ten times a
// second, and when news is due. What comes after a while of nothing is looked at at once; what comes
// one upon the other, when it may be told.

#include "proxy/base/clock.hpp"
#include "proxy/peer/news_waits.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace reprise::proxy::peer {

/// Threads   stir: any, a lock for a moment. begin and end: one, and `look` runs on the keeper's own.
class keeper {
public:
    /// When there is something to do next.
    struct plan {
        steady_time until = steady_time::max();  ///< then at the latest; not within a millisecond
        /// For each source: what comes to it from then on is looked at at once, but not within a millisecond. Never: it
        /// waits for the next look.
        std::array<steady_time, waited_for_count> from{};
    };

    /// @param every  between two looks at most
    explicit keeper(std::chrono::milliseconds every = std::chrono::milliseconds{100})
        : every_{every} {}
    ~keeper() { end(); }
    keeper(const keeper&) = delete;
    keeper& operator=(const keeper&) = delete;

    /// Begins. `look` does what is due, and says when to come again. Once. @pre it does not throw
    void begin(std::function<plan()> look);
    /// Ends the thread, when a look that runs is over; it never begins again.
    void end();

    /// Something came to this source. Maybe under the store's locks: nobody holds the guard for long, and the thread
    /// is woken once for each look.
    void stir(waited_for what);

private:
    void run();
    void doze(std::unique_lock<std::mutex>& lock, const plan& next, steady_time not_before);

    const std::chrono::milliseconds every_;
    std::mutex guard_;  // guards what follows
    std::condition_variable wake_;
    bool ending_ = false;
    std::array<bool, waited_for_count> stirred_{};
    std::array<bool, waited_for_count>
        wakes_{};  // the thread dozes, would tell of it at once, and was not woken yet
    std::function<plan()> look_;  // the thread's
    std::thread thread_;
};

}  // namespace reprise::proxy::peer
