#pragma once
// One small exchange on a connection: a request's bytes out, a whole response in, within a bound
// and a time. For what siblings are asked beside objects; clients' responses stream elsewhere.

#include "proxy/net/asio.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/net/origin_pool.hpp"
#include "proxy/peer/digest_follower.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reprise::proxy::peer {

struct got_response {
    /// none; unreachable, timed_out, bad_message or too_large, and then only what is said below
    follow_trouble trouble = follow_trouble::none;
    std::string detail{};
    bool silent = false;  ///< it ended without a byte: a kept connection that was dead already
    unsigned status = 0;
    std::string etag{}, node{}, last_modified{};
    bool tells_news = false;                          ///< it has a Reprise-News
    std::string seen{};                               ///< Reprise-Seen, as it stands
    bool had_more = false;                            ///< what it told of was taken out of `body`
    std::optional<std::chrono::seconds> fresh_for{};  ///< Expires less Date, where both are dates
    std::vector<std::byte> body{};
};

/// Sends `request`, a head whose answer is framed as a GET's is, and reads the answer; gives the connection back if it may serve
/// again. 1xx responses are passed over. @pre `patience` closes the lease's socket when it expires,
/// and is armed; both outlive the call
/// @param most  bytes of body; a longer one is too_large as soon as it says so, or has come
[[nodiscard]] awaitable<got_response> bounded_get(net::origin_lease& lease,
                                                  net::deadline& patience,
                                                  std::string request,
                                                  std::uint64_t most);

}  // namespace reprise::proxy::peer
