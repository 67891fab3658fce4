#pragma once
// A fetch on its way to a client: the one loop that reads fetches, and what goes on alone where a
// reader is served no further.

#include "proxy/cache/fetch.hpp"
#include "proxy/serve/exchange_state.hpp"

#include <optional>
#include <string_view>

namespace reprise::proxy::serve {

/// The fetch's next event (x.memory.report), if there is one.
[[nodiscard]] bool has_next(exchange_state& x, cache::fetch_reader& reader);
/// Waits for it, after sending what is composed. Anything but `keep`: nobody waits any more.
[[nodiscard]] awaitable<ended> next_of(exchange_state& x, cache::fetch_reader& reader);

/// How a body's bytes go out.
struct body_rules {
    /// Bytes to come; none: unknown. Never more or fewer are sent as if whole: the last defence of
    /// a client that trusts Content-Length.
    std::optional<std::uint64_t> left;
    std::uint64_t skip = 0;  ///< of what comes: the client has it
    body_source from = body_source::fetch;
    bool chunked = false;
    bool trailers = true;  ///< the fetch's go out behind the last chunk
    bool dropped = false;  ///< the client has asked for the head alone, or there is no body
};
enum class relayed : std::uint8_t {
    whole,  ///< all is sent, but for the reply's end
    gone,   ///< the client has left
    too_long,
    too_short,
    failed,        ///< x.memory.report.why
    fell_out,      ///< the fetch serves this reader no further
    out_of_order,  ///< what can't come where a body is
};
/// Sends what is composed and, behind it, a body as it comes.
[[nodiscard]] awaitable<relayed> relay_body(exchange_state& x,
                                            cache::fetch_reader& reader,
                                            body_rules rules);

/// What this client was served from serves it no longer: it fell out of a shared fetch, or the disk
/// fails. It has had the head and `offset` bytes of body, some perhaps composed and not out yet;
/// the rest is asked for by a range request of its own, under the strong ETag of what it has had
/// (RFC 9110 13.1.5). An origin that sends all of the same representation instead is as good.
/// Without an ETag what was sent cannot be continued, and the connection breaks.
/// @pre the reply is under way
[[nodiscard]] awaitable<ended> go_on_alone(exchange_state& x,
                                           cache::head_ptr head,
                                           std::uint64_t offset,
                                           bool chunked,
                                           std::string_view why);

}  // namespace reprise::proxy::serve
