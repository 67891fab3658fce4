#pragma once
// The access log: one line per request (log.format), written by a thread of its own.
// An event loop must never wait for a disk or a pipe. So each thread that logs has a lane: a ring
// of bytes that it fills and the log's thread empties, without a lock between them. A line that
// finds no room is dropped and counted. The log's thread looks at the lanes a few times a second,
// and at once when one is half full, so that a line costs its formatting and one copy.
// Lines of one thread keep their order; between threads the order is that of emptying: sort by
// time.

#include "config/options.hpp"
#include "proxy/base/access_line.hpp"
#include "proxy/base/clock.hpp"

#include <boost/system/error_code.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace reprise::proxy {

/// All since start.
struct access_log_figures {
    std::uint64_t lines = 0;  ///< handed over
    std::uint64_t dropped =
        0;  ///< of those: no room, since the writer did not keep up, or not written
    std::uint64_t errors = 0;  ///< writes and reopenings that failed

    struct refusal {
        boost::system::error_code why;
        steady_time at;
    };
    std::optional<refusal> last_refusal{};  ///< of a write; none: none failed
};

class access_log {
public:
    static constexpr std::size_t lane_bytes = std::size_t{1} << 20;

    /// Off until `retarget`. Starts the log's thread at the first target.
    access_log();
    /// Like stop().
    ~access_log();
    access_log(const access_log&) = delete;
    access_log& operator=(const access_log&) = delete;

    /// False: `write` would do nothing, so that a caller need not gather a record. One relaxed
    /// load.
    [[nodiscard]] bool enabled() const noexcept { return enabled_.load(std::memory_order_relaxed); }

    /// How many requests a line of this one would stand for; 0: it leaves none (log.sample). Each
    /// thread counts its own. Failures always leave one, and stand
    /// for themselves. Any thread.
    [[nodiscard]] unsigned weight_of(outcome how, unsigned status) const noexcept;
    /// Whether a line of the format in force has the response's Content-Type.
    [[nodiscard]] bool wants_content_type() const noexcept {
        return enabled() && format_.load(std::memory_order_relaxed) == config::log_format::squid;
    }

    /// Hands a line over. Any thread; never blocks, and allocates only when a thread logs for the
    /// first time (its lane). Drops and counts what finds no room.
    void write(const access_record& record) noexcept;

    /// Where lines go from now on: "-" is standard output, "off" nowhere, else a file, appended to
    /// (made with mode 0640 if absent); in which format, how many, and whether with query values. Lines already handed
    /// over go where they were going. At start and on a reload, from one thread at a time.
    /// Fails when the file cannot be opened, or there is no thread to be had: then everything stays as it was.
    [[nodiscard]] boost::system::error_code retarget(const config::log_options& wanted);
    /// All of `wanted` but the target. At start and on a reload, from one thread at a time.
    void adopt(const config::log_options& wanted) noexcept;

    /// SIGUSR1: the file is opened anew by its name before the next line, since logrotate may have
    /// moved it. Any thread (not a signal handler). If that fails the old file goes on being
    /// written.
    void reopen() noexcept;

    /// Writes what was handed over, at most for about two seconds, and ends the thread. What is
    /// written later is dropped. Idempotent.
    void stop() noexcept;

    [[nodiscard]] access_log_figures figures() const noexcept;

private:
    class writer;
    std::atomic<bool> enabled_{false};
    std::atomic<bool> query_values_{false};
    std::atomic<config::log_format> format_{config::log_format::json};
    std::atomic<unsigned> sample_{1};
    std::unique_ptr<writer> writer_;
};

}  // namespace reprise::proxy
