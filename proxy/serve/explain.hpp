#pragma once
// What a request would get now, and why: GET /explain on the admin listener.
// It is read by read_request and judged by decide and cache::judge, as an exchange does it; nobody
// is asked and nothing changes: the store and the admission filter are only peeked at.

#include "proxy/thread/settings.hpp"
#include "proxy/thread/worker.hpp"

#include <string>
#include <string_view>

namespace reprise::proxy::serve {

struct explanation {
    unsigned status = 200;  ///< 400: the query says nothing that could be explained
    std::string json;
};

/// `query`: url=U (absolute, or host:port for CONNECT), and where they are not the usual method=M,
/// header=Name:%20value (several), listener=N (its place in the settings). Without a Host header
/// the URL's authority is it. The client is taken for one that access.clients allows, that has said
/// who it is where it must, and that is in access.purge_clients where anybody is. Where a name leads is judged when it is resolved.
///
/// In the answer:
///
///     key        the primary key's text and its hash
///     stored     every variant: selecting fields, each term of its age and lifetime, parts
///     storing    what is known of whether its answer may be stored before it is there: by the
///                request itself, or since its last answer lately might not; null: nothing
///     largest    how many bytes a body may have at most to be stored, and the setting that says so
///     admission  times seen here (`counts_to` at most are told from one another), whether a sibling
///                has told of it (`seen_by_siblings`; admission.share), the policy and rule in force,
///                whether this request would admit it
///     rules      how many freshness and admission rules there are, and those `near`: they would be
///                for this URL if its port or scheme were theirs
///     siblings   whose digests claim it, of those who might be asked for it
///     assumes    what it takes the client for, where settings could refuse it: sentences
///     on_disk    whether the disk has something for this URL (a flag in memory: nothing is read).
///                Where memory has nothing for the request it is read first: the ruling is "disk"
///     verdict    what becomes of the request: `ruling`, the `rule` and `section` that decided, and
///                of what is known before an origin answers: `outcome` and `cache_status` as the
///                log and the response would have them; null, and only `fwd`, of the rest. What
///                is answered by an error is "refused": `status`, and `why` and `detail` as its
///                body has them
///
/// Values of Authorization and Cookie among selecting fields are not shown.
/// @param book  who the peers are; null: nobody is one
/// Any thread.
[[nodiscard]] explanation explain(const thread::common_state& common,
                                  const thread::settings& now_settings,
                                  const peer::peer_book* book,
                                  std::string_view query,
                                  wall_time now);

}  // namespace reprise::proxy::serve
