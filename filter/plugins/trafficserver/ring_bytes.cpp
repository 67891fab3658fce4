#include "filter/plugins/trafficserver/ring_bytes.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <sys/statvfs.h>

namespace reprise::trafficserver {

namespace {

constexpr std::uint64_t of_document = 72;  // its header on disk
/// The heads of request and response as they are kept, beyond the bytes that the response's has on the wire: at least.
constexpr std::uint64_t beside_head = 528;
constexpr std::uint64_t fragment = (1 << 20) - of_document;
constexpr std::uint64_t most_sector = 1 << 20;

constexpr std::uint64_t rounded(std::uint64_t bytes, std::uint64_t to) noexcept {
    return (bytes + to - 1) / to * to;
}

/// One write: as the directory can say it, 64 steps of 512 bytes, of eight times that, and so on.
std::uint64_t one_write(std::uint64_t bytes, std::uint64_t sector) noexcept {
    std::uint64_t step = least_sector;
    while (bytes > 64 * step) {
        step *= 8;
    }
    return rounded(rounded(bytes, step), sector);
}

}  // namespace

std::uint64_t ring_bytes(std::uint64_t object, std::uint64_t sector) noexcept {
    constexpr std::uint64_t most_object = std::uint64_t{1} << 60;
    const auto bytes = std::min(object, most_object);
    if (bytes <= fragment) {
        return one_write(of_document + beside_head + bytes, sector);
    }
    // Its head is written by itself, last of all.
    return bytes / fragment * one_write(of_document + fragment, sector) +
           (bytes % fragment != 0 ? one_write(of_document + bytes % fragment, sector) : 0) +
           one_write(of_document + beside_head, sector);
}

std::uint64_t sector_of(const char* storage_config,
                        const char* prefix,
                        std::uint64_t forced) noexcept {
    if (forced != 0) {
        return std::clamp(forced, least_sector, most_sector);
    }
    try {
        std::uint64_t smallest = 0;
        std::ifstream file{storage_config};
        for (std::string line; std::getline(file, line);) {
            std::istringstream words{line};
            std::string path;
            if (!(words >> path) || path.starts_with('#')) {
                continue;
            }
            if (!path.starts_with('/')) {
                path = std::string{prefix} + '/' + path;
            }
            struct stat what {};
            struct statvfs where {};
            std::uint64_t sector =
                least_sector;  // a device's, which the server may know to be larger
            if (::stat(path.c_str(), &what) == 0 &&
                (S_ISREG(what.st_mode) || S_ISDIR(what.st_mode)) &&
                ::statvfs(path.c_str(), &where) == 0) {
                sector = std::clamp<std::uint64_t>(where.f_bsize, least_sector, most_sector);
            }
            smallest = smallest == 0 ? sector : std::min(smallest, sector);
        }
        return smallest == 0 ? least_sector : smallest;
    } catch (const std::bad_alloc&) {
        return least_sector;
    }
}

}  // namespace reprise::trafficserver
