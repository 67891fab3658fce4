#pragma once
// A request as it is understood before anything is looked up: its target, framing and facts, its
// key, and what is refused already. It is read once, whole, and changed by nothing that answers it.
// No socket: an exchange reads what a client sent by this, and /explain what an operator describes,
// so both get the same.

#include "config/options.hpp"
#include "filter/key_hash.hpp"
#include "proxy/base/counters.hpp"
#include "proxy/base/failure.hpp"
#include "proxy/cache/verdict.hpp"
#include "proxy/fetch/request.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/http/target.hpp"
#include "proxy/serve/lent.hpp"
#include "proxy/thread/settings.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy::serve {

struct request {
    const http::request_head* head = nullptr;  ///< without its hop-by-hop fields, once it is read
    /// Why it gets no other answer; what is not known by then is as in an empty request.
    std::optional<failure> refused{};
    http::target target;  ///< an accelerator's has been given its authority
    http::body_framing body;
    cache::request_facts facts;
    /// Its origin's connections are its client's alone (origin_address::owner), and their user is known there
    /// without a word of it: it counts as one with Authorization. 0: neither.
    std::uint64_t owner = 0;
    bool framed = false;      ///< where the next request begins is known
    bool persistent = false;  ///< its client lets the connection go on (RFC 9112 9.3)
    bool accelerator = false;
    bool websocket = false;
    bool inside = false;            ///< of an opened tunnel
    bool names_home = false;        ///< it says that it is handed on (peer/homes.hpp)
    bool names_site = false;        ///< it says that siblings are to be asked (peer/reach.hpp)
    bool waits_behind_102 = false;  ///< and says so (peer/pulse.hpp)
    bool https_prefix = false;      ///< asked for as http://HTTPS/…, and so are its redirects
    /// Nothing behind it is read as a request: CONNECT, and what asks for another protocol. Whoever
    /// sent it may have gone on in that protocol, with bytes of a third party's choice (RFC 9931).
    bool last = false;

    /// Proxy-Authorization's value, where clients have to say who they are; gone with a copy.
    std::string_view login{};
    std::string_view url{};  ///< the primary key's text
    filter::key_hash key{};

    /// Neither answered from the store nor stored: another method, a body, an upgrade.
    [[nodiscard]] bool passes() const noexcept {
        return (!facts.is_get && !facts.is_head) || body.kind != http::body_kind::none || websocket;
    }
    [[nodiscard]] bool has_body() const noexcept {
        return body.kind == http::body_kind::chunked ||
               (body.kind == http::body_kind::length && body.length > 0);
    }
    /// RFC 9110 9.2.1; methods that are not known count as unsafe (RFC 9111 4.4).
    [[nodiscard]] bool is_safe() const noexcept;
    /// Its body comes when a 100 has been sent (RFC 9110 10.1.1).
    [[nodiscard]] bool waits_for_continue() const noexcept;
};

/// How a request came.
struct arrival {
    const config::listener& listener;
    const config::access_options& access;
    /// Nobody on the way reads it: over TLS, or from this machine. An https URL may be asked for.
    bool unseen = false;
    const opened_host* inside = nullptr;  ///< null: in no opened tunnel
    /// Over TLS: the connection, which may be older than what its listener is set to.
    bool encrypted = false;
};

/// Reads `head`, which loses its hop-by-hop fields, as a request that came by `how`. Views in what
/// it gives are of the head's bytes, of the listener, or of `scratch`: that holds the key's text
/// where the target is not in normal form.
[[nodiscard]] request read_request(http::request_head& head,
                                   const arrival& how,
                                   const filter::hash_secret& secret,
                                   std::string& scratch);

/// Takes the client's wish to have the origin asked (no-cache, max-age=0, Pragma) out of `asked`
/// where the rule of freshness.rules for its URL ignores it. O(rules) for a request with such a
/// wish, nothing for others.
void ignore_reload(request& asked, const thread::settings& now) noexcept;

/// The same request in a copy of its head's bytes: views into `bytes` are views into the copy.
[[nodiscard]] request moved_to(const fetch::request_copy& copy,
                               std::string_view bytes,
                               const request& from);

/// The primary key's text: the target itself where that is in normal form, else `scratch`.
[[nodiscard]] std::string_view key_text(const http::target& target,
                                        const config::listener& listener,
                                        std::string& scratch);

/// An accelerator's upstream without its scheme: host[":"port].
[[nodiscard]] std::string_view upstream_authority(const config::listener& listener) noexcept;
[[nodiscard]] bool upstream_is_secure(const config::listener& listener) noexcept;

/// Whether `host` (lower case, a name or an address without brackets) and port are among `rules`. A
/// name is compared with rules that name hosts alone.
[[nodiscard]] bool is_listed(const std::vector<config::destination>& rules,
                             std::string host,
                             std::uint16_t port);

/// Whether its answer may come from peers, where there are any, and what they have seen counts for it.
[[nodiscard]] bool asks_peers(const request& asked, const config::options& options) noexcept;

/// access.deny_destinations, asked of hits too. A hit connects to no address; but what an operator
/// denies by name, or by an address that the URL names, is not served from the store either.
[[nodiscard]] bool denies_host(const thread::settings& now, const http::target& target);

/// What stands against asking the origin, whoever connects to it: this proxy's own Via,
/// access.request_ports, an address in the URL that the guard refuses. Where a name leads is judged
/// when it is known (dial.hpp).
[[nodiscard]] std::optional<failure> judge_destination(const thread::settings& now,
                                                       const request& asked,
                                                       std::string_view pseudonym);

/// The same for a tunnel: this proxy's own Via, access.connect_ports.
[[nodiscard]] std::optional<failure> judge_tunnel(const thread::settings& now,
                                                  const request& asked,
                                                  std::string_view pseudonym);

}  // namespace reprise::proxy::serve
