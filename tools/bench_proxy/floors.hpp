#pragma once
// What no proxy can be cheaper than, as loops that do the system calls and nothing else. Each runs
// in a process of its own until that is ended.

#include "tools/bench_proxy/sockets.hpp"

#include <cstddef>
#include <cstdint>

namespace reprise::bench {

/// The floor of small hits on kept connections: answers every read with one response of
/// `body_bytes`, and does no HTTP at all.
void answer_without_http(int listener, std::size_t body_bytes);

/// The floor of misses: carries bytes between a client and a connection of its own to `upstream`.
void carry_bytes(int listener, std::uint16_t upstream);

}  // namespace reprise::bench
