#include "proxy/base/memory_return.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fcntl.h>
#include <malloc.h>
#include <string_view>
#include <system_error>
#include <unistd.h>

namespace reprise::proxy {

bool memory_return::is_due(const look& at, steady_time now) {
    if (at.resident == 0) {
        return false;  // nobody knows, for want of a descriptor say
    }
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

// No stream, which would want memory.
std::uint64_t resident_bytes() noexcept {
    const int from = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (from < 0) {
        return 0;
    }
    std::array<char, 128> text{};
    const auto got = ::read(from, text.data(), text.size());
    ::close(from);
    const std::string_view all{text.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
    const auto second = all.find(' ');  // the first number is of all that is mapped
    std::uint64_t pages = 0;
    if (second == std::string_view::npos ||
        std::from_chars(all.data() + second + 1, all.data() + all.size(), pages).ec !=
            std::errc{}) {
        return 0;
    }
    return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace reprise::proxy
