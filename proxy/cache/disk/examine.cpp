#include "proxy/cache/disk/examine.hpp"

namespace reprise::proxy::cache::disk {

examined examine(filesystem& files, const std::string& directory) {
    using boost::system::errc::no_such_file_or_directory;
    const auto lock = directory + "/lock";
    auto opened = files.open(lock, open_mode::update);
    if (!opened && opened.error() != no_such_file_or_directory) {
        opened = files.open(lock, open_mode::read);  // as the tier takes it
    }
    if (!opened && opened.error() != no_such_file_or_directory) {
        return {lock + ": " + opened.error().message(), false};
    }
    if (opened) {
        if (const auto failed = (*opened)->try_lock()) {
            const bool in_use = failed == boost::system::errc::operation_would_block;
            return {in_use ? "another process uses this store" : lock + ": " + failed.message(),
                    in_use};
        }
    }
    const auto store = directory + "/store";
    const auto there = files.open(store, open_mode::read);
    if (!there && there.error() != no_such_file_or_directory) {
        return {store + ": " + there.error().message(), false};
    }
    return {};
}

}  // namespace reprise::proxy::cache::disk
