#pragma once
// One request as a line of another program's access log, for the analysers that read those.
// Both formats are fields between spaces (and quotes), so what a client sends is escaped: no byte of
// its own ends a field, a line, or begins one. User information never appears, and query values only
// when the operator asked for them, as in the JSON line.

#include "proxy/base/access_line.hpp"

#include <string>
#include <string_view>

namespace reprise::proxy {

/// Squid's native format ("logformat squid" of its 5.x and 6.x):
///
///     time.ms elapsed client code/status bytes method URL user hierarchy/address type
///
/// `code` and `hierarchy` are result_code's and hierarchy_code's. Spaces, quotes, control characters
/// and bytes above 0x7e are %XX. A request that could not be read is NONE error:invalid-request.
/// Appends one line; total, at most 16 KiB.
void append_squid_line(std::string& out, const access_record& record, bool query_values);

/// The combined format of Apache and nginx:
///
///     client - user [06/Nov/1994:08:49:37 +0000] "GET URL HTTP/1.1" status bytes "referer" "agent"
///
/// Times are in UTC. Bytes are all that were sent, head included (Apache's %O). In quotes, quotes and
/// backslashes have a backslash in front; control characters and bytes above 0x7e are a backslash and
/// xhh, as Apache has them.
/// Appends one line; total, at most 40 KiB.
void append_combined_line(std::string& out, const access_record& record, bool query_values);

/// The tag by which Squid would name this result: "TCP_MEM_HIT", "TCP_REFRESH_UNMODIFIED"...
/// What Squid does not know has the nearest: a follower of a fetch TCP_CF_HIT, a sibling's hit
/// TCP_MISS (with CD_SIBLING_HIT), what was stale and sent without asking the tag of a hit.
[[nodiscard]] std::string_view result_code(const access_record& record) noexcept;

/// Who was asked: HIER_NONE, HIER_DIRECT, FIRSTUP_PARENT, or CD_SIBLING_HIT, since siblings are
/// found by their digests.
[[nodiscard]] std::string_view hierarchy_code(const access_record& record) noexcept;

}  // namespace reprise::proxy
