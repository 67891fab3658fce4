#pragma once
// Tunnels that are opened: which, by the settings and what is known of client and host, and how a
// connection is answered inside. Everything else passes byte for byte.

#include "proxy/net/address.hpp"
#include "proxy/net/client_hello.hpp"
#include "proxy/serve/exchange_state.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::serve {

/// The entry of `patterns` (lower case; "*.host" for its subdomains) that lists `host` (lower
/// case); empty: none does.
[[nodiscard]] std::string_view entry_for(const std::vector<std::string>& patterns,
                                         std::string_view host) noexcept;

/// Why tunnels to `target` are passed on: "off", "address", "not-listed", "except", "port". Empty: by
/// the settings they are opened, for intercept.clients.
[[nodiscard]] std::string_view why_passed_on(const thread::settings& now,
                                             const http::target& target);

/// Why a tunnel whose client has said `hello` is passed on: "tls-version", "sni", "alpn". Empty: it
/// is opened.
/// @param host  that CONNECT named, lower case
[[nodiscard]] std::string_view why_passed_on(const net::client_hello& hello, std::string_view host);

/// Takes note of a client that left its opened tunnel at once without asking anything: as one of
/// GnuTLS does, which looks at the certificate when the handshake is over, and says nothing when it
/// refuses it. One that left later, or has asked, is none; nor is one spare
/// connection of a client that asked on another a moment ago, as browsers do.
void note_leaving(thread::worker& w, const client_identity& client);
/// The first request of an opened tunnel has come. @pre client.inside
void note_asking(thread::worker& w, client_identity& client);

/// The client takes no certificate of ours for the host: if the settings that hold for its next
/// connection say so, that is passed on.
void remember_refusal(thread::worker& w,
                      const client_identity& client,
                      std::string_view host,
                      std::string_view why);

/// CONNECT to a host that is listed: 200, and then hello_wait: the client's hello, and TLS with a
/// certificate of ours, behind which the connection's requests are answered like others; or a tunnel
/// after all, with every byte.
class interception {
public:
    explicit interception(exchange_state& x) : x_{x} {}

    /// Why the request in hand, a CONNECT that may be tunnelled, is not given by this: what
    /// why_passed_on says of its target, "client" (not of intercept.clients), "client-refused",
    /// "host-refused". Empty: it is. A refusal for a listed host is counted.
    [[nodiscard]] static std::string_view why_not(const exchange_state& x);
    [[nodiscard]] awaitable<ended_or_next> give();

private:
    [[nodiscard]] awaitable<ended> say_connected();

    exchange_state& x_;
};

}  // namespace reprise::proxy::serve
