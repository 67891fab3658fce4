#include "proxy/cache/disk/files.hpp"

#include "proxy/base/descriptor.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

// These are the system's files. A call is repeated only where a signal interrupted it; what was
// done in part is the caller's to go on with. Opening follows no link, and neither waits for nor
// takes what is no regular file.

namespace reprise::proxy::cache::disk {

namespace {

error_code last_error() {
    return {errno, boost::system::system_category()};
}

// Bytes of a file that may be on their way to the disk: enough to keep it busy, and little beside
// what a machine lets be dirty.
constexpr std::uint64_t most_dirty = 64u << 20;

struct closing {
    void operator()(DIR* open) const noexcept { ::closedir(open); }
};

error_code of(int result) {
    return result == 0 ? error_code{} : last_error();
}

/// Calls `attempt` until it is not interrupted by a signal.
template <class Attempt>
boost::system::result<std::size_t> transferred(const Attempt& attempt) {
    for (;;) {
        const auto count = attempt();
        if (count >= 0) {
            return static_cast<std::size_t>(count);
        }
        if (errno != EINTR) {
            return last_error();
        }
    }
}

class system_file final : public file {
public:
    system_file(descriptor fd,
                std::shared_ptr<filesystem> owner,
                std::atomic<std::uint64_t>& written)
        : fd_{std::move(fd)},
          owner_{std::move(owner)},
          written_{written} {}

    boost::system::result<std::size_t> read_some(std::uint64_t at,
                                                 std::span<std::byte> into) noexcept override {
        return transferred(
            [&] { return ::pread(fd_.get(), into.data(), into.size(), static_cast<off_t>(at)); });
    }

    boost::system::result<std::size_t> read_cached(std::uint64_t at,
                                                   std::span<std::byte> into) noexcept override {
        const iovec place{into.data(), into.size()};
        return cached(at, &place, 1);
    }

    boost::system::result<std::size_t> scatter_some(std::uint64_t at,
                                                    places into) noexcept override {
        const auto all = gathered(into);
        const auto count = static_cast<int>(into.size());
        return transferred(
            [&] { return ::preadv(fd_.get(), all.data(), count, static_cast<off_t>(at)); });
    }

    boost::system::result<std::size_t> scatter_cached(std::uint64_t at,
                                                      places into) noexcept override {
        const auto all = gathered(into);
        return cached(at, all.data(), static_cast<int>(into.size()));
    }

    boost::system::result<std::size_t> write_some(
        std::uint64_t at, std::span<const std::byte> bytes) noexcept override {
        auto count = transferred([&] {
            return ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
        });
        if (count) {
            written_.fetch_add(*count, std::memory_order_relaxed);
        }
        return count;
    }

    error_code sync() noexcept override { return of(::fdatasync(fd_.get())); }

    void write_out(std::uint64_t at, std::uint64_t size) noexcept override {
        // The last stretch begins, what is far behind is waited for. A failure shows in sync().
        (void)::sync_file_range(
            fd_.get(), static_cast<off_t>(at), static_cast<off_t>(size), SYNC_FILE_RANGE_WRITE);
        if (at > most_dirty) {
            (void)::sync_file_range(
                fd_.get(), 0, static_cast<off_t>(at - most_dirty), SYNC_FILE_RANGE_WAIT_BEFORE);
        }
    }

    error_code reserve(std::uint64_t size) noexcept override {
        const auto failed = of(::fallocate(fd_.get(), 0, 0, static_cast<off_t>(size)));
        if (failed == boost::system::errc::operation_not_supported) {
            return resize(size);
        }
        return failed;
    }

    error_code resize(std::uint64_t size) noexcept override {
        return of(::ftruncate(fd_.get(), static_cast<off_t>(size)));
    }

    boost::system::result<std::uint64_t> size() noexcept override {
        struct stat facts {};
        if (::fstat(fd_.get(), &facts) != 0) {
            return last_error();
        }
        return static_cast<std::uint64_t>(facts.st_size);
    }

    error_code try_lock() noexcept override { return of(::flock(fd_.get(), LOCK_EX | LOCK_NB)); }

    error_code try_lock_shared() noexcept override {
        return of(::flock(fd_.get(), LOCK_SH | LOCK_NB));
    }

private:
    using system_places = std::array<iovec, most_places>;
    static system_places gathered(places into) noexcept {
        assert(into.size() <= most_places);
        system_places all{};
        std::transform(into.begin(), into.end(), all.begin(), [](const auto& place) {
            return iovec{place.data(), place.size()};
        });
        return all;
    }

    boost::system::result<std::size_t> cached(std::uint64_t at,
                                              const iovec* places,
                                              int count) noexcept {
        const auto read = ::preadv2(fd_.get(), places, count, static_cast<off_t>(at), RWF_NOWAIT);
        if (read >= 0) {
            return static_cast<std::size_t>(read);
        }
        // Where the file system has no such reads (EOPNOTSUPP), everything may have to wait.
        if (errno == EOPNOTSUPP || errno == EINTR || errno == ENOSYS) {
            return boost::system::errc::make_error_code(
                boost::system::errc::resource_unavailable_try_again);
        }
        return last_error();
    }

    descriptor fd_;
    std::shared_ptr<filesystem> owner_;
    std::atomic<std::uint64_t>& written_;
};

class system_filesystem final : public filesystem,
                                public std::enable_shared_from_this<system_filesystem> {
public:
    boost::system::result<std::shared_ptr<file>> open(const std::string& path,
                                                      open_mode mode) override {
        int flags = O_CLOEXEC | O_NOFOLLOW;
        switch (mode) {
        case open_mode::read: flags |= O_RDONLY; break;
        case open_mode::update: flags |= O_RDWR; break;
        case open_mode::make: flags |= O_RDWR | O_CREAT; break;
        }
        // O_NONBLOCK: a pipe by that name is refused below, not waited for.
        descriptor opened{::open(path.c_str(), flags | O_NONBLOCK, 0600)};
        if (!opened) {
            return last_error();
        }
        struct stat facts {};
        if (::fstat(opened.get(), &facts) != 0) {
            return last_error();
        }
        if (!S_ISREG(facts.st_mode)) {
            return boost::system::errc::make_error_code(boost::system::errc::invalid_argument);
        }
        return std::shared_ptr<file>{
            std::make_shared<system_file>(std::move(opened), shared_from_this(), written_)};
    }

    error_code make_directory(const std::string& path) override {
        for (auto slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
            const auto part = path.substr(0, slash);
            if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
                // A parent on a read-only file system may say so before it says that it exists.
                const auto failed = last_error();
                struct stat facts {};
                if (::stat(part.c_str(), &facts) != 0) {
                    return failed;
                }
            }
            if (slash == std::string::npos) {
                return {};
            }
        }
    }

    boost::system::result<std::vector<std::string>> list(const std::string& path) override {
        const std::unique_ptr<DIR, closing> directory{::opendir(path.c_str())};
        if (!directory) {
            return last_error();
        }
        std::vector<std::string> names;
        // A directory stream of our own: readdir is as safe as readdir_r was.
        while (const auto* entry = ::readdir(directory.get())) {  // NOLINT(concurrency-mt-unsafe)
            std::string name{entry->d_name};
            if (name != "." && name != "..") {
                names.push_back(std::move(name));
            }
        }
        return names;
    }

    error_code rename(const std::string& from, const std::string& to) noexcept override {
        return of(::rename(from.c_str(), to.c_str()));
    }

    error_code remove(const std::string& path) noexcept override {
        return of(::unlink(path.c_str()));
    }

    error_code sync_directory(const std::string& path) noexcept override {
        const descriptor directory{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
        return directory ? of(::fsync(directory.get())) : last_error();
    }
};

}  // namespace

bool is_no_room(const error_code& error) noexcept {
    return error == boost::system::errc::no_space_on_device ||
           (error.category() == boost::system::system_category() && error.value() == EDQUOT);
}

error_code read_all(file& from, std::uint64_t at, std::span<std::byte> into) noexcept {
    while (!into.empty()) {
        const auto count = from.read_some(at, into);
        if (!count) {
            return count.error();
        }
        if (*count == 0) {
            return boost::system::errc::make_error_code(boost::system::errc::no_message_available);
        }
        at += *count;
        into = into.subspan(*count);
    }
    return {};
}

// One call as a rule. Where it did less than it was asked the rest is read place by place.
error_code read_all(file& from, std::uint64_t at, file::places into) noexcept {
    const auto count = from.scatter_some(at, into);
    if (!count) {
        return count.error();
    }
    auto there = *count;
    for (const auto& place : into) {
        const auto of_it = std::min(there, place.size());
        if (const auto failed = read_all(from, at + of_it, place.subspan(of_it))) {
            return failed;
        }
        there -= of_it;
        at += place.size();
    }
    return {};
}

error_code write_all(file& to, std::uint64_t at, std::span<const std::byte> bytes) noexcept {
    while (!bytes.empty()) {
        const auto count = to.write_some(at, bytes);
        if (!count) {
            return count.error();
        }
        if (*count == 0) {
            return boost::system::errc::make_error_code(boost::system::errc::no_space_on_device);
        }
        at += *count;
        bytes = bytes.subspan(*count);
    }
    return {};
}

std::shared_ptr<filesystem> system_files() {
    return std::make_shared<system_filesystem>();
}

}  // namespace reprise::proxy::cache::disk
