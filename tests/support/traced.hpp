#pragma once
// What strace needs beside itself: whether it may trace here, and whose calls are whose.

#include <set>
#include <string>
#include <sys/types.h>

namespace reprise::tests {

/// False where strace is not installed, or may not trace here.
[[nodiscard]] bool can_strace();

/// The ids of a running program's threads of this name. (strace does not hear of a name that
/// another thread gives.)
[[nodiscard]] std::set<pid_t> threads_named(pid_t program, const std::string& name);

}  // namespace reprise::tests
