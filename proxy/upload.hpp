#pragma once
// A request's body on its way from the client to the origin.
// It runs beside the reading of the response, since an origin may answer before it has read
// everything. Both ends can stop it: the producer when the response is over, the exchange when its
// client is gone. Bytes are taken from the client only as fast as the origin takes them.

#include "proxy/client_stream.hpp"
#include "proxy/failure.hpp"
#include "proxy/http/chunked.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/net/wakeup.hpp"

#include <boost/asio/cancellation_signal.hpp>

#include <chrono>
#include <cstdint>
#include <memory>

namespace reprise::proxy {

/// Threads: its worker's. Shared by the exchange and the producer, so that neither need outlive the
/// other.
class upload {
public:
    enum class phase : std::uint8_t {
        untouched,  ///< nothing was taken from the client
        running,
        done,         ///< the whole body went out, and nothing of it is left in the client's buffer
        bad_framing,  ///< failed() says how
        client_failed,  ///< left, or too slow
        origin_failed,
        stopped,
    };

    upload(client_stream& client,
           const http::body_framing& framing,
           const http::chunked_limits& limits,
           std::uint64_t bytes_per_second,
           std::chrono::milliseconds timeout,
           deadlines& timer);

    /// Sends the body to `origin`; ends in one of the phases above. `self` keeps this alive.
    [[nodiscard]] static awaitable<void> run(std::shared_ptr<upload> self, tcp_socket& origin);

    /// Ends a run that waits for the client; one that waits for the origin ends when its socket is
    /// closed.
    void stop();
    enum class waiter : std::uint8_t { producer, exchange };
    /// Waits until nothing is running; each of the two sides may wait, for itself.
    [[nodiscard]] awaitable<void> ended(waiter who);

    /// Reads and drops what is left of the body, at most `most` bytes, so that the connection can
    /// go on.
    [[nodiscard]] static awaitable<bool> drain(std::shared_ptr<upload> self, std::uint64_t most);

    [[nodiscard]] phase state() const noexcept { return phase_; }
    [[nodiscard]] bool stopping() const noexcept { return stopping_; }
    [[nodiscard]] bool broken_by_client() const noexcept {
        return phase_ == phase::bad_framing || phase_ == phase::client_failed;
    }
    [[nodiscard]] const failure& why() const noexcept { return why_; }
    [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }

private:
    [[nodiscard]] awaitable<bool> fill();
    [[nodiscard]] awaitable<void> pass(tcp_socket* origin, std::uint64_t most);
    void end(phase how) noexcept { phase_ = how; }

    // Not touched once stop() was called: the exchange that owns it may have ended by an exception.
    client_stream& client_;
    executor executor_;
    http::body_framing framing_;
    http::chunked_decoder decoder_;
    std::uint64_t bytes_per_second_;
    std::chrono::milliseconds timeout_;
    net::cancellation_signal cancel_;
    deadline patience_;
    wakeup over_for_producer_;
    wakeup over_for_exchange_;
    phase phase_ = phase::untouched;
    bool stopping_ = false;
    std::uint64_t left_;
    std::uint64_t sent_ = 0;
    failure why_;
};

}  // namespace reprise::proxy
