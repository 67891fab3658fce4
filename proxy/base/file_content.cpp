#include "proxy/base/file_content.hpp"

#include "proxy/base/descriptor.hpp"

#include <boost/system/error_code.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace reprise::proxy {

namespace {

std::string unreadable() {
    const boost::system::error_code why{errno, boost::system::system_category()};
    return "cannot be read: " + why.message();
}

std::string in_words(std::size_t bytes) {
    return bytes % (1u << 20) == 0 ? std::to_string(bytes >> 20) + " MiB"
                                   : std::to_string(bytes) + " bytes";
}

bool is_as_it_was(const struct stat& before, const struct stat& after) noexcept {
    return after.st_size == before.st_size && after.st_mtim.tv_sec == before.st_mtim.tv_sec &&
           after.st_mtim.tv_nsec == before.st_mtim.tv_nsec;
}

// What is wrong with it; empty: nothing is.
std::string read_into(file_content& out, const std::string& path, std::size_t most) {
    // O_NONBLOCK: a pipe by that name is refused below, not waited for.
    const descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    struct stat before {};
    if (!file || ::fstat(file.get(), &before) != 0) {
        return unreadable();
    }
    if (!S_ISREG(before.st_mode)) {
        return "is no regular file";
    }
    const auto stated = static_cast<std::uint64_t>(before.st_size);
    // One byte more, by which one that grew, or whose size the system does not say (/proc), is told.
    out.bytes.resize(
        static_cast<std::size_t>(stated == 0 ? most : std::min<std::uint64_t>(stated, most)) + 1);
    std::size_t got = 0;
    while (got < out.bytes.size()) {
        const auto count = ::read(file.get(), out.bytes.data() + got, out.bytes.size() - got);
        if (count < 0 && errno != EINTR) {
            return unreadable();
        }
        if (count == 0) {
            break;
        }
        got += static_cast<std::size_t>(count < 0 ? 0 : count);
    }
    if (got > most) {
        out.is_too_long = true;
        return "is larger than " + in_words(most);
    }
    struct stat after {};
    if (::fstat(file.get(), &after) != 0) {
        return unreadable();
    }
    if ((stated != 0 && got != stated) || !is_as_it_was(before, after)) {
        return "was written while it was read; put a whole one in its place, by its name";
    }
    out.bytes.resize(got);
    return {};
}

}  // namespace

// One object from here to the caller: a short text that was moved would leave a copy behind.
file_content read_regular_file(const std::string& path, std::size_t most) {
    file_content out;
    out.wrong = read_into(out, path, most);
    if (!out.wrong.empty()) {
        ::explicit_bzero(out.bytes.data(), out.bytes.size());
        out.bytes.clear();
    }
    return out;
}

}  // namespace reprise::proxy
