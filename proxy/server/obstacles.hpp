#pragma once
// What stands in the way of a start: files, directories and addresses that the settings name and
// that can't be used as they need them; and memory, room on a disk and file descriptors, where the
// system has less than they want.
//
// --check-config and the start ask the same function, so what ends the one is said by the other,
// all of it at once. Settings are checked by config/ before, which reads nothing but their file; where
// it finds mistakes the files are looked at all the same, so that an operator is told of both.

#include "config/mistake.hpp"
#include "config/options.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace reprise::proxy::server {

enum class obstacle_weight : std::uint8_t {
    ends_start,
    in_use,  ///< ends the start as well, unless whoever uses it has ended by then
    harms,   ///< the start goes on without what was asked for
};

struct obstacle {
    config::mistake what;  ///< the setting, its value, and why it can't be used
    obstacle_weight weight = obstacle_weight::ends_start;
};

/// In the settings' order. Changes nothing: makes no file, keeps no lock, listens nowhere. For the
/// user who asks; another one may read and write elsewhere. Blocks on the file system.
[[nodiscard]] std::vector<obstacle> find_obstacles(const config::options& options);

/// The same of the files and directories alone, for settings that may have mistakes of their own: what
/// could not be read of those is not looked at, and what is looked at beside its files (an address,
/// the room on a disk, file descriptors) neither.
[[nodiscard]] std::vector<obstacle> find_file_obstacles(const config::options& options);

/// What the next start would meet of `next`, while a program runs by `in_force`, whose addresses are those that
/// it listens at: all that a start reads and a reload does not, and what the system has for it. What that
/// program holds itself is not in the way. Beside that, what of `next` does not do what it seems to, which a
/// reload is to say as well.
[[nodiscard]] std::vector<obstacle> find_obstacles_of_next_start(const config::options& in_force,
                                                                 const config::options& next);

/// Peers whose names have no address now: all of them harm. For --check-config alone, since a peer may
/// come later. Asks the name servers of `dns`, and waits for their answers, 5 seconds at most.
[[nodiscard]] std::vector<obstacle> find_unknown_peers(const config::options& options);

}  // namespace reprise::proxy::server
