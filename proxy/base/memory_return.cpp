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

namespace {

// The `which`-th number of /proc/self/statm, in bytes: the second is what is resident, the third what
// of it is of files. No stream, which would want memory.
std::uint64_t statm(std::size_t which) noexcept {
    const int from = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (from < 0) {
        return 0;
    }
    std::array<char, 128> text{};
    const auto got = ::read(from, text.data(), text.size());
    ::close(from);
    std::string_view rest{text.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
    for (; which > 1; --which) {
        const auto space = rest.find(' ');
        if (space == std::string_view::npos) {
            return 0;
        }
        rest.remove_prefix(space + 1);
    }
    std::uint64_t pages = 0;
    if (std::from_chars(rest.data(), rest.data() + rest.size(), pages).ec != std::errc{}) {
        return 0;
    }
    return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

std::uint64_t resident_bytes() noexcept {
    return statm(2);
}

std::uint64_t resident_bytes_of_files() noexcept {
    return statm(3);
}

}  // namespace reprise::proxy
