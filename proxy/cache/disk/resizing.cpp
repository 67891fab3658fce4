#include "proxy/cache/disk/resizing.hpp"

#include <algorithm>

namespace reprise::proxy::cache::disk {

std::uint64_t segment_bytes_at_first(const tier_settings& settings) noexcept {
    const auto wished = plan(settings.size, settings.segment);
    return wished.segments < fewest_segments ? plan(settings.size).segment_bytes
                                             : wished.segment_bytes;
}

std::string why_too_small(const tier_settings& settings, const superblock& super) {
    if (plan(settings.size, super.segment_bytes).segments >= fewest_segments) {
        return {};
    }
    return "in " + std::to_string(settings.size) + " bytes there is room for fewer than " +
           std::to_string(fewest_segments) + " of its segments of " +
           std::to_string(super.segment_bytes) + " bytes";
}

std::uint32_t numbers_of_segments(filesystem& files,
                                  const std::string& directory,
                                  std::uint32_t planned) {
    const auto names = files.list(directory);
    if (!names) {
        throw_if_no_memory(names.error());
        return most_segments;
    }
    auto numbers = planned;
    for (const auto& name : *names) {
        if (const auto number = segment_number_in(name); number < most_segments) {
            numbers = std::max(numbers, number + 1);
        }
    }
    return numbers;
}

namespace {

error_code remove_segments(filesystem& files, const std::string& directory) {
    const auto names = files.list(directory);
    if (!names) {
        return names.error();
    }
    bool any = false;
    error_code failed;
    for (const auto& name : *names) {
        if (segment_number_in(name) < most_segments) {
            any = true;
            if (const auto of_one = files.remove(directory + "/" + name)) {
                failed = of_one;
            }
        }
    }
    const auto unsynced = any ? files.sync_directory(directory) : error_code{};
    return failed ? failed : unsynced;
}

}  // namespace

error_code remove_contents(filesystem& files,
                           const std::string& directory,
                           const std::string& path_of_journal) {
    auto failed = files.remove(path_of_journal);
    if (!failed || failed == boost::system::errc::no_such_file_or_directory) {
        failed = files.sync_directory(directory);
    }
    if (failed) {
        return failed;
    }
    return remove_segments(files, directory);
}

}  // namespace reprise::proxy::cache::disk
