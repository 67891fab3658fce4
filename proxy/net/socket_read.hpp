#pragma once
// Reading a socket, and learning by the same system call whether more can be read.

#include <cstddef>

namespace reprise::proxy::net {

struct socket_read {
    std::ptrdiff_t got = 0;  ///< as recv has it: 0 is the end, and of -1 errno says why
    /// Nothing was left when the kernel answered, and no end of it either. The kernel tells beside the
    /// bytes where the listener has asked for it (TCP_INQ: prepare_listener); else it is known only
    /// of a reading that found nothing.
    bool saw_all = false;
};

/// What is there now, at most so much. Never waits. A system call.
[[nodiscard]] socket_read read_socket(int descriptor, void* into, std::size_t most) noexcept;

}  // namespace reprise::proxy::net
