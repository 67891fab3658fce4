#pragma once
// Standard error as a spdlog sink that can be told to stop waiting.
// Whoever reads standard error may be slow, or never read at all: a pipe whose other end is held
// open and forgotten. While the program runs the log's own thread may wait for it (the queue before
// it is bounded); when the program ends, the wait must end too.

#include <atomic>
#include <chrono>
#include <memory>
#include <spdlog/formatter.h>
#include <spdlog/sinks/sink.h>
#include <string_view>

namespace reprise::proxy {

/// Threads: `log` and `set_formatter` belong to the one thread of the log; `leave` any.
class stderr_sink final : public spdlog::sinks::sink {
public:
    stderr_sink();

    void log(const spdlog::details::log_msg& line) override;
    void flush() override {}
    void set_pattern(const std::string& pattern) override;
    void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override;

    /// From now on all lines together wait for at most `most`; what does not fit then is dropped.
    void leave(std::chrono::milliseconds most) noexcept;

    /// Lines dropped, in whole or in part. Any thread.
    [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_.load(); }

private:
    /// False when it is no use to go on.
    [[nodiscard]] bool wait_for_room() const noexcept;
    [[nodiscard]] bool write(std::string_view text) const noexcept;

    std::unique_ptr<spdlog::formatter> formatter_;
    std::atomic<std::chrono::steady_clock::rep> leave_by_;
    std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace reprise::proxy
