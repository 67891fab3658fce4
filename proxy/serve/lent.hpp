#pragma once
// What a session lends to each of its exchanges.

#include "proxy/base/clock.hpp"
#include "proxy/base/tunnel_hosts.hpp"
#include "proxy/cache/fetch.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/net/address.hpp"
#include "proxy/net/known_logins.hpp"
#include "proxy/serve/reply_sink.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace reprise::proxy::net {
class client_stream;
}  // namespace reprise::proxy::net
namespace reprise::proxy::thread {
struct worker;
}  // namespace reprise::proxy::thread

namespace reprise::proxy::serve {

class connection_logins;

/// A host whose tunnel was opened: the connection's requests are for it from then on.
struct opened_host {
    std::string host;  ///< lower case
    std::uint16_t port = 443;
    std::shared_ptr<inside_counts> counts{};  ///< never null
    net::user_ptr user{};                     ///< whose CONNECT it was; null: nobody was asked
    net::address_bytes connected{};           ///< who was at the other end: a front, or the client
};

/// Whose requests they are. Known when the connection is accepted; on one of a trusted front for each
/// request anew, but for those of an opened tunnel, which are its CONNECT's client's.
struct client_identity {
    std::size_t listener = 0;  ///< that it came by: its place in the settings
    std::string address;       ///< numeric
    net::address_bytes at{};   ///< the same
    std::uint16_t port = 0;    ///< 0: a front did not say
    bool refused = false;      ///< by access.clients
    /// The connection is a front's of access.trusted_fronts, or was when it began: whoever asks, it is
    /// not this machine.
    bool fronted = false;
    std::shared_ptr<const opened_host> inside{};  ///< null: no tunnel was opened
    steady_time opened{};  ///< when that was; none once something is asked there
    std::shared_ptr<connection_logins> logins{};  ///< null: it was logged in nowhere

    [[nodiscard]] asio::ip::address ip() const { return net::to_address(at); }
};

/// Memory that serves one request after another, of one connection and then another, so that a hit
/// allocates nothing.
struct scratch {
    scratch() {
        head.fields.reserve(32);
        pieces.reserve(8);
    }
    /// Nothing of a request's is left for the next to send, and no body is held for it.
    void clear() {
        pieces.clear();
        report.clear();
    }

    http::request_head head;
    std::string url;
    std::string fields;         ///< a reply's own
    reply_sink::pieces pieces;  ///< of what is composed, and not sent
    cache::fetch_reader::report report;
};

class sequel;

/// All of it outlives the exchange.
struct lent {
    thread::worker& w;
    client_identity& client;
    reply_sink& sink;
    scratch& memory;
    /// The client's bytes, for what reads them: uploads and tunnels.
    net::client_stream& stream;
    /// What the connection becomes behind the exchange. Null: it goes on with its next request, or
    /// ends.
    std::unique_ptr<sequel>& becomes;
};

}  // namespace reprise::proxy::serve
