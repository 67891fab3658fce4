#include "proxy/base/memory_return.hpp"

#include <algorithm>
#include <fstream>
#include <malloc.h>
#include <unistd.h>

namespace reprise::proxy {

bool memory_return::is_due(const look& at, steady_time now) {
    const auto here = beside(at);
    if (!begun_) {
        note_done(at, now);
        least_ = here;
    }
    most_here_ = std::max(most_here_, at.connections);
    if (now - last_ < between) {
        return false;
    }
    const bool grew = here >= left_ + std::max(worth_it, left_ / 8);
    const bool left = most_here_ >= 256 && at.connections <= most_here_ / 2 &&
                      here >= least_ + worth_it;
    const bool still_large = here >= least_ + worth_it && now - last_ >= again_;
    if (still_large && !grew && !left) {
        again_ = std::min<std::chrono::minutes>(2 * again_, longest_wait);
    } else if (grew || left) {
        again_ = std::chrono::minutes{1};
    }
    return grew || left || still_large;
}

void memory_return::note_done(const look& after, steady_time now) {
    begun_ = true;
    left_ = beside(after);
    least_ = std::min(least_, left_);
    most_here_ = after.connections;
    last_ = now;
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
