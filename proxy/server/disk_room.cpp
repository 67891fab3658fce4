#include "proxy/server/disk_room.hpp"

#include <cstdint>
#include <filesystem>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <system_error>

namespace reprise::proxy::server {

namespace {

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

}  // namespace reprise::proxy::server
