#pragma once
// Connections through a parent: CONNECT (RFC 9110 9.3.6), for networks that have no other way out.
// What lies between us and the parent is one connection, plain or TLS; what lies behind its answer
// is the other end's, byte for byte. Whose fault it is when none is made matters to whoever has
// several parents: one that can't be reached, or does not speak HTTP, is no_parent, one whose
// certificate is bad parent_certificate, and another may be asked; one that answered otherwise than
// 2xx, or not at all, has tried or refused, and so would the others.

#include "proxy/base/clock.hpp"
#include "proxy/base/failure.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/byte_stream.hpp"
#include "proxy/net/guard.hpp"
#include "proxy/net/read_buffer.hpp"
#include "proxy/net/resolver.hpp"
#include "proxy/net/tls.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace reprise::proxy::net {

/// A parent, as connections are made through it. Immutable; any thread.
struct way_through {
    std::string name;  ///< for people: what the settings call it
    std::string host;  ///< lower case, without brackets
    std::uint16_t port = 0;
    bool tls = false;         ///< the connection to it is encrypted
    std::string credentials;  ///< Proxy-Authorization's value, for it alone; empty: none
    std::string via;          ///< ours, in Via: "1.1 pseudonym"
    bool operator==(const way_through&) const = default;
};
using way_ptr = std::shared_ptr<const way_through>;

/// What CONNECT is asked for.
struct far_end {
    std::string host;  ///< as connect_host has it
    std::uint16_t port = 0;
    std::string via{};  ///< in place of the way's own, where others asked us; empty: its own
};

/// A connection to the far end, by way of the parent.
struct passage {
    byte_stream stream;
    read_buffer behind;           ///< bytes of the far end that came with the parent's answer
    tls_trust_ptr believed_by{};  ///< who believed the parent's certificate; null: it has none
};

/// Whom to believe now: asked when a handshake begins, since a reload may come between.
using trust_of_the_day = std::function<tls_trust_ptr()>;

/// What a parent's head may take, and how many 1xx may come before it.
inline constexpr std::size_t most_connect_head = 16u << 10;
inline constexpr unsigned most_connect_interim = 4;

/// Asks on a connection to the parent.
/// Errors: parent_refused, or of a 508 loop_detected, with its name and status; no_parent: it ended
/// the connection, or what it said is no HTTP; connect_timeout: it was silent until then.
[[nodiscard]] awaitable<attempt<passage>> ask_to_connect(
    byte_stream parent, way_ptr way, far_end to, deadlines& timer, steady_time until);

/// The same, from the name of the parent on: dial, TLS where it has that, CONNECT.
/// @param trust  asked when there is a connection to the parent, if that has TLS
/// Errors: those above; no_parent: it can't be reached; parent_certificate: it is not whom it should
/// be; out_of_memory.
[[nodiscard]] awaitable<attempt<passage>> connect_through(
    resolver& names,
    std::shared_ptr<const destination_guard> guard,
    trust_of_the_day trust,
    way_ptr way,
    far_end to,
    steady_time until);

/// TLS to the far end, over a passage: inside the parent's, where that is TLS too (carried.hpp).
/// Errors: those of connect_tls; tls_failed, where the far end spoke first.
[[nodiscard]] awaitable<attempt<byte_stream>> secure_passage(
    passage by, tls_trust_ptr trust, tls_server server, deadlines& timer, steady_time until);

/// What failed on the way to a parent, as parent_certificate or no_parent, naming it. What is no word
/// of the parent (no memory, limits of ours, the drain) stays as it is.
[[nodiscard]] failure parent_not_reached(std::string_view parent, failure why);

}  // namespace reprise::proxy::net
