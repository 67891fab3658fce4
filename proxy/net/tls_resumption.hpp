#pragma once
// Sessions of TLS that servers let us resume: a new connection to the same server costs neither of
// us a signature then, nor the certificates a round of reading.
// What was verified when a session began is not verified again, so they are forgotten when what is
// believed changes, and none is resumed after `longest`, whatever its server allows.

#include "proxy/base/clock.hpp"
#include "proxy/net/tls_context.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct ssl_session_st;

namespace reprise::proxy::net {

/// Threads   that of the connections it is offered to.
/// Memory    `most` sessions, each with its server's certificates: 3 to 10 KiB as a rule. A
///           session of TLS 1.3 resumes one connection (RFC 8446 C.4), one of TLS 1.2 any number.
class tls_resumption {
public:
    static constexpr std::size_t most = 256;          ///< those of longest ago go first
    static constexpr std::size_t most_of_server = 4;  ///< by as many connections at once
    /// Certificates and ticket, as they are sent: a session with more of them is not kept.
    static constexpr std::size_t largest = 16 << 10;
    static constexpr std::chrono::seconds longest = std::chrono::hours{2};

    tls_resumption();
    tls_resumption(const tls_resumption&) = delete;
    tls_resumption& operator=(const tls_resumption&) = delete;
    ~tls_resumption();

    /// Before the handshake: it resumes a session of `server` ("host:port") if there is one, and
    /// what that gives for later is remembered: the newest is resumed. Without memory it does
    /// neither.
    void offer(ssl_st* connection, std::string_view server, steady_time now);
    /// Also what connections that were offered to it before will still bring.
    void forget() noexcept;
    [[nodiscard]] std::size_t size() const noexcept;

    /// Connections of this context tell of their sessions. @throws std::runtime_error
    static void enable(ssl_ctx_st* context);

private:
    struct table;
    struct link;
    friend struct tls_resumption_hooks;
    std::shared_ptr<table> table_;
};

}  // namespace reprise::proxy::net
