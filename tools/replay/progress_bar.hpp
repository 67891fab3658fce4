#pragma once
// How far a run is, on a terminal only: a line that is written over. Header only: it is small.

#include <cstdio>
#include <string>
#include <unistd.h>

namespace reprise::replay {

class progress_bar {
public:
    explicit progress_bar(bool quiet) : shown_{!quiet && ::isatty(STDERR_FILENO) == 1} {}
    ~progress_bar() {
        if (shown_) {
            std::fprintf(stderr, "\r\033[K");
        }
    }
    progress_bar(const progress_bar&) = delete;
    progress_bar& operator=(const progress_bar&) = delete;

    void show(const char* what, double share) {
        constexpr int width = 40;
        const auto percent = static_cast<int>(100 * share);
        if (!shown_ || percent == last_) {
            return;
        }
        last_ = percent;
        const std::string bar(static_cast<std::size_t>(width * share), '#');
        std::fprintf(stderr, "\r%-8s [%-*s] %3d %%", what, width, bar.c_str(), percent);
    }

private:
    bool shown_;
    int last_ = -1;
};

}  // namespace reprise::replay
