#pragma once
// A process beside the bench: the programs under measurement, and loops of the bench's own that are
// to have a processor of their own. It ends when its owner goes, and when the bench dies.

#include <functional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace reprise::bench {

/// Where a process may run. `any` is all processors; so is everything on a machine that has one.
enum class processor { first, second, any };

/// Lets the calling thread, and what it starts, run there alone.
void stay_on(processor where) noexcept;

struct start_of_program {
    std::vector<std::string> words{};  ///< program and arguments; found by PATH
    std::vector<std::pair<std::string, std::string>> environment{};  ///< beside the bench's own
    std::string log{};  ///< file that takes what it prints
    processor where = processor::first;
};

class child {
public:
    child() = default;
    /// @throws std::runtime_error when no process can be made; a program that is not there ends at
    /// once, as is_running() then says
    [[nodiscard]] static child of_program(const start_of_program& start);
    /// Runs `work` in a fork of this process, which must have one thread.
    [[nodiscard]] static child of_work(processor where, const std::function<void()>& work);

    child(child&& other) noexcept : pid_{std::exchange(other.pid_, -1)} {}
    child& operator=(child&& other) noexcept;
    ~child() { stop(); }

    [[nodiscard]] pid_t pid() const noexcept { return pid_; }
    [[nodiscard]] bool is_running();
    /// SIGTERM; ten seconds later SIGKILL. Returns when it has ended.
    void stop() noexcept;

private:
    explicit child(pid_t pid) : pid_{pid} {}
    pid_t pid_ = -1;
};

/// Processor time of a process and its children, user and system, in seconds; to the nanosecond,
/// where /proc/PID/stat counts in hundredths of a second.
[[nodiscard]] double processor_seconds(pid_t pid);

/// Resident memory of a process and its children, in bytes, counted page by page: what
/// /proc/PID/statm says may be off by hundreds of pages.
[[nodiscard]] double resident_bytes(pid_t pid);

}  // namespace reprise::bench
