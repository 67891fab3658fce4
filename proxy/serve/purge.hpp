#pragma once
// Purges as they are asked for, PURGE on a listener and POST /purge on the admin listener, and
// carried out: in the store, in the table of fetches, and told in JSON.
//
// They hold when the answer is given: a request that comes after it is not answered with what was
// stored before, does not join a fetch that began before, and what such a fetch brings is not
// stored.

#include "proxy/cache/memory/purges.hpp"
#include "proxy/http/fields.hpp"
#include "proxy/thread/settings.hpp"
#include "proxy/thread/worker.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::serve {

enum class purge_kind : std::uint8_t { url, prefix, tag };

struct purge_order {
    purge_kind kind = purge_kind::url;
    cache::purge_mode mode = cache::purge_mode::hard;
    /// Primary keys' texts: the URLs; the prefixes; any keys of the origin whose tags are meant.
    /// Several where a URL is known to several listeners.
    std::vector<std::string> keys;
    std::vector<std::string> tags;
};

/// An order, or why it is none.
struct read_purge {
    purge_order order;
    std::string wrong;  ///< empty: `order` holds
};

/// PURGE with these fields, of the URL whose key this is:
///
///     Purge: soft              stale from now on, instead of gone
///     Purge: prefix            every URL of the origin that begins with this one
///     Surrogate-Key: a b       every response of the origin with one of these tags,
///     Cache-Tag: a, b          whatever its URL
[[nodiscard]] read_purge read_purge_request(std::string_view key, http::field_list fields);

/// POST /purge: url=U, or prefix=U, or tag=T (several) with origin=U; and soft. U is absolute;
/// where there are accelerators, it names what they store under its authority as Host, too.
[[nodiscard]] read_purge read_purge_query(std::string_view query, const config::options& options);

/// How long a purge waits for the disk to keep it, and what it says when that takes longer: it
/// holds now, but a restart might not know of it.
inline constexpr std::chrono::seconds purge_patience{5};
inline constexpr unsigned purge_not_kept_status = 504;
inline constexpr std::string_view purge_not_kept =
    "the purge holds: nothing that it met is served from now on. But the disk has not kept it yet: "
    "after a crash what it met might be back; ask again\n";

struct purge_answer {
    unsigned status = 200;  ///< 404: nothing was stored of the URLs
    std::string json;
};
/// Any thread. O(fetches under way) by prefix and tag; the store is not gone through.
[[nodiscard]] purge_answer carry_out(thread::common_state& common,
                                     const purge_order& order,
                                     wall_time now);

}  // namespace reprise::proxy::serve
