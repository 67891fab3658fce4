#pragma once
// Keeping up with one sibling's digest: what changed since the one that is held, as news from a
// sibling that tells it, else asked for once a second. On a thread of its own, with plain sockets:
// the server's own way to fetch adds a Via, which says of a question that it was passed on for
// somebody.

#include "filter/plugins/trafficserver/neighbours.hpp"

#include <chrono>
#include <cstddef>
#include <reprise/digest.h>
#include <string>

namespace reprise::trafficserver {

/// "1f-2", in hexadecimal digits: as ETags and since= name a digest.
[[nodiscard]] std::string generation_text(std::uint64_t epoch, std::uint64_t counter);

struct followed {
    neighbour& whom;
    neighbours& all;
    const reprise_fleet* fleet;
    std::string node;
};

/// For how long a sibling is let alone after so many failures before this one, in a row, which refused an answer of so many bytes (0:
/// there was none).
[[nodiscard]] std::chrono::milliseconds pause_after(unsigned failures,
                                                    std::size_t refused) noexcept;

/// Begins. @throws std::runtime_error where there is no thread to be had
void follow(const followed& one);
/// The server ends: nobody is asked any more, and nothing said. Threads stay, and sleep.
void stop_following() noexcept;

}  // namespace reprise::trafficserver
