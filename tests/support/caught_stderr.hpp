#pragma once
// What the diagnostic log writes where no thread of its own runs: straight to standard error.

#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace reprise::tests {

/// Standard error goes here for as long as it lives; one at a time.
class caught_stderr {
public:
    caught_stderr() {
        if (file_ == nullptr) {
            throw std::runtime_error{"there is no temporary file"};
        }
        std::fflush(stderr);
        saved_ = ::dup(STDERR_FILENO);
        ::dup2(::fileno(file_), STDERR_FILENO);
    }
    ~caught_stderr() {
        std::fflush(stderr);
        ::dup2(saved_, STDERR_FILENO);
        ::close(saved_);
        std::fclose(file_);
    }
    caught_stderr(const caught_stderr&) = delete;
    caught_stderr& operator=(const caught_stderr&) = delete;

    /// All of it so far. Any thread, while another one writes.
    [[nodiscard]] std::string text() const {
        std::fflush(stderr);
        std::string out;
        char block[4096];
        for (ssize_t got = 0;
             (got = ::pread(::fileno(file_), block, sizeof block, static_cast<off_t>(out.size()))) >
             0;) {
            out.append(block, static_cast<std::size_t>(got));
        }
        return out;
    }

private:
    std::FILE* const file_ = std::tmpfile();
    int saved_ = -1;
};

}  // namespace reprise::tests
