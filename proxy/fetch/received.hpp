#pragma once
// A response's head as it came, and what its readers and the store are to know of it.

#include "proxy/base/clock.hpp"
#include "proxy/cache/fetch.hpp"
#include "proxy/fetch/order.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/message_head.hpp"

#include <memory>
#include <optional>
#include <string_view>

namespace reprise::proxy::fetch {

/// Whose word a response is. A sibling's is less than an origin's: what it answers with Set-Cookie is
/// not stored, and it says nothing of what the key's next response will be (whether it can be shared,
/// how long it is). `unkept_sibling`: proxy_only, nothing of it is stored. A parent's is `origin`.
enum class word_of : std::uint8_t { origin, sibling, unkept_sibling };

struct received {
    http::response_head head;  ///< views into the connection's buffer: gone when the body is read
    http::body_framing framing;
    bool persistent = false;                          ///< its sender keeps the connection
    wall_time requested{}, came{};                    ///< wall time
    wall_time resident_requested{}, resident_came{};  ///< the same in resident time
    std::uint16_t turn = 0;                           ///< of the request: cache::next_turn()
    steady_time sent{};
    word_of by = word_of::origin;
    /// By the home that it is from, for this request alone: it is from no store.
    bool fetched_now = false;
    /// It is fresh for no longer: peers[].max_age of the sibling that it is from.
    std::optional<http::seconds> at_most{};
};

/// What it says of its age, and what `order` demanded of that; not who that is from, and how long it took.
[[nodiscard]] cache::answered age_in(const received& from, const fetch_order& order);

/// By which the lifetime of a response with these fields is told: the order's, and nothing raised of
/// what belongs to one client.
/// @param at_most  received's
[[nodiscard]] http::freshness_rules rules_for(const fetch_order& order,
                                              std::optional<http::seconds> at_most,
                                              http::field_list fields);

/// Whether its Last-Modified is a weak validator (RFC 9110 8.8.2.2): less than a second before its sender's Date,
/// or, where there is none, less than a minute before our own; and where a sibling had it stored.
[[nodiscard]] bool has_weak_last_modified(const received& from);

/// What the response with these fields varies by. Where that is a field which we write for the client
/// (forwarding.client_address), no request can be told to match: we keep none of what was written.
[[nodiscard]] http::vary_spec vary_of(const fetch_order& order, http::field_list fields);

/// All but the verdict, whence it came, and what becomes of it.
[[nodiscard]] std::shared_ptr<cache::fetched_head> head_for_readers(const received& from,
                                                                    const fetch_order& order,
                                                                    std::string_view pseudonym);

}  // namespace reprise::proxy::fetch
