#include "proxy/cache/body.hpp"

#include "proxy/base/recycled.hpp"

#include <array>
#include <new>

namespace reprise::proxy::cache {

namespace {

// A thread keeps so many bytes of each size: with 2 KiB a body, for 32 answers at once.
constexpr std::size_t most_spare_bytes = 64u << 10;

}  // namespace

block_ptr block::make(std::size_t capacity) {
    void* memory = ::operator new(sizeof(block) + capacity);
    return block_ptr{new (memory) block{capacity, false}};
}

block_ptr block::make_passing(std::size_t capacity) {
    const auto size = passing_size(capacity);
    void* const spare = spare_of(size).take();
    void* const memory = spare != nullptr ? spare : ::operator new(size);
    return block_ptr{new (memory) block{capacity, true}};
}

spare_blocks& block::spare_of(std::size_t size) noexcept {
    static thread_local std::array<spare_blocks, passing_size(most_passing) / passing_step> all;
    return all[size / passing_step - 1];
}

void intrusive_ptr_release(block* b) noexcept {
    if (b->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        const auto size = b->passes_ ? block::passing_size(b->capacity_) : 0;
        b->~block();
        if (size == 0 || !block::spare_of(size).keep(b, most_spare_bytes / size)) {
            ::operator delete(b);
        }
    }
}

std::size_t body::footprint() const noexcept {
    std::size_t bytes = heap_cost(sizeof(body) + control_block);
    if (slices.capacity() != 0) {
        bytes += heap_cost(slices.capacity() * sizeof(slice));
    }
    const block* last = nullptr;
    for (const auto& part : slices) {
        if (part.memory.get() != last) {
            last = part.memory.get();
            bytes += last->footprint();
        }
    }
    return bytes;
}

}  // namespace reprise::proxy::cache
