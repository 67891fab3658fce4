#include "proxy/server/disk_room.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <new>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <system_error>
#include <utility>

namespace reprise::proxy::server {

namespace {

constexpr std::chrono::seconds between_looks{10};

/// On disk, of the files directly in a directory; those that can't be seen count for nothing.
std::uint64_t bytes_in(const std::string& directory) {
    std::uint64_t all = 0;
    std::error_code wrong;
    for (std::filesystem::directory_iterator one{directory, wrong}, end; !wrong && one != end;
         one.increment(wrong)) {
        struct stat facts {};
        if (::lstat(one->path().c_str(), &facts) == 0 && S_ISREG(facts.st_mode)) {
            all += static_cast<std::uint64_t>(facts.st_blocks) * 512;
        }
    }
    return all;
}

}  // namespace

std::optional<admin::disk_room> room_on_disk(const config::disk_options& disk,
                                             const std::string& there) {
    struct statvfs room {};
    if (::statvfs(there.c_str(), &room) != 0) {
        return std::nullopt;
    }
    return admin::disk_room{.path = disk.path,
                            .size = disk.size,
                            .held = bytes_in(disk.path),
                            .free = std::uint64_t{room.f_bavail} * room.f_frsize};
}

void room_watch::look(const config::disk_options& disk) {
    try {
        auto seen = room_on_disk(disk, disk.path);
        const std::lock_guard lock{guard_};
        last_ = std::move(seen);
    } catch (const std::bad_alloc&) {
        // It is asked again.
    }
}

void room_watch::look_aside(const config::disk_options& disk, steady_time now) {
    if (now < next_ || is_looking_.exchange(true)) {
        return;
    }
    next_ = now + between_looks;
    try {
        thread_.post([this, disk] {
            look(disk);
            is_looking_ = false;
        });
    } catch (...) {
        is_looking_ = false;
        throw;
    }
}

std::optional<admin::disk_room> room_watch::last() const {
    const std::lock_guard lock{guard_};
    return last_;
}

}  // namespace reprise::proxy::server
