#pragma once
// The beginning of a request's body, waited for before anybody is asked for a connection.
// An origin's connections are scarce, and a client that sends slowly would hold one for as long as
// it likes: so it shows first that it sends. What came meanwhile stays in the client's buffer, from
// where http1_content takes it.

#include "proxy/base/clock.hpp"
#include "proxy/base/ended.hpp"
#include "proxy/http/chunked.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/net/asio.hpp"

#include <chrono>
#include <cstddef>
#include <string_view>

namespace reprise::proxy::net {
class client_stream;
}  // namespace reprise::proxy::net

namespace reprise::proxy::serve {

/// Says when there is enough of a body. Pure: looks at bytes, takes none.
class body_beginning {
public:
    /// How much of a longer body is enough; at most so much, and one read, is held.
    static constexpr std::size_t enough = 64u << 10;
    /// How long it is waited for, from the request's head on.
    static constexpr std::chrono::milliseconds patience{200};

    body_beginning(const http::body_framing& framing, const http::chunked_limits& limits);

    /// `input` is all of the body's coding that has come; it begins with what the last call saw.
    /// True also where it is framed wrongly: waiting would mend nothing.
    [[nodiscard]] bool is_here(std::string_view input);

private:
    http::body_framing framing_;
    http::chunked_decoder decoder_;
    std::size_t seen_ = 0;
};

/// Reads into the client's buffer until the body's beginning is there, or until then. `keep`, or
/// `gone`.
[[nodiscard]] awaitable<ended> await_beginning(net::client_stream& client,
                                               body_beginning beginning,
                                               steady_time until);

}  // namespace reprise::proxy::serve
