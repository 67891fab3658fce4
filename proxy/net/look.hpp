#pragma once
// How much a loop takes on between two looks at its events.

namespace reprise::proxy::net {

/// At one look a loop learns of so many sockets at most, and then serves them before it looks again.
/// Asio's own number is 128: where all of them have a request, a loop that was late is held for
/// 128 times what one takes, and what is posted to it, its deadlines and new connections wait for
/// all of that. The rest is not lost: the kernel's list goes on where the last look ended. A look
/// costs a system call, which 16 requests share.
inline constexpr int most_events_a_look = 16;

}  // namespace reprise::proxy::net
