#pragma once
// What the store on disk is yet to take of its file system, and what that has left: the store grows to
// its size over days, and a full disk turns it off.

#include "config/options.hpp"
#include "proxy/admin/stats.hpp"

#include <optional>
#include <string>

namespace reprise::proxy::server {

/// As the system says it now, of the file system of `there` (disk.path where that is there already).
/// None: it does not say. Waits for the disk.
/// @throws std::bad_alloc
[[nodiscard]] std::optional<admin::disk_room> room_on_disk(const config::disk_options& disk,
                                                           const std::string& there);

}  // namespace reprise::proxy::server
