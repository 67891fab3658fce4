#pragma once
// Purges as they are asked for, PURGE on a listener and POST /purge on the admin listener, and
// carried out: in the store, in the table of fetches, and told in JSON.
//
// They hold when the answer is given: a request that comes after it is not answered with what was
// stored before, does not join a fetch that began before, and what such a fetch brings is not
// stored.

#include "proxy/http/fields.hpp"
#include "proxy/thread/purge_order.hpp"
#include "proxy/thread/settings.hpp"
#include "proxy/thread/worker.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace reprise::proxy::serve {

using thread::purge_kind;
using thread::purge_order;

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
/// Any thread. O(fetches under way) by prefix and tag; the store is not gone through. This proxy's
/// other process is told of it, where there is one.
/// @param now  resident time: a soft purge ends lifetimes, which are held against that
[[nodiscard]] purge_answer carry_out(thread::common_state& common,
                                     const purge_order& order,
                                     wall_time now);

/// What the other process was asked: as carry_out, and nobody is told or counts it.
void carry_out_here(thread::common_state& common, const purge_order& order, wall_time now);

}  // namespace reprise::proxy::serve
