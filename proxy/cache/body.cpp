#include "proxy/cache/body.hpp"

#include <new>

namespace reprise::proxy::cache {

block_ptr block::make(std::size_t capacity) {
    void* memory = ::operator new(sizeof(block) + capacity);
    return block_ptr{new (memory) block{capacity}};
}

void intrusive_ptr_release(block* b) noexcept {
    if (b->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        b->~block();
        ::operator delete(b);
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
