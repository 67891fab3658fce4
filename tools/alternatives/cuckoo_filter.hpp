#pragma once
// A cuckoo filter (Fan, Andersen, Kaminsky, Mitzenmacher: "Cuckoo Filter: Practically Better Than
// Bloom", CoNEXT 2014): fingerprints in buckets of four, each in one of two buckets.
//
// Partial-key cuckoo hashing: a fingerprint's other bucket is its bucket XOR the fingerprint's
// hash, so that it can be moved without its key. That needs a power of two of buckets; memory comes
// in steps of two. Semi-sorting, which saves one bit a key (section 5.2), is left out.

#include "filter/key_hash.hpp"
#include "tools/alternatives/cells.hpp"

#include <cstdint>

namespace reprise::alternatives {

struct cuckoo_size {
    std::uint64_t buckets = 0;      ///< a power of two, at most 2^32
    unsigned fingerprint_bits = 0;  ///< 2 to 32
};

/// The fewest buckets that `keys` fill to at most 95 % (the paper's load for buckets of four), and
/// the fewest bits for `rate` at that many keys. @pre keys > 0, 0 < rate < 1
[[nodiscard]] cuckoo_size cuckoo_size_for(std::uint64_t keys, double rate) noexcept;

/// 1 - (1 - load / (2^f - 1))^8: a query compares eight slots, each filled with probability `load`;
/// of 2^f fingerprints zero stands for an empty slot. The paper's bound is this at load 1.
[[nodiscard]] double cuckoo_rate(cuckoo_size size, double keys) noexcept;

/// Memory    buckets * 4 * fingerprint_bits / 8 bytes.
/// Threads   one; const members at once by any number.
/// Errs      towards yes, at cuckoo_rate; never no for a key inserted and not erased, as long as
///           nothing is erased that was not inserted.
class cuckoo_filter {
public:
    static constexpr unsigned slots = 4;  ///< of a bucket

    /// @pre as cuckoo_size says @throws std::bad_alloc
    explicit cuckoo_filter(cuckoo_size size);

    /// False when full: no place within 500 moves, and nothing has changed. Equal keys are kept as
    /// often as they are inserted, eight times at most.
    [[nodiscard]] bool insert(filter::key_hash key) noexcept;

    /// Removes one copy. False, and nothing has changed, when the key is certainly not in. A key
    /// that was never inserted may take another's fingerprint away, at the filter's rate, and make
    /// that one a false negative: erase only what was inserted.
    bool erase(filter::key_hash key) noexcept;

    [[nodiscard]] bool may_contain(filter::key_hash key) const noexcept;
    void clear() noexcept;

    /// Fingerprints held: keys with their repetitions.
    [[nodiscard]] std::uint64_t keys() const noexcept { return keys_; }
    [[nodiscard]] cuckoo_size size() const noexcept { return {buckets_, slots_.bits()}; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return slots_.bytes(); }

    /// Equal slot for slot.
    bool operator==(const cuckoo_filter& other) const noexcept { return slots_ == other.slots_; }

private:
    struct place {
        std::uint64_t bucket;
        std::uint32_t fingerprint;
    };
    [[nodiscard]] place place_of(filter::key_hash key) const noexcept;
    [[nodiscard]] std::uint64_t other(place at) const noexcept;
    [[nodiscard]] bool replace_in(std::uint64_t bucket,
                                  std::uint32_t from,
                                  std::uint32_t to) noexcept;
    [[nodiscard]] bool holds(place at) const noexcept;

    std::uint64_t buckets_;
    cells slots_;
    std::uint64_t keys_ = 0;
};

}  // namespace reprise::alternatives
