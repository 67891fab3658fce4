#pragma once
// The other side of a TLS connection, as straight code: OpenSSL on a blocking socket, each call
// with a time limit. It can end a connection in every way there is.

#include "tests/support/certificates.hpp"
#include "tests/support/waiting.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

struct ssl_ctx_st;
struct ssl_st;

namespace reprise::tests {

enum class tls_end {
    data,       ///< at least one byte
    closed,     ///< close_notify: the other side said that this is all
    truncated,  ///< the connection ended without one, or broke
    timed_out,
};
[[nodiscard]] std::string_view to_string(tls_end end) noexcept;

/// Threads: one at a time.
class tls_peer {
public:
    struct wishes {
        std::string trusted{};  ///< PEM; client: whom it believes. Empty: anybody
        std::string host{};     ///< client: SNI, and what the certificate must be for
        std::string alpn{};     ///< client: protocols as on the wire, each behind its length
        int newest = 0;         ///< TLS1_2_VERSION and the like; 0: whatever there is
        bool weak = false;      ///< also what OpenSSL finds too old (TLS 1.0 and 1.1)
        std::chrono::milliseconds limit = patience;  ///< on each wait of the handshake
    };
    struct server_wishes {
        std::string stapled{};      ///< a response of OCSP, DER. Empty: none
        std::string ticket_keys{};  ///< 80 bytes, by which servers share them. Empty: its own
        int newest = 0;             ///< as above
        bool weak = false;          ///< as above, keys and signatures too
        enum class asking { no, asks, insists };
        asking client{};  ///< for a certificate of its client's; any will do
    };
    /// Owns the connected socket.
    [[nodiscard]] static tls_peer client(int socket, const wishes& wanted);
    [[nodiscard]] static tls_peer client(int socket);
    [[nodiscard]] static tls_peer server(int socket, const made_certificate& identity);
    /// Certificates behind the first are sent as its chain.
    [[nodiscard]] static tls_peer server(int socket,
                                         const made_certificate& identity,
                                         const server_wishes& wanted);

    tls_peer(tls_peer&& other) noexcept;
    tls_peer& operator=(tls_peer&&) = delete;
    ~tls_peer();

    /// False: it failed, and why() says how.
    [[nodiscard]] bool shake_hands();
    [[nodiscard]] const std::string& why() const noexcept { return why_; }

    /// How long a read waits; patience at first.
    void read_for(std::chrono::microseconds limit);

    bool send(std::string_view bytes);
    [[nodiscard]] tls_end read_some(std::string& into, std::size_t most = 64 << 10);
    /// At least `bytes` more, unless it ends before.
    [[nodiscard]] std::string read(std::size_t bytes);
    struct rest {
        std::string bytes;
        tls_end end;
    };
    [[nodiscard]] rest read_to_end();

    /// Asks for another handshake on this connection (TLS 1.2). False: it is not to be had.
    [[nodiscard]] bool renegotiate();
    /// Tells a new key for what it sends (TLS 1.3's KeyUpdate), and wants none back.
    bool change_key();
    /// close_notify; reading goes on.
    void finish_sending();
    /// FIN without a close_notify: as an attacker would.
    void truncate();
    /// RST.
    void reset();

    [[nodiscard]] std::string chosen_protocol() const;     ///< by ALPN
    [[nodiscard]] std::string asked_for() const;           ///< server: the SNI
    [[nodiscard]] std::string certificate_serial() const;  ///< client: which one it was shown
    [[nodiscard]] bool resumed() const noexcept;           ///< a session of an earlier connection
    [[nodiscard]] int socket() const noexcept { return socket_; }
    [[nodiscard]] bool has_decrypted() const noexcept;  ///< bytes that no poll would tell of

private:
    tls_peer(ssl_ctx_st* context, int socket);
    ssl_ctx_st* context_;
    ssl_st* ssl_;
    int socket_;
    std::string why_;
};

}  // namespace reprise::tests
