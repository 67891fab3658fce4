#pragma once
// What changes on the way through: hop-by-hop fields, Via, Host, framing (RFC 9110 7.6, 9112 3.2).
//
// A head that goes on is written anew: start line, end-to-end fields in their order, then what we
// state ourselves. Framing fields never pass; they are written from what was decided (framing.hpp),
// in one canonical form, so that the next hop cannot read them in another way than we did.

#include "proxy/http/fields.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/http/target.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::http {

/// Whether it came by way of a proxy (RFC 9110 7.6.3).
[[nodiscard]] inline bool has_via(field_list fields) noexcept {
    return find(fields, field_id::via) != nullptr;
}

/// The field names that Connection lists. At most 32: framing.hpp refuses messages with more, so
/// that comparing every line with every name stays cheap.
class connection_options {
public:
    explicit connection_options(field_list fields) noexcept;
    [[nodiscard]] bool has(std::string_view name) const noexcept;
    [[nodiscard]] bool too_many() const noexcept { return too_many_; }

private:
    std::array<std::string_view, 32> names_;
    std::uint8_t count_ = 0;
    bool too_many_ = false;
};

/// True for a line that ends here: the fields that concern one connection (Connection, Keep-Alive,
/// Proxy-Connection, TE, Trailer, Transfer-Encoding, Upgrade, HTTP2-Settings), the proxy's own
/// authentication (Proxy-Authenticate, Proxy-Authorization, Proxy-Authentication-Info), and what
/// Connection names.
///
/// Connection cannot remove what is meant for all recipients (RFC 9110 7.6.1): Host, Content-*,
/// Cache-Control and whatever else decides what a message means, who asks, whether it may be stored
/// and for how long. Otherwise a client could have an origin answer another request than the one we
/// judge (a Range, a Cookie or an Authorization taken away), and we would store that answer.
[[nodiscard]] bool is_hop_by_hop(const field& line, const connection_options& named) noexcept;

/// Takes every hop-by-hop line out of `fields`, but for TE and Trailer, which are asked for again
/// (request_options, response_options) and never pass by themselves. Done after a request's
/// connection facts (keep_alive, framing, expectation, upgrade) are read, so that variants are
/// keyed by what is forwarded.
void strip_hop_by_hop(std::vector<field>& fields);

/// Takes out what says by which scheme, host, port and path the client came (X-Forwarded-Proto,
/// X-Forwarded-Prefix, X-Original-URL and their many kin). An accelerator knows that itself and says it to its upstream; and what its upstream
/// obeys must be in the key, where a client's word is not. Done beside strip_hop_by_hop.
void strip_url_claims(std::vector<field>& fields);

struct request_options {
    std::string_view via{};             ///< our pseudonym; empty: no Via
    std::string_view client_address{};  ///< numeric, no brackets; needed by the next two
    bool forwarded = false;             ///< append to Forwarded (RFC 7239)
    bool x_forwarded_for = false;       ///< append to X-Forwarded-For
    /// The client's own scheme, which is said (X-Forwarded-Proto, proto= in our part of Forwarded)
    /// in place of what others' parts of Forwarded say of it, and of Host. Empty: nothing is said.
    std::string_view scheme{};
    body_framing body{};             ///< written as Content-Length or Transfer-Encoding
    bool drop_conditionals = false;  ///< If-Match, If-None-Match, If-*-Since
    bool drop_range = false;         ///< Range, If-Range
    bool drop_expect = false;        ///< also dropped for an HTTP/1.0 client
    bool to_proxy = false;           ///< absolute-form: the next hop is a proxy
    bool websocket = false;          ///< ask for the upgrade
    bool trailers = false;           ///< keep Trailer, since the body's trailers follow
    bool te_trailers = false;        ///< say TE: trailers
    bool close = false;              ///< Connection: close
    std::optional<std::uint32_t> max_forwards{};  ///< in place of the client's
    std::string_view extra{};                     ///< whole field lines, CRLF included
};

/// The head of a request to an origin, whole, empty line included: origin-form (or "*" for OPTIONS
/// of a whole server, RFC 9112 3.2.4; to a proxy absolute-form, 3.2.2), HTTP/1.1, Host first and
/// from the target, our Via behind those before us.
/// @pre t has a host
void append_request_head(std::string& out,
                         const request_head& head,
                         const target& t,
                         const request_options& options);

struct response_options {
    std::string_view via{};     ///< our pseudonym; empty: no Via
    std::string_view date{};    ///< IMF-fixdate for a response without Date (RFC 9110 6.6.1)
    bool keep_age = false;      ///< pass Age on; otherwise whoever replies states its own
    bool trailers = false;      ///< keep Trailer, since trailers follow
    bool websocket = false;     ///< a 101: write Connection and Upgrade again
    bool drop_alt_svc = false;  ///< another way to the origin, which would lead past us (RFC 7838)
};

/// Status line (HTTP/1.1) and end-to-end fields of a response, Via included; no framing field, no
/// Connection, no Age, and no empty line: what can be stored, and what each reply's own fields
/// follow. A 1xx gets no Date.
void append_response_fields(std::string& out,
                            const response_head& head,
                            const response_options& options);

/// Content-Length or Transfer-Encoding for a reply to a client of this version, or nothing where
/// the body runs until the connection closes (as chunked does towards HTTP/1.0).
void append_framing(std::string& out, const body_framing& body, unsigned client_version = 11);

/// True when a Via member was received by exactly `pseudonym` (without case): the message has been
/// here before. A name that only contains it does not count; commas separate even in comments.
[[nodiscard]] bool via_has(field_list fields, std::string_view pseudonym) noexcept;

enum class hops : std::uint8_t { forward, answer_here };
struct hop_verdict {
    hops what = hops::forward;
    std::optional<std::uint32_t> left{};  ///< Max-Forwards to send on; none: there was none
};
/// Max-Forwards of OPTIONS and TRACE (RFC 9110 7.6.2); other methods ignore it. bad_request when it
/// is no number or stands twice. More than 2^31 hops are as good as 2^31.
[[nodiscard]] attempt<hop_verdict> judge_hops(const request_head& head);

/// The content of an answer to TRACE, type message/http: the request head as received, without what
/// identifies its sender (Authorization, Proxy-Authorization, Cookie; RFC 9110 9.3.8).
void append_trace(std::string& out, const request_head& head);

}  // namespace reprise::proxy::http
