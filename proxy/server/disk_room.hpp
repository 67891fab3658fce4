#pragma once
// What the store on disk is yet to take of its file system, and what that has left: the store grows to
// its size over days, and a full disk turns it off.

#include "config/options.hpp"
#include "proxy/admin/stats.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/net/side_thread.hpp"

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

namespace reprise::proxy::server {

/// As the system says it now, of the file system of `there` (disk.path where that is there already).
/// None: it does not say. Waits for the disk.
/// @throws std::bad_alloc
[[nodiscard]] std::optional<admin::disk_room> room_on_disk(const config::disk_options& disk,
                                                           const std::string& there);

/// What room_on_disk said last of a running store, asked every ten seconds on a thread of its own: a
/// disk that hangs holds up nothing else.
///
/// Threads  last: any; the others: one.
class room_watch {
public:
    /// Asks now, and waits for the disk.
    void look(const config::disk_options& disk);
    /// Asks, where it is time, without waiting. To be called again and again. @throws std::bad_alloc
    void look_aside(const config::disk_options& disk, steady_time now);
    /// None: it is not known.
    [[nodiscard]] std::optional<admin::disk_room> last() const;
    /// Waits for a look that is under way. Nothing is asked after that.
    void finish() { thread_.finish(); }

private:
    mutable std::mutex guard_;
    std::optional<admin::disk_room> last_;
    steady_time next_{};
    std::atomic<bool> is_looking_{false};
    net::side_thread thread_{"disk-room"};
};

}  // namespace reprise::proxy::server
