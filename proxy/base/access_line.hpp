#pragma once
// One request as one line of JSON, whatever bytes the client sent.
// A log is read by machines that choke on a bad byte and by people whose URLs carry credentials
// (signed URLs, basic auth): invalid UTF-8 becomes U+FFFD, control characters are escaped, user
// information never appears, and query values appear only when the operator asked for them.

#include "proxy/base/clock.hpp"
#include "proxy/base/counters.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy {

/// What was stored when somebody else was asked.
enum class asked_over : std::uint8_t {
    nothing,
    stale,   ///< a response that had to be validated
    reload,  ///< one that would have done, but the client wanted the origin asked
};

/// A finished request. The views need only live during the call that formats them; empty ones, and
/// durations without value, are left out of the line.
struct access_record {
    wall_time time;  ///< when the response ended
    std::uint64_t request_id = 0;
    std::string_view client;     ///< address and port
    std::string_view user;       ///< the name that it has shown to be its own
    unsigned http_version = 11;  ///< 10 or 11, of the request
    std::string_view method;
    std::string_view url;  ///< as received: absolute, or origin-form, or CONNECT's authority
    unsigned status = 0;   ///< 0: no response was sent
    outcome how = outcome::miss;
    std::string_view reason;      ///< why: Cache-Status's detail, or the failure's name
    std::string_view error;       ///< the failure's detail, for people
    std::uint64_t bytes_in = 0;   ///< from the client: head and body
    std::uint64_t bytes_out = 0;  ///< to the client: head and body
    std::chrono::nanoseconds total{0};
    std::optional<std::chrono::nanoseconds> first_byte;   ///< of our response
    std::optional<std::chrono::nanoseconds> origin_time;  ///< request sent until response head
    std::string_view origin;  ///< the address connected to, with its port
    std::string_view peer;    ///< the name of the sibling or parent that is
    std::string_view user_agent;
    std::string_view referer;
    std::string_view traceparent;   ///< W3C Trace Context's, as the client sent it
    std::string_view content_type;  ///< of the response; empty where nobody asked for it
    unsigned sample = 1;            ///< it stands for so many requests (log.sample)
    asked_over over = asked_over::nothing;
    bool if_none_match = false, if_modified_since = false;  ///< of the request
    bool from_disk = false;  ///< what was stored was read from disk for this answer
};

/// Longest values kept of a record, in bytes before escaping; a longer one ends in "...".
struct access_line_limits {
    static constexpr std::size_t url = 4096;
    static constexpr std::size_t text = 256;  ///< every other
};

/// Appends the line with its newline. Total: any bytes make one valid line of JSON, at most 40 KiB.
/// Allocates only when `out` must grow. The URL is cut when what is nobody's business has left it: a cut before
/// might take away the "@" by which user information is known.
void append_access_line(std::string& out,
                        const access_record& record,
                        bool query_values,
                        std::size_t most_of_url = access_line_limits::url);

}  // namespace reprise::proxy
