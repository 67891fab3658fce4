// What the kernel says of this process, read from /proc: getrusage knows only the largest resident
// size there ever was, and nothing counts open descriptors but their directory.

#include "proxy/admin/stats.hpp"
#include "proxy/base/heap_use.hpp"
#include "proxy/base/memory_return.hpp"

#include <filesystem>
#include <sys/resource.h>

namespace reprise::proxy::admin {

namespace {

double seconds_of(const timeval& time) noexcept {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

process_figures read_process_figures() {
    process_figures figures;
    rusage used{};
    if (getrusage(RUSAGE_SELF, &used) == 0) {
        figures.cpu_seconds = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
    }
    figures.resident_bytes = resident_bytes();
    figures.heap_bytes = heap::in_use();
    figures.program_bytes = resident_bytes_of_files();
    std::error_code ignored;
    auto at = std::filesystem::directory_iterator{"/proc/self/fd", ignored};
    for (; !ignored && at != std::filesystem::directory_iterator{}; at.increment(ignored)) {
        ++figures.open_files;
    }
    return figures;
}

}  // namespace reprise::proxy::admin
