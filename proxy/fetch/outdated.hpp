#pragma once
// What another cache has may be older than what went through here, and that cache know nothing of it.

#include "proxy/base/clock.hpp"
#include "proxy/cache/store.hpp"
#include "proxy/fetch/order.hpp"

#include <chrono>
#include <string_view>

namespace reprise::proxy::fetch {

/// Whether an answer of another cache's may have been made before an unsafe method (RFC 9111 4.4), or a
/// purge, that met its key here: by this node's steady clock, and the age that the answer states. True may
/// be said without need. O(bytes of the head + bans).
/// @param head      as it was received, from its status line on
/// @param asked_at  when the request that it answers was sent
[[nodiscard]] bool may_be_outdated(const cache::store& here,
                                   const filter::key_hash& key,
                                   std::string_view url,
                                   std::string_view head,
                                   steady_time asked_at,
                                   std::chrono::seconds age);

/// What is held here for the request of `order`, as far as is known without the disk; null: nothing.
[[nodiscard]] cache::stored_ptr held_for(const cache::store& here, const fetch_order& order);

}  // namespace reprise::proxy::fetch
