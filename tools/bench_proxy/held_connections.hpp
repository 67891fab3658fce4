#pragma once
// Connections that are opened, used once and then held.

#include "tools/bench_proxy/servers.hpp"

#include <cstddef>

namespace reprise::bench {

/// Resident bytes that each of `count` connections adds while it is idle, after one request each.
/// @throws std::runtime_error when one can't be had
[[nodiscard]] double bytes_per_idle_connection(const lab& of,
                                               const server& at,
                                               bool tls,
                                               std::size_t count);

/// Opens `count` connections that send the beginning of a head, some kilobytes of it; waits until
/// the server has read them; gives its resident bytes at that moment; closes them.
[[nodiscard]] double resident_with_half_heads(const server& at, std::size_t count);

}  // namespace reprise::bench
