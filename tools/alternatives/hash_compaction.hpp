#pragma once
// Hash compaction: a hash table that holds a few bits of each key instead of the key.
//
// From state space search (Wolper, Leroy: "Reliable Hashing without Collision Detection", CAV 1993),
// with a place of its own for each key, as Stern and Dill improved it ("Improved Probabilistic
// Verification by Hash Compaction", CHARME 1995): where a key is looked for, and what is looked for
// there, are independent, so that a stranger must meet its own bits among the few that it is
// compared with. Places by enhanced double hashing. Nothing can be taken out: an emptied slot would
// end the search for others.

#include "filter/key_hash.hpp"
#include "tools/alternatives/cells.hpp"

#include <cstdint>

namespace reprise::alternatives {

struct compaction_size {
    std::uint64_t slots = 0;
    unsigned bits = 0;  ///< of a compacted key, 2 to 32
};

/// The load from a half up that takes the fewest bits for `keys` at `rate`.
/// @pre keys > 0, 0 < rate < 1
[[nodiscard]] compaction_size compaction_size_for(std::uint64_t keys, double rate) noexcept;

/// A stranger is compared with each slot until it meets an empty one. With a load of a and
/// q = 1 / (2^bits - 1) that is taken for known with a chance of a q / (1 - a (1 - q)).
/// @pre keys < size.slots
[[nodiscard]] double compaction_rate(const compaction_size& size, std::uint64_t keys) noexcept;

/// Memory    slots * bits / 8 bytes.
/// Threads   one; const members at once by any number.
/// Cost      1 / (1 - load) reads for a stranger.
/// Errs      towards yes, at compaction_rate; never no for a key that it took.
class hash_compaction {
public:
    static constexpr unsigned most_probes = 1024;

    /// @pre size.slots > 0, 2 <= size.bits <= 32 @throws std::bad_alloc
    explicit hash_compaction(const compaction_size& size);

    /// False when none of the key's first most_probes slots is free: the table is full.
    [[nodiscard]] bool insert(filter::key_hash key) noexcept;
    [[nodiscard]] bool may_contain(filter::key_hash key) const noexcept;
    void clear() noexcept;

    /// Slots taken.
    [[nodiscard]] std::uint64_t keys() const noexcept { return keys_; }
    [[nodiscard]] double rate() const noexcept;
    [[nodiscard]] std::uint64_t bytes() const noexcept { return slots_.bytes(); }
    /// What a copy for another machine would take, but for a header: the table as it lies.
    [[nodiscard]] std::uint64_t wire_bits() const noexcept {
        return slots_.count() * slots_.bits();
    }
    bool operator==(const hash_compaction&) const = default;

private:
    [[nodiscard]] std::uint32_t compacted(filter::key_hash key) const noexcept;

    std::uint64_t keys_ = 0;
    cells slots_;  // 0 is empty
};

}  // namespace reprise::alternatives
