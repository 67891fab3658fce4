#pragma once
// Where a message's body ends, and whether the connection lives on after it (RFC 9112 6, 9.3).
//
// Two recipients that disagree on where a message ends are a smuggled request, so whatever could be
// read in two ways is refused: in requests with 400, in responses with 502. Odd forms that RFC 9112
// allows a recipient to repair are repaired in responses only where the repair cannot be misread.

#include "proxy/base/failure.hpp"
#include "proxy/http/message_head.hpp"

#include <cstdint>

namespace reprise::proxy::http {

enum class body_kind : std::uint8_t {
    none,         ///< the message ends with its head
    length,       ///< `length` bytes follow
    chunked,      ///< the chunked coding, with trailers
    until_close,  ///< responses only: everything up to a clean end of the connection
};

struct body_framing {
    body_kind kind = body_kind::none;
    std::uint64_t length = 0;  ///< body_kind::length only; 0 is possible
    /// What a response says of its own length although it has no body (HEAD, 304), to be passed on.
    bool has_stated_length = false;
    std::uint64_t stated_length = 0;
    /// False when the sender framed a body that must not exist (204, 1xx): what follows the head
    /// cannot be trusted, so its connection must not be used again.
    bool reusable = true;
};

/// The body of a request, and with it the fields that decide how a request is framed and routed.
///
/// Refused as bad_request: Content-Length and Transfer-Encoding together; two Content-Length lines,
/// or one that is not digits alone ("+5", "5,5", empty) or above 2^63-1; Transfer-Encoding twice,
/// in HTTP/1.0, or chunked other than once, last and without parameters; no Host in HTTP/1.1, two
/// Hosts, an empty or malformed one; a body with TRACE or CONNECT (what follows a CONNECT is the
/// tunnel's); more than 32 connection options. A coding other than chunked is unsupported_coding.
/// Whatever fails here, the connection is closed after the answer.
[[nodiscard]] attempt<body_framing> request_framing(const request_head& head);

/// The body of a response to a request with this method (RFC 9112 6.3).
///
/// Refused as bad_response: the same, except that equal Content-Length values, on several lines or
/// in a list without empty members, are taken as one. No body: to HEAD, in 1xx, 204 and 304,
/// whatever the fields say, and 2xx to CONNECT.
[[nodiscard]] attempt<body_framing> response_framing(const response_head& head,
                                                     boost::beast::http::verb request_method);

/// Whether the sender is willing to go on after this message (RFC 9112 9.3): Connection says close,
/// or the version is 1.0 and it does not say keep-alive: no. Proxy-Connection says nothing.
/// An until_close body ends the connection whatever this answers.
[[nodiscard]] bool keep_alive(unsigned version, field_list fields) noexcept;

/// True when the request waits for a 100 (Continue) before its body (RFC 9110 10.1.1); false
/// without a body and in HTTP/1.0. unsupported_expectation (417) for every other expectation.
[[nodiscard]] attempt<bool> expects_continue(const request_head& head, const body_framing& body);

/// True for a WebSocket handshake (RFC 6455 4.1): GET in HTTP/1.1, Upgrade: websocket alone, and
/// Connection names upgrade. The only upgrade that passes.
[[nodiscard]] bool asks_websocket(const request_head& head) noexcept;

/// A Content-Length value: digits alone, at most 2^63-1. Nothing is trimmed.
[[nodiscard]] bool parse_content_length(std::string_view text, std::uint64_t& out) noexcept;

}  // namespace reprise::proxy::http
