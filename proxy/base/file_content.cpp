#include "proxy/base/file_content.hpp"

#include "proxy/base/descriptor.hpp"

#include <boost/system/error_code.hpp>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace reprise::proxy {

namespace {

file_content unreadable() {
    const boost::system::error_code why{errno, boost::system::system_category()};
    return {.wrong = "cannot be read: " + why.message()};
}

bool is_as_it_was(const struct stat& before, const struct stat& after) noexcept {
    return after.st_size == before.st_size && after.st_mtim.tv_sec == before.st_mtim.tv_sec &&
           after.st_mtim.tv_nsec == before.st_mtim.tv_nsec;
}

}  // namespace

file_content read_regular_file(const std::string& path, std::size_t most) {
    // O_NONBLOCK: a pipe by that name is refused below, not waited for.
    const descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    struct stat before {};
    if (!file || ::fstat(file.get(), &before) != 0) {
        return unreadable();
    }
    if (!S_ISREG(before.st_mode)) {
        return {.wrong = "is no regular file"};
    }
    if (static_cast<std::uint64_t>(before.st_size) > most) {
        return {.wrong = "is larger than " + std::to_string(most) + " bytes", .is_too_long = true};
    }
    file_content out;
    out.bytes.resize(static_cast<std::size_t>(before.st_size));
    std::size_t got = 0;
    while (got < out.bytes.size()) {
        const auto count = ::read(file.get(), out.bytes.data() + got, out.bytes.size() - got);
        if (count < 0 && errno != EINTR) {
            const auto why = unreadable();
            ::explicit_bzero(out.bytes.data(), out.bytes.size());
            return why;
        }
        if (count == 0) {
            break;
        }
        got += static_cast<std::size_t>(count < 0 ? 0 : count);
    }
    struct stat after {};
    if (::fstat(file.get(), &after) != 0) {
        return unreadable();
    }
    if (got < out.bytes.size() || !is_as_it_was(before, after)) {
        ::explicit_bzero(out.bytes.data(), out.bytes.size());
        return {
            .wrong = "was written while it was read; put a whole one in its place, by its name"};
    }
    return out;
}

}  // namespace reprise::proxy
