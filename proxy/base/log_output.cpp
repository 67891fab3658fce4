#include "proxy/base/log_output.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace reprise::proxy {

namespace {

boost::system::error_code last_error() noexcept {
    return {errno, boost::system::system_category()};
}

bool is_regular(int fd) noexcept {
    struct stat about {};
    return fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
}

}  // namespace

log_output::~log_output() {
    if (fd_ >= 0 && fd_ != STDOUT_FILENO) {
        ::close(fd_);
    }
}

log_output::log_output(log_output&& other) noexcept
    : fd_{std::exchange(other.fd_, -1)},
      may_wait_{other.may_wait_},
      path_{std::move(other.path_)} {}

log_output& log_output::operator=(log_output&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(may_wait_, other.may_wait_);
    std::swap(path_, other.path_);
    return *this;
}

boost::system::result<log_output> log_output::open(const std::string& target) {
    log_output output;
    if (target == "off") {
        return output;
    }
    if (target == "-") {
        output.fd_ = STDOUT_FILENO;
    } else {
        // O_NONBLOCK: a FIFO without a reader is an error (ENXIO) instead of a wait.
        constexpr auto flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
        output.fd_ = ::open(target.c_str(), flags, 0640);
        if (output.fd_ < 0) {
            return last_error();
        }
        output.path_ = target;
    }
    output.may_wait_ = !is_regular(output.fd_);
    return output;
}

namespace {
// What a pipe takes at once, and not in the middle of a line: what another process, or another thread by another name for it,
// writes meanwhile comes behind. A line that is longer has no better place to be cut.
std::size_t whole_lines_within(std::string_view text, std::size_t most) noexcept {
    if (text.size() <= most) {
        return text.size();
    }
    const auto end = text.substr(0, most).rfind('\n');
    return end == std::string_view::npos ? most : end + 1;
}
}  // namespace

bool log_output::is_same_file(const log_output& other) const noexcept {
    struct stat mine {
    }, theirs{};
    return ::fstat(fd_, &mine) == 0 && ::fstat(other.fd_, &theirs) == 0 &&
           mine.st_dev == theirs.st_dev && mine.st_ino == theirs.st_ino;
}

log_output::written log_output::write_some(std::string_view text, int wait_ms, int wake) noexcept {
    if (fd_ < 0) {
        return {text.size(), {}};
    }
    auto size = text.size();
    if (may_wait_) {
        pollfd waits[] = {{fd_, POLLOUT, 0}, {wake, POLLIN, 0}};
        const auto ready = ::poll(waits, 2, wait_ms);
        if (ready < 0 && errno != EINTR) {
            return {0, last_error()};
        }
        if (ready <= 0 || waits[0].revents == 0) {
            return {0, make_error_code(boost::system::errc::operation_would_block)};
        }
        size = whole_lines_within(text, PIPE_BUF);
    }
    const auto wrote = ::write(fd_, text.data(), size);
    if (wrote < 0) {
        if (errno == EINTR || errno == EAGAIN) {
            return {0, make_error_code(boost::system::errc::operation_would_block)};
        }
        return {0, last_error()};
    }
    return {static_cast<std::size_t>(wrote), {}};
}

}  // namespace reprise::proxy
