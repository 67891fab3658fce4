#pragma once
// Room in the store for a body that is still on its way.

#include <cstdint>
#include <utility>

namespace reprise::proxy::cache {

class memory_tier;

/// Bytes promised to a fetch that is being stored, counted in the budget while the body arrives;
/// given back when destroyed.
///
/// A promise made for bytes that never come would keep others out, so it grows with the bytes,
/// slightly ahead. All promises together take at most a quarter of the store, and each at most
/// `share` times what they leave of that: however many stall, something is left for the next, and
/// what is small finds room in it (as switches share their buffers among queues: Choudhury and
/// Hahne 1998).
class reservation {
public:
    reservation() = default;
    reservation(reservation&& other) noexcept
        : store_{std::exchange(other.store_, nullptr)},
          bytes_{std::exchange(other.bytes_, 0)} {}
    reservation& operator=(reservation&& other) noexcept;
    reservation(const reservation&) = delete;
    reservation& operator=(const reservation&) = delete;
    ~reservation() { reset(); }

    static constexpr std::uint64_t share = 4;

    /// What all promises of a store of `capacity` may be together, and one that has no other beside
    /// it: a longer body never comes into memory.
    [[nodiscard]] static constexpr std::uint64_t most_of(std::uint64_t capacity) noexcept {
        return capacity / 4;
    }
    [[nodiscard]] static constexpr std::uint64_t largest_of(std::uint64_t capacity) noexcept {
        return most_of(capacity) / (share + 1) * share;
    }

    /// Raises the promise to `bytes` in all. False, and nothing changes, when the store has no room
    /// for it.
    [[nodiscard]] bool grow_to(std::uint64_t bytes);
    /// What grow_to would answer now.
    [[nodiscard]] bool could_grow_to(std::uint64_t bytes) const noexcept;
    void reset() noexcept;

private:
    friend class memory_tier;
    explicit reservation(memory_tier* store) noexcept : store_{store} {}
    memory_tier* store_ = nullptr;
    std::uint64_t bytes_ = 0;
};

}  // namespace reprise::proxy::cache
