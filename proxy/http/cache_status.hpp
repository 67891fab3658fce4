#pragma once
// This cache's member of the Cache-Status field (RFC 9211): how a request was handled, for people
// with a developer console.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy::http {

/// Why a request went forward (RFC 9211 2.2). `none`: it did not.
enum class forward_reason : std::uint8_t {
    none,
    bypass,     ///< configured not to handle it
    method,     ///< its method's semantics want it forwarded
    uri_miss,   ///< nothing is stored for the URL
    vary_miss,  ///< something is, but for other selecting values
    miss,       ///< nothing fits, and which of the two was not told apart
    request,    ///< something fits, but the request's directives want the origin
    stale,      ///< something fits, but is stale
    partial,    ///< only parts are stored
};
[[nodiscard]] std::string_view to_string(forward_reason reason) noexcept;

/// RFC 9211's parameters. `hit` and `forward` exclude each other (2.1): with `hit`, forward and
/// forward_status are left out. What was stale and validated is forward=stale with
/// forward_status=304.
struct cache_status {
    bool hit = false;
    forward_reason forward = forward_reason::none;
    unsigned forward_status = 0;              ///< what the next hop answered; 0: leave out
    std::optional<std::chrono::seconds> ttl;  ///< freshness left; negative when stale
    bool stored = false;                      ///< the response went into the cache
    bool collapsed = false;                   ///< shared another request's fetch
    std::string_view detail;                  ///< empty: leave out
};

/// Appends "NAME; hit; ttl=12" or "NAME; fwd=uri-miss; fwd-status=200; stored;
/// detail=first-request". NAME and detail are tokens where they can be, else quoted strings (RFC
/// 9651 3.3); a character that a structured string can't hold becomes "?". No allocation if `out`
/// has the room: the parameters take under 120 bytes besides name and detail (each at most twice
/// its size, plus 2).
void append_cache_status(std::string& out, std::string_view name, const cache_status& status);

/// The cache that this response came from, the last to have its say in Cache-Status, shares another
/// request's fetch (RFC 9211 2.6): it may be waiting itself. False where that can't be read.
[[nodiscard]] bool was_collapsed(field_list fields) noexcept;
/// That cache has asked the next hop for this request alone (2.2), and this, of this status, is what came of it: not
/// what stands in for it. False where that can't be read.
[[nodiscard]] bool was_forwarded(field_list fields, unsigned status) noexcept;

}  // namespace reprise::proxy::http
