#pragma once
// Where everything on disk is: 16 bytes per record, in memory.
//
// A slot has 48 bits of the key's hash; which of the 256 shards it is in says 8 more. A shard is a
// table with linear probing, each cluster in the order of the places where its records would like
// to be (Celis, "Robin Hood hashing", 1986): look-ups stay short at a high load, those that find
// nothing too, and growing needs no keys. A shard grows by a fifth when it is nine tenths full. The
// shards' sizes are staggered, so that they don't all grow at once, and memory is at any moment
// what it is in the middle of a shard's life.
//
// Two records whose keys share 56 bits displace each other: with n records that happens to about
// n^2 / 2^57 pairs (7e-6 of them at a million, 0.07 at a hundred million), and costs a fetch. What
// is read is compared with full key and URL, so it never costs more.
//
// Memory    at most 24 bytes per record from 10,000 on, also after records have gone.
// Threads   any number; every call takes the lock of one shard for a fraction of a microsecond,
//           growing one for 5 nanoseconds per record in it (4 ms with 10^8 records in all).
// Cost      find: one lock, two or three cache lines. put and erase shift the slots behind, some
//           hundred bytes at the mean load.

#include "filter/key_hash.hpp"
#include "proxy/cache/disk/record.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace reprise::proxy::cache::disk {

/// Where a record is.
struct record_place {
    std::uint16_t segment = 0;  ///< the file's number
    std::uint64_t offset = 0;   ///< in the segment; a multiple of 16, below 256 MiB
    bool operator==(const record_place&) const = default;
};

struct index_entry {
    record_place place;
    std::uint64_t bytes = 0;  ///< of the record, exact: a multiple of 16, below 4 MiB
    record_kind kind = record_kind::object;
    std::uint8_t uses = 0;     ///< hits since it was put; sticks at 7
    std::uint16_t expiry = 0;  ///< coarse_time
    bool operator==(const index_entry&) const = default;
};

class record_index {
public:
    static constexpr unsigned shard_bits = 8;
    static constexpr std::size_t shards = std::size_t{1} << shard_bits;
    static constexpr unsigned tag_bits = 48;
    static constexpr unsigned most_uses = 7;

    /// @throws std::bad_alloc
    record_index();
    ~record_index();
    record_index(const record_index&) = delete;
    record_index& operator=(const record_index&) = delete;

    [[nodiscard]] std::optional<index_entry> find(const filter::key_hash& key) const noexcept;

    /// The newest wins: gives what stood there before. @throws std::bad_alloc, nothing changed
    std::optional<index_entry> put(const filter::key_hash& key, const index_entry& entry);

    /// For loading from the newest segment to the oldest, while traffic already puts. False: there
    /// is one. @throws std::bad_alloc, nothing changed
    bool put_if_absent(const filter::key_hash& key, const index_entry& entry);

    /// Puts `entry` only where `expected` still is the place: moving a record, beside traffic.
    bool replace(const filter::key_hash& key,
                 const record_place& expected,
                 const index_entry& entry) noexcept;

    /// Takes out whatever is there, and returns it.
    std::optional<index_entry> erase(const filter::key_hash& key) noexcept;
    /// Takes it out only if it is this very record.
    bool erase(const filter::key_hash& key, const record_place& place) noexcept;

    /// One more use; gives how many there were before, 0 if it is not there.
    unsigned count_use(const filter::key_hash& key, const record_place& place) noexcept;
    /// A new coarse time, for a record that was refreshed or ended.
    bool set_expiry(const filter::key_hash& key,
                    const record_place& place,
                    std::uint16_t expiry) noexcept;

    /// Every record of one shard, under its lock: `see` must be short and must not call the index.
    /// A walk over all is `shards` such calls, with traffic between them; a record that neither
    /// came nor went meanwhile is seen once. `low` has the shard's bits of key.low, and `high` the
    /// 48 highest bits of key.high: what the index knows of a key.
    void for_each(std::size_t shard,
                  const std::function<void(const filter::key_hash& partial,
                                           const index_entry& entry)>& see) const;
    /// What for_each gives as the key of a record.
    [[nodiscard]] static filter::key_hash partial(const filter::key_hash& key) noexcept;

    [[nodiscard]] std::uint64_t records() const noexcept;
    /// Memory, all of it, allocator's part included. Takes every lock in turn.
    [[nodiscard]] std::uint64_t bytes() const noexcept;

private:
    struct shard;
    [[nodiscard]] shard& shard_of(const filter::key_hash& key) const noexcept;
    std::unique_ptr<shard[]> shards_;
};

}  // namespace reprise::proxy::cache::disk
