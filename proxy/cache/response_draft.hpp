#pragma once
// A response on its way into the store: what whoever makes one sets, member by member. Kept is what
// is made of it once (stored_response::make).

#include "proxy/base/clock.hpp"
#include "proxy/cache/body.hpp"
#include "proxy/cache/disk_body.hpp"
#include "proxy/cache/parts.hpp"
#include "proxy/cache/policy/packed_wait.hpp"
#include "proxy/http/cache_control.hpp"
#include "proxy/http/freshness.hpp"
#include "proxy/http/vary.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace reprise::proxy::cache {

/// Requests that were sent in one millisecond are told apart by a turn, less than this.
inline constexpr std::uint16_t turns = 1u << 10;

struct response_draft {
    /// "HTTP/1.1 200 OK\r\n", the end-to-end fields with our Via, and last Content-Length where the
    /// status has one. Without Age, Cache-Status, Connection and the empty line: those are the
    /// reply's.
    std::string head;
    std::size_t status_line_size = 0;  ///< where the first field line begins
    std::size_t length_at =
        0;  ///< where the Content-Length line begins; head.size() when there is none
    unsigned status = 0;
    http::freshness_facts freshness;  ///< response_time is resident time (clock.hpp)
    /// When the request that it answers was sent, resident time. wall_time::min(): not known, as
    /// for what came from disk; then response_time counts.
    wall_time asked_at = wall_time::min();
    std::uint16_t asked_turn = 0;  ///< cache::next_turn() of that request
    packed_wait wait;              ///< what the fetch took: what a hit spares
    http::response_directives directives;
    http::vary_spec vary;
    std::string selecting;  ///< the request's values for `vary` (http::selecting_values)
    body_ptr content;
    /// Set where only parts are held, and `content` is not; null for a whole response.
    std::shared_ptr<const partial_body> parts;
    /// Set where the whole body is on disk, and neither `content` nor `parts` is.
    std::shared_ptr<const disk_body> on_disk;
    std::uint64_t disk_record = 0;  ///< stored_response::disk_record
    /// Before it, a request without directives is a hit: http::reusable_until of the two above, or
    /// wall_time::min() for never. Nothing else is kept of it.
    wall_time reusable_until = wall_time::min();
    bool purged_softly = false;       ///< its lifetime was ended by a purge
    /// Its Last-Modified is a weak validator: the head that came with the body had no Date of its origin's a
    /// second later (RFC 9110 8.8.2.2). A later 304's Date says nothing of these bytes.
    bool weak_last_modified = false;
    std::vector<std::uint64_t> tags;  ///< to be purged by (tags.hpp), sorted
};

/// Bytes of the line in front of the fields, its end included; 0: there is none.
[[nodiscard]] inline std::size_t status_line_size(std::string_view head) noexcept {
    const auto end = head.find("\r\n");
    return end == std::string_view::npos ? 0 : end + 2;
}

/// Sets status_line_size, length_at and tags from `head`.
void index_head(response_draft& response);

/// Its lifetime over at `when` if it was not before (a soft purge).
void end_at(response_draft& response, wall_time when) noexcept;

}  // namespace reprise::proxy::cache
