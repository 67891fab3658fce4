#pragma once
// From one line of a log or trace to the request it tells of, or why it tells of none.
//
// Formats:
//
//     trace      seconds,key,bytes[,microseconds]      the format of tests/data/traces
//     squid      1286536309.586 921 192.0.2.1 TCP_MISS/200 507 GET http://x/ - DIRECT/x text/html
//     combined   192.0.2.1 - - [10/Oct/2020:13:55:36 -0700] "GET /x HTTP/1.1" 200 2326 "-" "agent"
//                (Apache's and nginx's combined and common, and Squid's "combined", whatever
//                follows the size)
//     json       Reprise's own access log
//
// What counts. A log does not say what was cacheable, so the rule is a generous one: GET, with a
// status that RFC 9110 15.1 calls heuristically cacheable, or 206 or 304, by which the object was
// asked for. What was refused, failed, was tunnelled or posted never reaches a store and is
// skipped. Responses that said no-store or private count all the same: a real cache will have fewer
// hits. A 206 or 304 says nothing of the object's size: that is taken from its other lines.
//
// How long an origin takes is told by a trace with a fourth column, by Squid's time of a request that
// missed (TCP_MISS and the like), which is its client's too, and by our own log's origin_ms of a miss,
// which ends with the head.
//
// Pure functions over bytes from outside: total, no allocation, at most one pass over the line.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace reprise::replay {

enum class log_format : std::uint8_t { trace, squid, combined, json };
inline constexpr log_format every_format[] = {
    log_format::trace, log_format::squid, log_format::combined, log_format::json};
[[nodiscard]] std::string_view to_string(log_format format) noexcept;
[[nodiscard]] std::optional<log_format> format_of(std::string_view name) noexcept;

enum class line_kind : std::uint8_t {
    request,
    other_method,
    other_status,
    malformed,  ///< not a line of this format; an empty line and a comment too
};

struct log_line {
    line_kind kind = line_kind::malformed;
    std::int64_t seconds = 0;             ///< since 1970 or since the trace began, unless malformed
    std::string_view key{};               ///< a part of the line; as written there, escapes and all
    std::uint64_t bytes = 0;              ///< as the log has it: of the body, or with the head
    bool whole = true;                    ///< false: `bytes` is not the object's size (206, 304)
    std::optional<std::uint64_t> wait{};  ///< microseconds that a fetch of the whole took
    std::string_view client{};  ///< without its port; empty in a trace, which knows of none
};

/// `line` is without its newline; a carriage return at its end is ignored.
[[nodiscard]] log_line parse_line(log_format format, std::string_view line) noexcept;

/// Whether the log has something else in place of the key's query: Reprise's "*" for each value
/// (unless log.query_values), the "?" that Squid leaves of it (strip_query_terms). Objects that
/// differ there alone can't be told apart.
[[nodiscard]] bool hides_query(log_format format, std::string_view key) noexcept;

/// The format in which most of these lines are lines at all; none if that is less than half.
[[nodiscard]] std::optional<log_format> detect_format(
    std::span<const std::string_view> lines) noexcept;

}  // namespace reprise::replay
