#include "proxy/cache/disk/superblocks.hpp"

#include <algorithm>

namespace reprise::proxy::cache::disk {

namespace {

using boost::system::errc::no_such_file_or_directory;

std::string path_of(const std::string& directory, std::string_view name) {
    std::string path = directory;
    path += '/';
    path += name;
    return path;
}

bool is_missing(const result<superblock>& copy) noexcept {
    return copy.has_error() && copy.error() == no_such_file_or_directory;
}

result<superblock> read_one(filesystem& files, const std::string& path) {
    const auto opened = files.open(path, open_mode::read);
    if (!opened) {
        throw_if_no_memory(opened.error());
        return opened.error();
    }
    superblock_image image{};
    if (const auto failed = read_all(**opened, 0, std::as_writable_bytes(std::span{image}))) {
        throw_if_no_memory(failed);
        return failed;
    }
    return read_superblock(image);
}

error_code write_one(filesystem& files,
                     const std::string& directory,
                     std::string_view name,
                     const superblock& super) {
    const auto path = path_of(directory, name);
    const auto temporary = path + ".new";
    const auto made = files.open(temporary, open_mode::make);
    if (!made) {
        return made.error();
    }
    const auto image = encode(super);
    auto failed = write_all(**made, 0, std::as_bytes(std::span{image}));
    if (!failed) {
        failed = (*made)->sync();
    }
    if (!failed) {
        failed = files.rename(temporary, path);
    }
    return failed ? failed : files.sync_directory(directory);
}

}  // namespace

std::optional<superblock> believed(const superblock_copies& copies) noexcept {
    for (const auto& copy : copies) {
        if (copy.has_value()) {
            return *copy;
        }
    }
    return std::nullopt;
}

bool neither_is_there(const superblock_copies& copies) noexcept {
    return std::all_of(copies.begin(), copies.end(), is_missing);
}

bool is_of_other_version(const superblock_copies& copies) noexcept {
    return !believed(copies) && std::any_of(copies.begin(), copies.end(), [](const auto& copy) {
        return copy.has_error() && copy.error() == format_errc::other_version;
    });
}

superblock_copies read_superblocks(filesystem& files, const std::string& directory) {
    return {read_one(files, path_of(directory, superblock_names[0])),
            read_one(files, path_of(directory, superblock_names[1]))};
}

error_code write_superblocks(filesystem& files,
                             const std::string& directory,
                             const superblock& super) {
    for (const auto name : superblock_names) {
        if (const auto failed = write_one(files, directory, name, super)) {
            return failed;
        }
    }
    return {};
}

bool mend_superblocks(filesystem& files,
                      const std::string& directory,
                      const superblock_copies& copies) {
    const auto right = believed(copies);
    bool mended = false;
    for (std::size_t i = 0; right && i < copies.size(); ++i) {
        const auto& copy = copies[i];
        if (copy.has_value() && encode(*copy) == encode(*right)) {
            continue;
        }
        const bool never_made = i == 1 && is_missing(copy);
        const bool done = !write_one(files, directory, superblock_names[i], *right);
        mended = mended || (done && !never_made);
    }
    return mended;
}

}  // namespace reprise::proxy::cache::disk
