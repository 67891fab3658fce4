#pragma once
// A client of the proxy over TLS: a `client` like any other, whose bytes a thread carries.

#include "tests/support/client.hpp"
#include "tests/support/tls_carrier.hpp"

#include <memory>

namespace reprise::tests {

class tls_client {
public:
    /// Connects and shakes hands.
    /// @throws std::runtime_error when the handshake fails, with the reason
    tls_client(std::uint16_t port, const tls_peer::wishes& wanted);
    /// The same over a connection that there is: inside a tunnel.
    tls_client(stream over, const tls_peer::wishes& wanted);

    /// What is said and heard. finish_sending() is a close_notify.
    [[nodiscard]] client& http() { return *http_; }
    [[nodiscard]] response ask(std::string_view raw) { return http_->ask(raw); }

    /// How the proxy ended the connection, once it has; timed_out when it has not in time.
    [[nodiscard]] tls_end end();
    /// Ends the connection: as an attacker would, or with a reset.
    void leave(bool with_reset) { carrier_->leave(with_reset); }
    [[nodiscard]] std::string certificate_serial() const { return serial_; }

private:
    std::string serial_;
    std::unique_ptr<client> http_;
    std::unique_ptr<tls_carrier>
        carrier_;  // goes first: what is left behind is cut off, not closed
};

}  // namespace reprise::tests
