#include "proxy/cache/admission/admission_file.hpp"

#include "filter/admission_state.hpp"
#include "proxy/base/descriptor.hpp"
#include "proxy/base/log.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <span>
#include <sys/stat.h>
#include <unistd.h>

namespace reprise::proxy::cache {

namespace {

boost::system::error_code last_error() {
    return {errno, boost::system::system_category()};
}

}  // namespace

std::optional<std::vector<std::byte>> read_state(const std::string& path, std::uint64_t most) {
    // O_NONBLOCK: a pipe by that name is refused below, not waited for.
    const descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file.get() < 0) {
        if (errno != ENOENT) {
            log::warn("admission.state: cannot read ",
                      path,
                      ": ",
                      last_error().message(),
                      "; the filter starts empty");
        }
        return std::nullopt;
    }
    struct stat facts {};
    if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        log::warn("admission.state: ", path, " is no regular file; the filter starts empty");
        return std::nullopt;
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(
        std::min<std::uint64_t>(static_cast<std::uint64_t>(facts.st_size), most)));
    std::size_t got = 0;
    while (got < bytes.size()) {
        const auto count = ::read(file.get(), bytes.data() + got, bytes.size() - got);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            break;
        }
        got += static_cast<std::size_t>(count);
    }
    bytes.resize(got);
    return bytes;
}

void put_aside(const std::string& path) {
    const auto kept = path + ".other-version";
    if (std::rename(path.c_str(), kept.c_str()) != 0) {
        log::error("admission.state: cannot rename ", path, ": ", last_error().message());
        return;
    }
    log::warn("admission.state: ", path, " is kept as ", kept);
}

boost::system::error_code write_state(const std::string& path,
                                      const filter::admission_filter& state,
                                      const filter::hash_seed& seed) {
    const auto temporary = path + ".new";
    {
        ::unlink(temporary.c_str());
        const descriptor file{
            ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
        if (file.get() < 0) {
            return last_error();
        }
        boost::system::error_code failed;
        const auto sink = [&](std::span<const std::byte> piece) {
            while (!piece.empty()) {
                const auto count = ::write(file.get(), piece.data(), piece.size());
                if (count < 0 && errno == EINTR) {
                    continue;
                }
                if (count <= 0) {
                    failed = last_error();
                    return false;
                }
                piece = piece.subspan(static_cast<std::size_t>(count));
            }
            return true;
        };
        if (!filter::encode(state, seed, sink) || ::fsync(file.get()) != 0) {
            if (!failed) {
                failed = last_error();
            }
            ::unlink(temporary.c_str());
            return failed;
        }
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
        const auto failed = last_error();
        ::unlink(temporary.c_str());
        return failed;
    }
    return {};
}

}  // namespace reprise::proxy::cache
