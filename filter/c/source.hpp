#pragma once
// What a cache holds, as it changes and as it is told: counters or stamps, the bits beside them, and
// the digests that were published of those.

#include "filter/bit_changes.hpp"
#include "filter/counting.hpp"
#include "filter/digest.hpp"
#include "filter/stamped.hpp"
#include "filter/stamped_state.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace reprise::filter::c {

/// Bytes that several are sent.
using wire_ptr = std::shared_ptr<const std::vector<std::byte>>;

/// Threads   any number. Two locks: a short one around what changes, and one around what is published.
class source {
public:
    struct ring {
        unsigned generations;
        std::uint64_t room;
    };
    struct reading {
        bloom_size size;
        std::uint64_t on, changed, memory;
        double rate;
        digest_generation published;
        std::uint64_t room, written, generations_begun;
    };

    /// What the places and bits of a source of this size take of `memory`, each from a line on.
    [[nodiscard]] static std::uint64_t memory_for(bloom_size size) noexcept;

    /// Counts, or where there is a ring stamps, from `before` on. Places and bits are in `memory`, which
    /// outlives this. @pre that is of the same size and as many generations @throws std::bad_alloc
    source(bloom_size size,
           std::optional<ring> stamped,
           const seed_id& seed,
           std::uint64_t epoch,
           std::size_t history,
           std::optional<stamped_state> before = {},
           std::pmr::memory_resource* memory = std::pmr::get_default_resource());

    void came(key_hash key, std::uint64_t bytes) noexcept;
    /// False when it surely never came, or this is no counting source.
    [[nodiscard]] bool left(key_hash key) noexcept;
    /// False when this is no ring. @pre room > 0
    [[nodiscard]] bool set_room(std::uint64_t room) noexcept;
    void clear() noexcept;

    /// False when nothing changed. @throws std::bad_alloc
    bool publish();
    /// What makes `held` the newest digest; none when it is that. @throws std::bad_alloc
    [[nodiscard]] wire_ptr serve(digest_generation held);

    [[nodiscard]] reading read() const;
    /// A copy of what a ring's source knows; none of a counting one's. @throws std::bad_alloc
    [[nodiscard]] std::optional<stamped_state> state() const;

private:
    /// A digest, and what was made of it for others, each once.
    struct publication {
        std::shared_ptr<const digest> made;
        wire_ptr whole;
        std::vector<std::pair<std::uint64_t, wire_ptr>> deltas;  // by the base's counter
    };

    void write(stamped_bloom& into, key_hash key, std::uint64_t bytes) noexcept;
    void publish_locked();
    [[nodiscard]] std::uint64_t each_generation() const noexcept;

    mutable std::mutex changing_;  // guards these
    std::variant<counting_bloom, stamped_bloom> places_;
    bit_changes bits_;
    std::uint64_t keys_ = 0;  // of a counting source; a ring's are estimated
    std::uint64_t room_ = 0;
    std::uint64_t room_found_ = 0;  // by set_room
    std::uint64_t written_ = 0;
    std::uint64_t begun_ = 0;
    digest_generation newest_;  // of those published

    std::mutex publishing_;  // taken before the other one; guards these
    std::deque<publication> published_;
    digest_stamp stamp_;
    std::size_t history_;
    bool is_owed_ = false;
};

}  // namespace reprise::filter::c
