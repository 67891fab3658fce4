#pragma once
// A response as the store keeps it: immutable, its head already in wire form.
// A hit sends [head][per-reply fields][empty line][body] in one gathered write; everything that
// does not change from one reply to the next was formatted when the object was stored.
//
// All of it lies in one allocation, the fixed members in front and behind them what has a size of
// its own: tags, texts, head, and a small body. Numbers are as wide as what they hold, and what
// few responses have takes room only in those. A larger body stays in the blocks in which it came.
//
//     [stored_response][elsewhere?][choice?][tags][times][names][selecting][head][small body]
//
// Some objects are held only in parts (partial_response.hpp): they have no content, and their
// `reusable_until` is never, so that a plain hit need not ask.
// The body of a large object that came from disk is not in memory at all (disk_body.hpp).

#include "proxy/cache/response_draft.hpp"
#include "proxy/http/fields.hpp"
#include "proxy/http/range.hpp"

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace reprise::proxy::cache {

/// The generation of the admission filter that was last told of a hit, plus one. A new response has
/// told nobody yet.
struct last_told : std::atomic<std::uint32_t> {
    last_told() noexcept : std::atomic<std::uint32_t>{0} {}
};

/// Which record of the disk tier a response is, or was made of; 0: of none. The tier sets it when
/// it takes a response.
struct record_id : std::atomic<std::uint64_t> {
    explicit record_id(std::uint64_t id) noexcept : std::atomic<std::uint64_t>{id} {}
    using std::atomic<std::uint64_t>::operator=;
};

class stored_response;
using stored_ptr = boost::intrusive_ptr<const stored_response>;

/// Threads   any: nothing changes but the two counters of its own that are atomic.
class stored_response {
public:
    /// The largest body that is copied to lie behind its head: a copy of so much costs less than
    /// the blocks' own allocations.
    static constexpr std::size_t small_body = 4096;

    /// What the draft says, but for two roundings: `reusable_until` is fresh_until of its freshness
    /// or never, and `asked_at` lies within 69 minutes before the response's time or is not known.
    /// Its status_line_size is what the head itself says. Times are told up to the year 9999.
    /// One allocation; copies at most `small_body` bytes of the body and shares a larger one.
    /// @throws std::bad_alloc, also for a head of 2 MiB or more
    [[nodiscard]] static stored_ptr make(const response_draft& draft);

    stored_response(const stored_response&) = delete;
    stored_response& operator=(const stored_response&) = delete;

    /// As response_draft has it.
    [[nodiscard]] std::string_view head() const noexcept { return {at(head_at()), head_}; }
    [[nodiscard]] std::size_t status_line_size() const noexcept {
        return cache::status_line_size(head());
    }
    [[nodiscard]] std::size_t length_at() const noexcept { return length_at_; }
    [[nodiscard]] unsigned status() const noexcept { return status_; }
    [[nodiscard]] http::freshness_facts freshness() const noexcept {
        return {wall_time{std::chrono::milliseconds{came_}},
                http::seconds{initial_age_},
                http::seconds{lifetime_},
                static_cast<http::lifetime_source>(source_)};
    }
    [[nodiscard]] wall_time asked_at() const noexcept;
    [[nodiscard]] std::uint16_t asked_turn() const noexcept { return asked_turn_; }
    [[nodiscard]] packed_wait wait() const noexcept { return packed_wait::of_code(wait_); }
    [[nodiscard]] http::response_directives directives() const noexcept;
    [[nodiscard]] http::vary_view vary() const noexcept {
        return {{at(names_at()), chosen().names}, vary_any_ != 0};
    }
    [[nodiscard]] std::string_view selecting() const noexcept {
        return {at(names_at() + chosen().names), chosen().selecting};
    }
    [[nodiscard]] std::span<const std::uint64_t> tags() const noexcept {
        return {reinterpret_cast<const std::uint64_t*>(at(tags_at())), chosen().tags};
    }
    [[nodiscard]] bool weak_last_modified() const noexcept { return weak_last_modified_ != 0; }
    [[nodiscard]] bool purged_softly() const noexcept { return purged_softly_ != 0; }
    [[nodiscard]] wall_time reusable_until() const noexcept {
        return reusable_ != 0 ? http::fresh_until(freshness()) : wall_time::min();
    }

    /// Null for all but those that are held in parts.
    [[nodiscard]] const std::shared_ptr<const partial_body>& parts() const noexcept {
        return away().parts;
    }
    /// Null for all but those whose body is on disk.
    [[nodiscard]] const std::shared_ptr<const disk_body>& on_disk() const noexcept {
        return away().on_disk;
    }
    /// The whole body is in memory.
    [[nodiscard]] bool has_content() const noexcept { return has_content_ != 0; }
    /// It, shared, or a copy of a small one; null if !has_content(). For those who go on to keep
    /// it: whoever only reads takes each_piece.
    [[nodiscard]] body_ptr content() const;
    /// Calls take(view) for each run of those bytes of the body, in order; the views live as long
    /// as this. O(pieces before the range and in it). @pre has_content()
    template <class Take>
    void each_piece(http::byte_range wanted, const Take& take) const {
        if (!is_away_) {
            const auto end = std::min<std::uint64_t>(wanted.last + 1, body_);
            if (wanted.first < end) {
                take(std::string_view{at(body_at()), body_}.substr(wanted.first,
                                                                   end - wanted.first));
            }
            return;
        }
        each_slice({0, away().content},
                   wanted,
                   [&](const slice& piece, std::size_t skip, std::size_t size) {
                       take(piece.view().substr(skip, size));
                   });
    }
    /// The same for the whole body.
    template <class Take>
    void each_piece(const Take& take) const {
        if (is_away_) {
            for (const auto& piece : away().content->slices) {
                take(piece.view());
            }
        } else if (body_ != 0) {
            take(std::string_view{at(body_at()), body_});
        }
    }

    /// Bytes of the whole body, wherever it is. @pre !parts()
    [[nodiscard]] std::uint64_t size() const noexcept {
        if (!is_away_) {
            return body_;
        }
        const auto& where = away();
        return where.content ? where.content->size : where.on_disk ? where.on_disk->size() : 0;
    }

    /// Field lines of the head, parsed anew: for conditional answers and freshening, not for plain
    /// hits.
    [[nodiscard]] std::vector<http::field> fields() const;

    /// Those that say which representation it is of: without Date, by which a Last-Modified would be strong,
    /// where it is weak.
    [[nodiscard]] std::vector<http::field> validating_fields() const;

    /// All of it as a draft, without the body's bytes; whoever wants them sets `content`. What is
    /// elsewhere (parts, on disk) is shared.
    [[nodiscard]] response_draft draft_without_content() const;
    /// The same with its body, which is shared, or copied if it is small.
    [[nodiscard]] response_draft draft() const;

    /// Memory this response is charged for, in bytes: its allocation, and what is elsewhere.
    [[nodiscard]] std::size_t footprint() const noexcept;

    mutable record_id disk_record;
    mutable last_told told_at;  ///< a hit tells the filter at most once in each generation

private:
    // Where the bytes are that do not lie here.
    struct elsewhere {
        body_ptr content;
        std::shared_ptr<const partial_body> parts;
        std::shared_ptr<const disk_body> on_disk;
    };

    // Sizes of what few have: what a variant is chosen by, in bytes, and how many tags.
    struct choice {
        std::uint32_t selecting = 0;
        std::uint16_t names = 0;
        std::uint16_t tags = 0;
    };

    explicit stored_response(const response_draft& draft) noexcept;
    ~stored_response() = default;

    friend void intrusive_ptr_add_ref(const stored_response* one) noexcept {
        one->references_.fetch_add(1, std::memory_order_relaxed);
    }
    friend void intrusive_ptr_release(const stored_response* one) noexcept;

    // Offsets from the beginning of the object.
    [[nodiscard]] std::size_t choice_at() const noexcept {
        return sizeof *this + (is_away_ ? sizeof(elsewhere) : 0);
    }
    [[nodiscard]] std::size_t tags_at() const noexcept {
        return choice_at() + (has_choice_ ? sizeof(choice) : 0);
    }
    [[nodiscard]] std::size_t times_at() const noexcept {
        return tags_at() + chosen().tags * sizeof(std::uint64_t);
    }
    [[nodiscard]] std::size_t names_at() const noexcept;
    [[nodiscard]] std::size_t head_at() const noexcept {
        const auto sizes = chosen();
        return names_at() + sizes.names + sizes.selecting;
    }
    [[nodiscard]] std::size_t body_at() const noexcept { return head_at() + head_; }
    [[nodiscard]] const char* at(std::size_t offset) const noexcept {
        return reinterpret_cast<const char*>(this) + offset;
    }
    [[nodiscard]] char* at(std::size_t offset) noexcept {
        return reinterpret_cast<char*>(this) + offset;
    }
    [[nodiscard]] const elsewhere& away() const noexcept;
    [[nodiscard]] choice chosen() const noexcept {
        choice read;
        if (has_choice_) {
            std::memcpy(&read, at(choice_at()), sizeof read);
        }
        return read;
    }

    std::uint32_t head_ : 21;          // bytes
    std::uint32_t source_ : 3;         // of the lifetime
    std::uint32_t lasts_max_age_ : 1;  // the lifetime is max-age's, which has no place of its own
    std::uint32_t wait_ : packed_wait::bits;
    mutable std::atomic<std::uint32_t> references_{0};
    std::uint32_t asked_before_ : 22;  // milliseconds before it came
    std::uint32_t asked_turn_ : 10;
    std::int64_t came_ : 49;   // milliseconds since 1970
    std::uint64_t body_ : 13;  // bytes of one that lies here
    std::uint64_t has_content_ : 1;
    std::uint64_t is_away_ : 1;
    std::uint64_t lifetime_ : 38;    // seconds
    std::uint64_t directives_ : 12;  // the flags, a bit each
    std::uint64_t times_ : 4;        // which of the times there are
    std::uint64_t status_ : 10;
    std::uint64_t initial_age_ : 37;  // seconds: 4,355 years
    std::uint64_t weak_last_modified_ : 1;
    std::uint64_t length_at_ : 22;
    std::uint64_t purged_softly_ : 1;
    std::uint64_t reusable_ : 1;
    std::uint64_t vary_any_ : 1;
    std::uint64_t has_choice_ : 1;
};

/// The same response with its lifetime over at `when` if it was not before (a soft purge). The body
/// is shared, or copied if it is small.
[[nodiscard]] stored_ptr ended_at(const stored_response& response, wall_time when);

}  // namespace reprise::proxy::cache
