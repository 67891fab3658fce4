#pragma once
// One end of a TLS connection as a plain stream: a thread carries the bytes, so that whatever
// speaks over a stream speaks TLS too.

#include "tests/support/stream.hpp"
#include "tests/support/tls_peer.hpp"

#include <atomic>
#include <thread>

namespace reprise::tests {

class tls_carrier {
public:
    /// @pre hands are shaken
    explicit tls_carrier(tls_peer peer);
    tls_carrier(const tls_carrier&) = delete;
    tls_carrier& operator=(const tls_carrier&) = delete;
    ~tls_carrier();

    /// What is said and heard. finish_sending() is a close_notify. Once.
    [[nodiscard]] stream plain_end() { return std::move(given_); }

    /// How the other side ended the connection; timed_out until it has.
    [[nodiscard]] tls_end end() const noexcept { return end_; }
    /// Ends the connection: as an attacker would, or with a reset.
    void leave(bool with_reset);
    /// Carries what was sent before the plain end was closed, and then ends the connection.
    void finish();

private:
    void carry();

    tls_peer peer_;
    stream given_;
    int plain_ = -1;
    std::atomic<bool> stop_{false};
    std::atomic<bool> sending_{true};
    std::atomic<tls_end> end_{tls_end::timed_out};
    std::thread carrier_;
};

}  // namespace reprise::tests
