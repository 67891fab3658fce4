#pragma once
// How much memory the system lets this program have: the machine's, or what a container or a service
// manager sets as its limit.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy::server {

/// Bytes. None: the system does not say. Reads files of the kernel's.
[[nodiscard]] std::optional<std::uint64_t> most_memory();

/// The least limit of a group and of those above it; none: there is none. `own`: what /proc/self/cgroup
/// says; `root`: where control groups are mounted, /sys/fs/cgroup (cgroups(7), version 2; of version 1 the
/// controller "memory" below it).
[[nodiscard]] std::optional<std::uint64_t> least_group_limit(std::string_view own,
                                                             const std::string& root);

}  // namespace reprise::proxy::server
