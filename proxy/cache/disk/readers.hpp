#pragma once
// Reads that may have to wait for a disk, done by a few threads so that no event loop does.
//
// The queue is bounded: what finds it full is refused, and its asker goes on without the disk. So
// is patience: a read that has not ended in time is given up by its asker, though the thread that
// does it can't be called back from the kernel. That time is counted in looks of a watcher, a quarter of
// patience apart: a process that was stopped missed them all, and holds nothing against its disk. When every thread is held by such a read, further
// ones are refused at once: a disk that hangs costs its askers one wait each, not one after
// another.
//
// Threads   submit: any. A job's two sides are its asker's event loop and one thread of the pool.
// Memory    what the jobs hold, at most `most_waiting` and one per thread. Only submit takes any: a job moves between
//           the lists by its link, so that no thread of the pool is ever short of memory for its own work.
// Errors    none: what there is no memory for is refused, and an asker that there is none to wake is woken when there
//           is some.

#include "proxy/cache/body.hpp"
#include "proxy/cache/disk/files.hpp"
#include "proxy/net/wakeup.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace reprise::proxy::cache::disk {

/// One read. The asker makes it, submits it, and looks at what() after its sleeper was notified.
class read_job {
public:
    enum class stage : std::uint8_t {
        waiting,
        done,  ///< run() has ended: the asker may look at what it left
        late,  ///< given up, by the asker or for lack of patience; run() may still be under way
    };

    explicit read_job(net::wakeup::signal sleeper) : sleeper_{std::move(sleeper)} {}
    virtual ~read_job() = default;
    read_job(const read_job&) = delete;
    read_job& operator=(const read_job&) = delete;

    [[nodiscard]] stage what() const noexcept { return stage_.load(std::memory_order_acquire); }
    /// The asker has left: nobody is notified any more.
    void abandon() noexcept { (void)end_as(stage::late); }

protected:
    /// The reading, and the verifying of what was read; what lacks memory was not read. On a thread of the pool; not
    /// at all when the job was given up before its turn.
    virtual void run() noexcept = 0;

private:
    friend class reader_pool;
    void wake() const noexcept;
    bool end_as(stage how) noexcept {
        auto expected = stage::waiting;
        return stage_.compare_exchange_strong(expected, how, std::memory_order_acq_rel);
    }

    net::wakeup::signal sleeper_;
    std::atomic<stage> stage_{stage::waiting};
    std::uint64_t since_ = 0;  // the look before it came
};

class reader_pool {
public:
    struct limits {
        std::size_t threads = 4;
        std::size_t most_waiting = 256;
        std::chrono::milliseconds patience{1000};
    };

    explicit reader_pool(limits bounds);
    ~reader_pool();  ///< stop()
    reader_pool(const reader_pool&) = delete;
    reader_pool& operator=(const reader_pool&) = delete;

    /// False: refused, for want of room, threads or memory, and nothing was kept of it. `urgent`: it
    /// belongs to a reply under way, of which there is one read at a time, so a full queue takes it
    /// nevertheless; a hanging disk does not.
    [[nodiscard]] bool submit(std::shared_ptr<read_job> job, bool urgent = false) noexcept;

    /// Ends the threads; waits for the reads they are in. What is queued ends late.
    void stop();

private:
    using jobs = std::list<std::shared_ptr<read_job>>;
    void read();
    void watch();

    const limits bounds_;
    std::mutex guard_;
    std::condition_variable work_, watched_;
    jobs waiting_;
    jobs running_;                 // in time so far
    std::size_t held_up_ = 0;      // threads whose read is late
    std::uint64_t looks_ = 0;      // that the watcher has taken
    bool watcher_sleeps_ = false;  // until a job comes
    bool stopping_ = false;
    std::vector<std::thread> threads_;
    std::thread watcher_;
};

}  // namespace reprise::proxy::cache::disk
