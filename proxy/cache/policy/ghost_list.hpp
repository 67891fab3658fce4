#pragma once
// Keys of objects that are gone: which ones left lately, within a budget of the bytes they had.
// S3-FIFO takes back into its main queue at once what it evicted too early; ARC learns from ghosts
// which of its lists was too short.

#include "filter/key_hash.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace reprise::proxy::cache {

/// First in, first out. A ghost is known by its key hash's low word alone: with n ghosts, one in
/// 2^64 / n strangers is taken for one of them.
///
/// Threads  none: the owner locks.
/// Cost     every member O(1) amortised but reserve and set_budget.
/// Memory   32 to 48 bytes for each ghost it ever held at once; after set_budget at most four times
///          that of those it holds, and of 1,024.
class ghost_list {
public:
    /// Ghosts' bytes together are at most this from now on.
    void set_budget(std::uint64_t bytes) noexcept;

    /// Room for `ghosts` in all, so that the next add() need not find memory, until the next
    /// set_budget. @throws bad_alloc
    void reserve(std::size_t ghosts);

    /// The newest ghost, in place of an older one of this key; the oldest leave until the budget
    /// holds. One larger than the whole budget is not kept, nor one that finds no memory.
    void add(const filter::key_hash& key, std::uint64_t bytes) noexcept;

    /// Forgets the key; true if it was there.
    bool take(const filter::key_hash& key) noexcept;
    /// Forgets the oldest, if there is one.
    void drop_oldest() noexcept;

    [[nodiscard]] bool contains(const filter::key_hash& key) const noexcept;
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::uint64_t memory() const noexcept;

private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    struct ghost {
        std::uint64_t key = 0;
        std::uint64_t bytes = 0;
        std::uint32_t newer = none;
        std::uint32_t older = none;  // of one not in use: the next not in use
    };

    [[nodiscard]] std::size_t slot_of(std::uint64_t key) const noexcept;
    void free_slot(std::size_t slot) noexcept;
    void forget(std::size_t slot) noexcept;
    void rehash(std::size_t slots);
    void compact() noexcept;

    std::vector<ghost> ghosts_;
    // Where each key's ghost is: open addressing, linear probing, a power of two of slots at most
    // half full; removal shifts back, so there are no tombstones.
    std::vector<std::uint32_t> slots_;
    std::uint32_t unused_ = none;
    std::uint32_t newest_ = none;
    std::uint32_t oldest_ = none;
    std::size_t size_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t budget_ = 0;
};

}  // namespace reprise::proxy::cache
