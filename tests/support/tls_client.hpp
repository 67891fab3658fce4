#pragma once
// A client of the proxy over TLS: a `client` like any other, whose bytes a thread carries.

#include "tests/support/client.hpp"
#include "tests/support/tls_peer.hpp"

#include <atomic>
#include <memory>
#include <thread>

namespace reprise::tests {

class tls_client {
public:
    /// Connects and shakes hands.
    /// @throws std::runtime_error when the handshake fails, with the reason
    tls_client(std::uint16_t port, const tls_peer::wishes& wanted);
    tls_client(const tls_client&) = delete;
    tls_client& operator=(const tls_client&) = delete;
    ~tls_client();

    /// What is said and heard. finish_sending() is a close_notify.
    [[nodiscard]] client& http() { return *http_; }
    [[nodiscard]] response ask(std::string_view raw) { return http_->ask(raw); }

    /// How the proxy ended the connection, once it has; timed_out when it has not in time.
    [[nodiscard]] tls_end end();
    /// Ends the connection: as an attacker would, or with a reset.
    void leave(bool with_reset);
    [[nodiscard]] std::string certificate_serial() const { return serial_; }

private:
    void carry();

    std::unique_ptr<tls_peer> peer_;
    std::string serial_;
    stream ours_;
    std::unique_ptr<client> http_;
    std::atomic<bool> stop_{false};
    std::atomic<tls_end> end_{tls_end::timed_out};
    int plain_ = -1;
    std::thread carrier_;
};

}  // namespace reprise::tests
