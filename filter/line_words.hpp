#pragma once
// Words of which a block fills a cache line, and begins with one.
//
// Where malloc puts a large array it begins 16 bytes behind a page: each of a blocked filter's blocks then
// lies in two lines, and a look-up waits for both.

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace reprise::filter {

inline constexpr std::size_t line_bytes = 64;

/// std::allocator's, on a line's boundary.
template <class Value>
struct line_allocator {
    using value_type = Value;

    line_allocator() = default;
    template <class Other>
    line_allocator(const line_allocator<Other>& /*of*/) noexcept {}  // NOLINT: as allocators do

    /// @throws std::bad_alloc
    [[nodiscard]] Value* allocate(std::size_t count) {
        if (count > SIZE_MAX / sizeof(Value)) {
            throw std::bad_array_new_length{};
        }
        return static_cast<Value*>(
            ::operator new (count * sizeof(Value), std::align_val_t{line_bytes}));
    }
    void deallocate(Value* memory, std::size_t /*count*/) noexcept {
        ::operator delete (memory, std::align_val_t{line_bytes});  // clang 14 has none with a size
    }
    template <class Other>
    bool operator==(const line_allocator<Other>& /*other*/) const noexcept {
        return true;
    }
};

using line_words = std::vector<std::uint64_t, line_allocator<std::uint64_t>>;

}  // namespace reprise::filter
