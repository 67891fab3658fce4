#pragma once
// A filter's memory: zeroed, aligned to cache lines, and in huge pages where the system has them.
//
// A query of a large filter touches one random line, so it pays for the line and, in pages of 4
// KiB, for a walk of the page table as well: the tables of a gigabyte are larger than a core's
// caches. Pages of 2 MiB make the walk short. This is the one thing that filters ask of the
// operating system; where it has no such advice nothing is lost but time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace reprise::filter {

/// Gives memory back to where big_array took it from.
struct big_array_free {
    void operator()(std::byte* memory) const noexcept;
};

/// `bytes` of zeroes on a cache line's boundary. From 4 MiB on the memory begins on a boundary of
/// 2 MiB and is advised to be of huge pages; it is touched here, so that no later insert waits for
/// the system to find a page.
/// @throws std::bad_alloc
[[nodiscard]] std::unique_ptr<std::byte, big_array_free> allocate_zeroes(std::size_t bytes);

/// A fixed number of plain values, all bits off at first. One owner; copying copies.
template <class Value>
class big_array {
    static_assert(std::is_trivially_copyable_v<Value> && std::is_trivially_destructible_v<Value> &&
                  alignof(Value) <= 64);

public:
    /// @throws std::bad_alloc
    explicit big_array(std::size_t size) : size_{size} {
        if (size > SIZE_MAX / 2 / sizeof(Value)) {
            throw std::bad_alloc{};
        }
        memory_ = allocate_zeroes(size * sizeof(Value));
    }

    big_array(const big_array& other) : big_array{other.size_} {
        std::memcpy(memory_.get(), other.memory_.get(), bytes());
    }
    big_array& operator=(const big_array& other) {
        auto copy = other;
        return *this = std::move(copy);
    }
    big_array(big_array&& other) noexcept
        : size_{std::exchange(other.size_, 0)},
          memory_{std::move(other.memory_)} {}
    big_array& operator=(big_array&& other) noexcept {
        size_ = std::exchange(other.size_, 0);
        memory_ = std::move(other.memory_);
        return *this;
    }
    ~big_array() = default;

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return size_ * sizeof(Value); }

    [[nodiscard]] Value* begin() noexcept { return reinterpret_cast<Value*>(memory_.get()); }
    [[nodiscard]] Value* end() noexcept { return begin() + size_; }
    [[nodiscard]] const Value* begin() const noexcept {
        return reinterpret_cast<const Value*>(memory_.get());
    }
    [[nodiscard]] const Value* end() const noexcept { return begin() + size_; }

    [[nodiscard]] Value& operator[](std::size_t i) noexcept { return begin()[i]; }
    [[nodiscard]] const Value& operator[](std::size_t i) const noexcept { return begin()[i]; }

    /// All bits off again.
    void clear() noexcept {
        if (size_ != 0) {
            std::memset(memory_.get(), 0, bytes());
        }
    }

    bool operator==(const big_array& other) const noexcept {
        return std::equal(begin(), end(), other.begin(), other.end());
    }

private:
    std::size_t size_;
    std::unique_ptr<std::byte, big_array_free> memory_;
};

}  // namespace reprise::filter
