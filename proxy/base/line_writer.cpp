#include "proxy/base/line_writer.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy {

namespace {

constexpr int wait_ms = 100;
constexpr std::size_t most_forgotten_late = 1 << 20;

}  // namespace

void line_writer::append(std::string_view text) {
    forget_written();
    if (queue_.empty() && mid_line_) {
        queue_.push_back('\n');  // ends what a failed write left behind
        owes_end_ = true;
    }
    queue_.append(text);
}

// The front would stay for ever where the output never takes all there is.
void line_writer::forget_written() {
    if (written_ > most_forgotten_late && written_ >= queue_.size() / 2) {
        queue_.erase(0, written_);
        written_ = 0;
    }
}

void line_writer::note_written(std::size_t bytes) noexcept {
    written_ += bytes;
    owes_end_ = false;
    mid_line_ = queue_[written_ - 1] != '\n';
}

void line_writer::flush(std::optional<std::chrono::steady_clock::time_point> deadline,
                        int wake) noexcept {
    while (queued() > 0) {
        const auto left = std::string_view{queue_}.substr(written_);
        const auto wrote = output_.write_some(left, wait_ms, deadline ? -1 : wake);
        if (wrote.bytes > 0) {
            note_written(wrote.bytes);
            continue;
        }
        if (wrote.error != boost::system::errc::operation_would_block) {
            ++errors_;
            last_error_ = wrote.error;
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
    // By whatever name, another opening of the same file ends where this one does.
    mid_line_ = mid_line_ && next.is_same_file(output_);
    output_ = std::move(next);
}

// What the output has of a line stays there, and its end is owed until it is written.
void line_writer::drop_queue() noexcept {
    const auto left = std::string_view{queue_}.substr(written_ + (owes_end_ ? 1 : 0));
    dropped_ += static_cast<std::uint64_t>(std::count(left.begin(), left.end(), '\n'));
    owes_end_ = false;
    queue_.clear();
    written_ = 0;
}

}  // namespace reprise::proxy
