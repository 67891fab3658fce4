#include "proxy/base/stderr_sink.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <limits>
#include <poll.h>
#include <spdlog/pattern_formatter.h>
#include <unistd.h>

namespace reprise::proxy {

namespace {
using clock = std::chrono::steady_clock;
constexpr auto never = std::numeric_limits<clock::rep>::max();
constexpr int look_up_ms = 50;  // how soon a wait sees that leave() was called
}  // namespace

stderr_sink::stderr_sink()
    : formatter_{std::make_unique<spdlog::pattern_formatter>()},
      leave_by_{never} {}

void stderr_sink::set_pattern(const std::string& pattern) {
    formatter_ = std::make_unique<spdlog::pattern_formatter>(pattern);
}

void stderr_sink::set_formatter(std::unique_ptr<spdlog::formatter> formatter) {
    formatter_ = std::move(formatter);
}

void stderr_sink::leave(std::chrono::milliseconds most) noexcept {
    leave_by_ = (clock::now() + most).time_since_epoch().count();
}

bool stderr_sink::wait_for_room() const noexcept {
    for (;;) {
        pollfd wait{STDERR_FILENO, POLLOUT, 0};
        const auto ready = ::poll(&wait, 1, look_up_ms);
        if (ready > 0) {
            return (wait.revents & POLLOUT) != 0;
        }
        if (ready < 0 && errno != EINTR) {
            return false;
        }
        if (clock::now().time_since_epoch().count() >= leave_by_.load()) {
            return false;
        }
    }
}

bool stderr_sink::write(std::string_view text) const noexcept {
    while (!text.empty()) {
        if (!wait_for_room()) {
            return false;
        }
        // A pipe that poll calls writable takes this much without blocking.
        const auto wrote = ::write(
            STDERR_FILENO, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
        if (wrote < 0 && errno != EINTR && errno != EAGAIN) {
            return false;
        }
        text.remove_prefix(wrote > 0 ? static_cast<std::size_t>(wrote) : 0);
    }
    return true;
}

void stderr_sink::log(const spdlog::details::log_msg& line) {
    spdlog::memory_buf_t text;
    formatter_->format(line, text);
    if (!write({text.data(), text.size()})) {
        ++dropped_;
    }
}

}  // namespace reprise::proxy
