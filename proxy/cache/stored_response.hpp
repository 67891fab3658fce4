#pragma once
// A response as the store keeps it: immutable, its head already in wire form.
// A hit sends [head][per-reply fields][empty line][body] in one gathered write; everything that
// does not change from one reply to the next was formatted when the object was stored.
// Some objects are held only in parts (partial_response.hpp): they have no content, and their
// `reusable_until` is never, so that a plain hit need not ask.
// The body of a large object that came from disk is not in memory at all (disk_body.hpp).

#include "proxy/base/clock.hpp"
#include "proxy/cache/body.hpp"
#include "proxy/cache/disk_body.hpp"
#include "proxy/cache/parts.hpp"
#include "proxy/http/cache_control.hpp"
#include "proxy/http/fields.hpp"
#include "proxy/http/freshness.hpp"
#include "proxy/http/vary.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::cache {

/// The generation of the admission filter that was last told of a hit, plus one. A copy has told
/// nobody yet.
struct last_told : std::atomic<std::uint32_t> {
    last_told() noexcept : std::atomic<std::uint32_t>{0} {}
    last_told(const last_told&) noexcept : last_told() {}
};

/// Which record of the disk tier a response is, or was made of; 0: of none. The tier sets it when
/// it takes a response.
struct record_id : std::atomic<std::uint64_t> {
    record_id() noexcept : std::atomic<std::uint64_t>{0} {}
    record_id(const record_id& other) noexcept
        : std::atomic<std::uint64_t>{other.load(std::memory_order_relaxed)} {}
    using std::atomic<std::uint64_t>::operator=;
};

struct stored_response {
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
    http::response_directives directives;
    http::vary_spec vary;
    std::string selecting;  ///< the request's values for `vary` (http::selecting_values)
    body_ptr content;
    /// Set where only parts are held, and `content` is not; null for a whole response.
    std::shared_ptr<const partial_body> parts;
    /// Set where the whole body is on disk, and neither `content` nor `parts` is.
    std::shared_ptr<const disk_body> on_disk;
    mutable record_id disk_record;
    wall_time reusable_until{};  ///< before it, a request without directives is a hit
                                 ///< (http::reusable_until)

    std::vector<std::uint64_t> tags;  ///< to be purged by (tags.hpp), sorted
    bool purged_softly = false;       ///< its lifetime was ended by a purge

    mutable last_told told_at;  ///< a hit tells the filter at most once in each generation

    /// Bytes of the whole body, wherever it is. @pre !parts
    [[nodiscard]] std::uint64_t size() const noexcept {
        return content ? content->size : on_disk ? on_disk->size() : 0;
    }

    /// Field lines of `head`, parsed anew: for conditional answers and freshening, not for plain
    /// hits.
    [[nodiscard]] std::vector<http::field> fields() const;

    /// Memory this response is charged for, in bytes, all of its own allocations counted.
    [[nodiscard]] std::size_t footprint() const noexcept;
};

using stored_ptr = std::shared_ptr<const stored_response>;

/// The same response, its lifetime over at `when` if it was not before (a soft purge). The body is
/// shared.
[[nodiscard]] stored_ptr ended_at(const stored_response& response, wall_time when);

/// Sets status_line_size, length_at and tags from `head`.
void index_head(stored_response& response);

}  // namespace reprise::proxy::cache
