#pragma once
// How what a client waits for ends: an answer, a part of it, or a wait for its sake.

#include <cstdint>

namespace reprise::proxy {

enum class ended : std::uint8_t {
    keep,   ///< in order: what follows may go on
    close,  ///< in order, and the connection's last
    gone,   ///< the client has left or was broken off, or this process is ending
};

}  // namespace reprise::proxy
