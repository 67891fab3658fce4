// See state_file.hpp.

#include "filter/c/state_file.hpp"

#include "filter/c/face.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace reprise::filter::c {

namespace {

class open_file {
public:
    explicit open_file(int number) : number_{number} {}
    ~open_file() {
        if (number_ >= 0) {
            ::close(number_);
        }
    }
    open_file(const open_file&) = delete;
    open_file& operator=(const open_file&) = delete;
    [[nodiscard]] int number() const noexcept { return number_; }

private:
    int number_;
};

std::string folder_of(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? std::string{"."} : path.substr(0, slash + 1);
}

/// The folder's own entry: a rename that is not on disk may be lost with the machine's power.
void sync_folder_of(const std::string& path) {
    const open_file opened{::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (opened.number() >= 0) {
        (void)::fsync(opened.number());  // some file systems have none of that
    }
}

/// What `write` hands to its sink, on disk. @throws file_failure, what `write` throws
void fill(const open_file& file, const std::function<bool(const piece_sink&)>& write) {
    int failed = 0;
    const auto sink = [&](std::span<const std::byte> piece) {
        while (!piece.empty()) {
            const auto count = ::write(file.number(), piece.data(), piece.size());
            if (count < 0 && errno == EINTR) {
                continue;
            }
            if (count <= 0) {
                failed = errno;
                return false;
            }
            piece = piece.subspan(static_cast<std::size_t>(count));
        }
        return true;
    };
    if (!write(sink)) {
        throw file_failure{failed, "write"};
    }
    if (::fsync(file.number()) != 0) {
        throw file_failure{errno, "sync"};
    }
}

/// @throws file_failure, and `temporary` is gone
void take_place(const std::string& temporary, const std::string& path) {
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
        const int system = errno;
        ::unlink(temporary.c_str());
        throw file_failure{system, "rename what was written"};
    }
    sync_folder_of(path);
}

/// By a file that has no name until it is whole, so that a process that is killed in between leaves
/// nothing; false where the file system has no such files, or gives them no name (there is no
/// /proc, or whatever confines the process won't have it).
bool write_without_name(const std::string& path,
                        const std::function<bool(const piece_sink&)>& write) {
    const open_file file{
        ::open(folder_of(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR)};
    std::array<char, 32> itself{};
    (void)std::snprintf(itself.data(), itself.size(), "/proc/self/fd/%d", file.number());
    if (file.number() < 0 || ::access(itself.data(), F_OK) != 0) {
        return false;
    }
    fill(file, write);
    // A link takes no name that is there, so of two that write at once each has its own.
    for (int attempt = 0; attempt < 16; ++attempt) {
        std::uint32_t some = 0;
        if (::getrandom(&some, sizeof some, GRND_NONBLOCK) != sizeof some) {
            return false;
        }
        std::array<char, 16> end{};
        (void)std::snprintf(end.data(), end.size(), ".%08x", static_cast<unsigned>(some));
        const auto temporary = path + end.data();
        if (::linkat(AT_FDCWD, itself.data(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) ==
            0) {
            take_place(temporary, path);
            return true;
        }
        if (errno != EEXIST) {
            return false;
        }
    }
    return false;
}

}  // namespace

refusal refused_by(const file_failure& failure) {
    std::string why{failure.what};
    if (failure.system != 0) {
        why += std::string{": "} + std::strerror(failure.system);
    }
    return {REPRISE_FILE, failure.system, std::move(why)};
}

std::string put_aside(const std::string& path) {
    const auto kept = path + ".other-version";
    return std::rename(path.c_str(), kept.c_str()) == 0 ? "; it is kept as " + kept
                                                        : "; it can't be renamed";
}

void tell(reprise_error* error, const char* path, const refusal& refused) noexcept {
    fail(error,
         refused.code,
         refused.system,
         "%.100s: not used, the filter begins empty: %s",
         path,
         refused.why.c_str());
}

int not_saved(reprise_error* error, const std::string& path, const file_failure& failure) noexcept {
    return fail(error,
                REPRISE_FILE,
                failure.system,
                "%.120s: not saved: %s: %s",
                path.c_str(),
                failure.what,
                std::strerror(failure.system));
}

std::optional<std::vector<std::byte>> read_file(const std::string& path, std::uint64_t most) {
    const open_file file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file.number() < 0) {
        if (errno == ENOENT) {
            return std::nullopt;
        }
        throw file_failure{errno, "open"};
    }
    struct stat facts {};
    if (::fstat(file.number(), &facts) != 0) {
        throw file_failure{errno, "stat"};
    }
    if (!S_ISREG(facts.st_mode)) {
        throw file_failure{0, "it is no regular file"};
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(
        std::min<std::uint64_t>(static_cast<std::uint64_t>(facts.st_size), most)));
    std::size_t got = 0;
    while (got < bytes.size()) {
        const auto count = ::read(file.number(), bytes.data() + got, bytes.size() - got);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            throw file_failure{errno, "read"};
        }
        if (count == 0) {
            break;
        }
        got += static_cast<std::size_t>(count);
    }
    bytes.resize(got);
    return bytes;
}

void write_file(const std::string& path, const std::function<bool(const piece_sink&)>& write) {
    if (write_without_name(path, write)) {
        return;
    }
    // A name of its own: of two that write at once neither may rename what the other is at.
    auto temporary = path + ".XXXXXX";
    const open_file file{::mkostemp(temporary.data(), O_CLOEXEC)};  // mode 0600
    if (file.number() < 0) {
        throw file_failure{errno, "create a file beside it"};
    }
    try {
        fill(file, write);
    } catch (...) {
        ::unlink(temporary.c_str());
        throw;
    }
    take_place(temporary, path);
}

}  // namespace reprise::filter::c
