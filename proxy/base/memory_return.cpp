#include "proxy/base/memory_return.hpp"

#include <algorithm>
#include <fstream>
#include <malloc.h>
#include <unistd.h>

namespace reprise::proxy {

bool memory_return::is_due(const look& at, steady_time now) {
    const auto here = beside(at);
    least_ = std::min(least_.value_or(here), here);
    const auto worth = static_cast<std::int64_t>(std::max(worth_it, at.resident / 16));
    if (here - *least_ < worth) {
        more_since_.reset();
        return false;
    }
    if (!more_since_) {
        more_since_ = now;
    }
    return now - *more_since_ >= lasts;
}

void memory_return::note_done(const look& after) noexcept {
    least_ = beside(after);
    more_since_.reset();
}

void give_memory_back() {
    ::malloc_trim(0);
}

std::uint64_t resident_bytes() {
    std::uint64_t pages = 0, resident_pages = 0;
    if (std::ifstream statm{"/proc/self/statm"}; statm >> pages >> resident_pages) {
        return resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    }
    return 0;
}

}  // namespace reprise::proxy
