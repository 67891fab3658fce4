#pragma once
// What a digest's owner remembers of each key: 20 bytes, so that a key can be taken out of the
// filter when its object leaves or goes stale, though nobody has its URL any more.
//
// A slot has 40 bits of the store's hash of the key, which tier holds it, or that one soon will,
// when it stops being worth listing, whether it is in the filter, and the URL's name (secret.hpp). Which of 256 shards it is
// in tells 8 more bits of the hash. Those 48 are among the 56 that the disk's index knows of a key,
// so a record that is reclaimed unread can be named. A shard is a table in the order of the hash
// with linear probing that grows by a quarter when it is 7/8 full: no pause is longer than one
// shard's move.
//
// Two keys whose 48 bits are equal are one slot: with n keys about n^2 / 2^49 pairs (0.002 at a
// million, 18 at a hundred million). The later one takes the slot; the digest then misses the
// other, which costs a hit at a sibling.
//
// Time has 21 bits: 8 seconds each, rounded down, modulo 194 days. What lies more than 90 days
// ahead counts as 90, and is looked at by the sweep long before it could be mistaken for another.
//
// Memory    16 bytes per slot, 18 to 23 per key, 21 in the mean. With Squid's keys 16 more per
//           slot.
// Threads   one.

#include "filter/key_hash.hpp"
#include "filter/squid_key.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/cache/contents_listener.hpp"
#include "proxy/peer/secret.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace reprise::proxy::peer {

using cache::holder;

/// A key's slot, unpacked.
struct key_facts {
    url_name name = 0;
    std::uint8_t holders = 0;  ///< bits of `holder`
    bool listed = false;       ///< its bits are in the filter
    /// Until when the copies of memory, and of the disk, are worth listing, in units since the
    /// epoch, modulo; 0: they are not, or there are none.
    std::array<std::uint32_t, 2> until{};
    filter::squid_key squid{};  ///< only in a table that keeps them
};

class key_table {
public:
    static constexpr std::size_t shards = 256;
    static constexpr std::chrono::seconds unit{8};
    static constexpr std::chrono::hours most_ahead{90 * 24};

    explicit key_table(bool with_squid);

    /// The shard of a key, of which only what the disk's index knows may be there.
    [[nodiscard]] static std::size_t shard_of(const filter::key_hash& key) noexcept {
        return key.low & (shards - 1);
    }

    /// Null: not there. Valid until the next put or erase.
    [[nodiscard]] bool find(const filter::key_hash& key, key_facts& out) const noexcept;
    /// Begins to fetch what find() will look at, and waits for nothing.
    void prefetch(const filter::key_hash& key) const noexcept;
    /// In place of what is there, and that never throws.
    /// @throws std::bad_alloc, and nothing has changed
    void put(const filter::key_hash& key, const key_facts& facts);
    void erase(const filter::key_hash& key) noexcept;

    /// Calls `see(key_facts&)` for each slot of a shard; it may change all but the name, and gives
    /// false to have the slot erased. One at the table's end may be seen twice. O(slots).
    template <class See>
    void visit(std::size_t shard, See&& see);

    [[nodiscard]] std::uint64_t keys() const noexcept { return keys_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept;

    /// `when` in units, never 0; clamped to `now` + most_ahead; 0 when it is not after `now`.
    [[nodiscard]] static std::uint32_t pack_time(wall_time when, wall_time now) noexcept;
    /// Whether a packed time is still ahead. @pre packed within the last 90 days
    [[nodiscard]] static bool is_ahead(std::uint32_t packed, wall_time now) noexcept;

private:
    // tag 40 | memory's until 21 | holders 3; all zero: free (a held key has a holder).
    struct slot {
        std::uint64_t word = 0;
        url_name name = 0;
    };
    struct shard {
        std::vector<slot> slots;
        std::vector<std::uint32_t> disk_until;  // the highest bit: listed
        std::vector<filter::squid_key> squid;
        std::size_t used = 0;
    };

    [[nodiscard]] static std::uint64_t tag_of(const filter::key_hash& key) noexcept;
    [[nodiscard]] static std::uint64_t pack(std::uint64_t tag, const key_facts& facts) noexcept;
    [[nodiscard]] static std::uint32_t pack_disk(const key_facts& facts) noexcept;
    [[nodiscard]] key_facts unpack(const shard& in, std::size_t at) const noexcept;
    [[nodiscard]] static std::size_t home(std::uint64_t tag, std::size_t slots) noexcept;
    [[nodiscard]] std::size_t place_of(const shard& in, std::uint64_t tag) const noexcept;
    void insert(shard& into, const shard& from, std::size_t at) const noexcept;
    void grow(shard& which);
    void erase_at(shard& from, std::size_t at) noexcept;

    bool with_squid_;
    std::uint64_t keys_ = 0;
    std::array<shard, shards> shards_;
};

template <class See>
void key_table::visit(std::size_t shard_number, See&& see) {
    auto& in = shards_[shard_number];
    // Erasing moves slots back over the erased one, from behind: so the place is looked at again.
    // What wraps round from the front's end to the table's end was seen in its old place, so a
    // slot at the table's end may be seen twice; see() must bear that of slots it has changed.
    for (std::size_t at = 0; at < in.slots.size();) {
        if (in.slots[at].word == 0) {
            ++at;
            continue;
        }
        auto facts = unpack(in, at);
        if (see(facts)) {
            in.slots[at].word = pack(in.slots[at].word >> 24, facts);
            in.disk_until[at] = pack_disk(facts);
            ++at;
        } else {
            erase_at(in, at);
        }
    }
}

}  // namespace reprise::proxy::peer
