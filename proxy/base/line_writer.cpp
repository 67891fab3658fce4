#include "proxy/base/line_writer.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy {

namespace {

constexpr int wait_ms = 100;

}  // namespace

void line_writer::append(std::string_view text) {
    if (queue_.empty() && mid_line_) {
        queue_.push_back('\n');  // ends what a failed write left behind
        mid_line_ = false;
    }
    queue_.append(text);
}

void line_writer::flush(std::optional<std::chrono::steady_clock::time_point> deadline,
                        int wake) noexcept {
    while (queued() > 0) {
        const auto left = std::string_view{queue_}.substr(written_);
        const auto wrote = output_.write_some(left, wait_ms, deadline ? -1 : wake);
        if (wrote.bytes > 0) {
            written_ += wrote.bytes;
            continue;
        }
        if (wrote.error != boost::system::errc::operation_would_block) {
            ++errors_;
            drop_queue();
        } else if (!deadline) {
            return;
        } else if (std::chrono::steady_clock::now() >= *deadline) {
            drop_queue();
        }
    }
    queue_.clear();
    written_ = 0;
}

void line_writer::replace(log_output next) noexcept {
    output_ = std::move(next);
    mid_line_ = false;
}

void line_writer::drop_queue() noexcept {
    const auto left = std::string_view{queue_}.substr(written_);
    dropped_ += static_cast<std::uint64_t>(std::count(left.begin(), left.end(), '\n'));
    mid_line_ = mid_line_ || (written_ > 0 && queue_[written_ - 1] != '\n');
    queue_.clear();
    written_ = 0;
}

}  // namespace reprise::proxy
