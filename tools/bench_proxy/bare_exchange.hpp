#pragma once
// What one GET on a connection of its own costs a client that does nothing else: the floor of what
// TLS to an origin adds to a miss.

#include <cstdint>
#include <string>

namespace reprise::bench {

/// Processor time of this thread for one exchange, in microseconds, by the mean of some hundred. With
/// TLS a session is resumed wherever the server allows it, and no certificate is verified. It
/// runs on the first processor, where the servers are measured.
/// @throws std::runtime_error
[[nodiscard]] double bare_exchange_us(std::uint16_t port, const std::string& host, bool tls);

}  // namespace reprise::bench
