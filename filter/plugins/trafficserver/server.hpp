#pragma once
// What both plug-ins want of the server: figures, a second's tick, an end, and to stay.

#include <span>
#include <string>
// (This order: remap.h includes nothing of what it needs.)
#include <ts/ts.h>

namespace reprise::trafficserver {

/// The server's number for a figure of this name, which is there already after a reload; -1 where it has no room for more.
[[nodiscard]] int figure_for(const std::string& name);
/// Says in the log where one of these is -1: `of` is whose they are.
void warn_without(const char* plugin, const std::string& of, std::span<const int> figures);

/// Calls `tick` each second on a thread that may wait, one at a time, and `end` when the server ends; once a library.
/// They are never taken back: what they use must stay (stay_loaded), and be there until the process has ended.
void keep_house(void (*tick)() noexcept, void (*end)() noexcept);

/// Whether there are threads that may wait. The server listens a moment before it has them, and what is scheduled on them before
/// crashes it. After keep_house alone.
[[nodiscard]] bool has_task_threads() noexcept;

/// Keeps this library in memory for good. A lifecycle hook can't be taken back, and a task's continuation only by waiting for
/// it. A reload loads another copy where the file has changed; this one takes some 300 KiB until the server ends.
void stay_loaded() noexcept;

}  // namespace reprise::trafficserver
