#pragma once
// A file descriptor that lines are written to, without ever waiting in it for longer than asked.
// Regular files take what they are given. A pipe, socket or terminal may have nobody at its other
// end, so those are polled and then given at most what a ready pipe takes without blocking
// (PIPE_BUF): standard output is shared with whoever started us, so it cannot be made non-blocking.

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace reprise::proxy {

class log_output {
public:
    /// Nowhere: takes everything and keeps nothing.
    log_output() = default;
    ~log_output();
    log_output(log_output&& other) noexcept;
    log_output& operator=(log_output&& other) noexcept;

    /// "-": standard output, "off": nowhere, else a file to append to, made (0640) if absent.
    [[nodiscard]] static boost::system::result<log_output> open(const std::string& target);

    struct written {
        std::size_t bytes = 0;
        boost::system::error_code error;  ///< would_block: not ready within the time
    };
    /// Writes part of `text`; waits at most `wait_ms` for the other end, or until `wake` is
    /// readable (a descriptor, -1 for none).
    [[nodiscard]] written write_some(std::string_view text, int wait_ms, int wake) noexcept;

    [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
    /// Both write to one file, by whatever name it was opened.
    [[nodiscard]] bool is_same_file(const log_output& other) const noexcept;
    /// The file's name; empty when it is no file of its own.
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
    int fd_ = -1;
    bool may_wait_ = false;
    std::string path_;
};

}  // namespace reprise::proxy
