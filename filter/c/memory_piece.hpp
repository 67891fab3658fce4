#pragma once
// Memory that the caller of a C face lends: one piece, taken and given back by its functions.

#include "filter/big_array.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

namespace reprise::filter::c {

/// One piece of memory, given back by whom it was taken from.
struct memory_piece {
    void* memory = nullptr;
    std::size_t bytes = 0;
    void (*give)(void*, void*, std::size_t) = nullptr;
    void* context = nullptr;

    memory_piece() = default;
    memory_piece(const memory_piece&) = delete;
    memory_piece& operator=(const memory_piece&) = delete;
    memory_piece(memory_piece&& other) noexcept { swap(other); }
    memory_piece& operator=(memory_piece&& other) noexcept {
        swap(other);
        return *this;
    }
    ~memory_piece() {
        if (memory != nullptr && give != nullptr) {
            give(context, memory, bytes);
        }
    }
    void swap(memory_piece& other) noexcept {
        std::swap(memory, other.memory);
        std::swap(bytes, other.bytes);
        std::swap(give, other.give);
        std::swap(context, other.context);
    }

    [[nodiscard]] bool is_on(std::size_t boundary) const noexcept {
        return reinterpret_cast<std::uintptr_t>(memory) % boundary == 0;
    }

    /// As the options say, which have functions: memory_take, memory_give, memory_context.
    /// @throws std::bad_alloc where there is none
    template <class Options>
    [[nodiscard]] static memory_piece lent(const Options& options,
                                           std::uint64_t bytes,
                                           std::size_t alignment) {
        if (bytes > PTRDIFF_MAX) {
            throw std::bad_alloc{};
        }
        memory_piece taken;
        taken.bytes = static_cast<std::size_t>(bytes);
        taken.memory = options.memory_take(options.memory_context, taken.bytes, alignment);
        if (taken.memory == nullptr) {
            throw std::bad_alloc{};
        }
        taken.give = options.memory_give;
        taken.context = options.memory_context;
        return taken;
    }

    /// Zeroes from the heap. @throws std::bad_alloc
    [[nodiscard]] static memory_piece from_heap(std::uint64_t bytes) {
        if (bytes > PTRDIFF_MAX) {
            throw std::bad_alloc{};
        }
        memory_piece taken;
        taken.bytes = static_cast<std::size_t>(bytes);
        taken.memory = allocate_zeroes(taken.bytes).release();
        taken.give = [](void*, void* memory, std::size_t) {
            big_array_free{}(static_cast<std::byte*>(memory));
        };
        return taken;
    }

    /// As the options say: lent, and zeroed, or from the heap. @throws std::bad_alloc
    template <class Options>
    [[nodiscard]] static memory_piece zeroed(const Options& options,
                                             std::uint64_t bytes,
                                             std::size_t alignment) {
        if (options.memory_take == nullptr) {
            return from_heap(bytes);
        }
        auto taken = lent(options, bytes, alignment);
        std::memset(taken.memory, 0, taken.bytes);
        return taken;
    }
};

}  // namespace reprise::filter::c
