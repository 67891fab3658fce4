#pragma once
// What a cache holds, as it changes and as it is told: counters or stamps, the bits beside them, and
// the digests that were published of those. Places and bits lie in a region, which other processes
// may be at too; each has a source of its own over it, and makes and keeps the digests that it serves.

#include "filter/bit_changes.hpp"
#include "filter/c/source_region.hpp"
#include "filter/counting.hpp"
#include "filter/digest.hpp"
#include "filter/seed_id.hpp"
#include "filter/stamped.hpp"
#include "filter/stamped_state.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace reprise::filter::c {

/// Bytes that several are sent.
using wire_ptr = std::shared_ptr<const std::vector<std::byte>>;

/// Threads   any number, of any number of processes. Two locks: the region's, a short one around what changes, and one of
///           this process around what is published.
class source {
public:
    struct reading {
        bloom_size size;
        std::uint64_t on, changed, memory;
        double rate;
        digest_generation published;
        std::uint64_t room, written, generations_begun;
    };
    enum class tidings { none, told, ask_whole };

    /// Makes an empty source of a region that is zeroes, but for what it is opened with and its lock; or, of a ring, one
    /// of `before`. @pre room > 0 of a ring; `before` is of the same size and as many generations
    static void begin(source_region& region,
                      std::uint64_t room,
                      std::optional<stamped_state> before);

    /// Over a region that outlives this, and was begun.
    explicit source(source_region& region);

    void came(key_hash key, std::uint64_t bytes) noexcept;
    /// False when it surely never came, or this is no counting source.
    [[nodiscard]] bool left(key_hash key) noexcept;
    /// False when this is no ring. A smaller room ends the current generation with what comes next, and none before it sooner
    /// than the new room does. @pre room > 0
    [[nodiscard]] bool set_room(std::uint64_t room) noexcept;
    void clear() noexcept;

    /// False when nothing changed. @throws std::bad_alloc
    bool publish();
    /// What makes `held` the newest digest; none when it is that. @throws std::bad_alloc
    [[nodiscard]] wire_ptr serve(digest_generation held);
    /// What makes `held` what is held now, in `out`. @pre the region remembers news @throws std::bad_alloc
    [[nodiscard]] tidings news(digest_generation held, std::vector<std::byte>& out);

    [[nodiscard]] reading read();
    /// A copy of what a ring's source knows; none of a counting one's. @throws std::bad_alloc
    [[nodiscard]] std::optional<stamped_state> state();

private:
    using places_variant = std::variant<counting_bloom, stamped_bloom>;

    /// A digest, and what was made of it for others, each once.
    struct publication {
        std::shared_ptr<const digest> made;
        wire_ptr whole;
        std::vector<std::pair<std::uint64_t, wire_ptr>> deltas;  // by the base's counter
    };
    /// From one generation to another, as far as what turned is remembered.
    struct turns {
        tidings found = tidings::none;
        source_region::step from{}, to{};
        std::uint64_t keys = 0;
        std::vector<std::uint64_t> places{};
    };

    /// The region's lock, and its tallies while it is held.
    class held_region {
    public:
        explicit held_region(source& of) noexcept;
        held_region(const held_region&) = delete;
        held_region& operator=(const held_region&) = delete;
        ~held_region() { of_.keep(); }

    private:
        region_lock lock_;
        source& of_;
    };

    static places_variant places_in(source_region& region) noexcept;

    // With the region's lock held.
    void resume() noexcept;
    void keep() noexcept;
    void mend() noexcept;
    void turn(std::uint64_t place) noexcept;
    void write(stamped_bloom& into, key_hash key, std::uint64_t bytes) noexcept;
    void begin_generation() noexcept;
    void publish_bits() noexcept;
    [[nodiscard]] std::uint64_t keys_now() const noexcept;
    [[nodiscard]] std::uint64_t each_generation() const noexcept;
    [[nodiscard]] bool is_told(const source_region::step& one) const noexcept;
    [[nodiscard]] bool is_as_told() const noexcept;
    /// False where `places` has too little room.
    [[nodiscard]] bool look_back(digest_generation held, turns& out);

    // With publishing_ held.
    void make_newest();

    source_region& region_;
    source_region::tallies& told_;
    seed_id seed_;
    places_variant places_;
    bit_changes bits_;
    std::span<std::uint64_t> turned_;  // both rings; empty where no news are told
    std::span<source_region::step> steps_;

    std::mutex publishing_;  // taken before the region's; guards these
    std::deque<publication> published_;
};

}  // namespace reprise::filter::c
