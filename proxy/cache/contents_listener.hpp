#pragma once
// A listener to what the store holds, primary key by primary key, tier by tier: what a digest is
// made of. The store tells, and knows nothing of its listener.

#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/cache/stored_response.hpp"

#include <cstdint>
#include <string_view>

namespace reprise::proxy::cache {

enum class tier_name : std::uint8_t { memory, disk };

/// Threads   called on any thread, under the locks of the tier that speaks: it may push to a queue
///           behind a short lock, and no more.
/// Order     what is said of one key and one tier is said in the order in which it happened.
class contents_listener {
public:
    contents_listener() = default;
    contents_listener(const contents_listener&) = delete;
    contents_listener& operator=(const contents_listener&) = delete;
    virtual ~contents_listener() = default;

    /// The tier holds copies of `url`; the longest-lived answers without its origin until `until`,
    /// which may be past. Called for the first copy, and whenever one is added, freshened or
    /// removed while others remain.
    virtual void held(tier_name by,
                      const filter::key_hash& key,
                      std::string_view url,
                      wall_time until) noexcept = 0;
    /// The last copy has gone. Only the part of `key` that the disk's index keeps
    /// (record_index::partial) need be right; may be called for keys that are not primary.
    virtual void gone(tier_name by, const filter::key_hash& key) noexcept = 0;
    /// All copies in all tiers are stale from now on.
    virtual void outdated(const filter::key_hash& key) noexcept = 0;
    /// All that was on disk at the start has been said.
    virtual void loaded() noexcept = 0;
};

/// Until when a response answers without its origin; wall_time::min(): never.
[[nodiscard]] wall_time useful_until(const http::freshness_facts& freshness,
                                     const http::response_directives& directives) noexcept;

}  // namespace reprise::proxy::cache
