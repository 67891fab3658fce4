#pragma once
// Whole lines on their way to an output that may take them in parts, late, or not at all.
// Lines are given up only as a whole, and a line that an output took half of is ended before the
// next begins: whatever happens, every other line in the file is one that a reader can parse.

#include "proxy/base/log_output.hpp"

#include <boost/system/error_code.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy {

/// Threads: one. Memory: twice what is queued, or a megabyte more.
class line_writer {
public:
    /// Queues text; whoever calls ends it with a line's end before the next flush.
    void append(std::string_view text);

    [[nodiscard]] std::size_t queued() const noexcept { return queue_.size() - written_; }
    /// Bytes of memory, but for what its allocation keeps.
    [[nodiscard]] std::size_t held() const noexcept { return queue_.size(); }

    /// Writes until the queue is empty, or the output takes no more: then with a deadline it goes
    /// on trying until that, and drops the rest; without one it leaves the rest queued after a
    /// short wait, or at once when `wake` becomes readable. An output that fails loses what is
    /// queued.
    void flush(std::optional<std::chrono::steady_clock::time_point> deadline, int wake) noexcept;

    /// What is still queued goes to the new output.
    void replace(log_output next) noexcept;

    [[nodiscard]] const log_output& output() const noexcept { return output_; }
    [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }
    [[nodiscard]] std::uint64_t errors() const noexcept { return errors_; }
    /// The last of them; none: there was none.
    [[nodiscard]] boost::system::error_code last_error() const noexcept { return last_error_; }

private:
    void drop_queue() noexcept;
    void note_written(std::size_t bytes) noexcept;
    void forget_written();

    log_output output_;
    std::string queue_;
    std::size_t written_ = 0;  ///< of queue_
    bool mid_line_ = false;    ///< the output ends in a part of a line
    bool owes_end_ = false;    ///< the queue begins with the end of that line
    std::uint64_t dropped_ = 0;
    std::uint64_t errors_ = 0;
    boost::system::error_code last_error_;
};

}  // namespace reprise::proxy
