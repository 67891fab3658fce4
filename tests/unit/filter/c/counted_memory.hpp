#pragma once
// What a server's allocator would be told by a C face.

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace reprise::filter::c::test {

struct counted_memory {
    std::vector<std::size_t> taken, given;
    void* last = nullptr;
    std::size_t off_by = 0;
    bool is_out = false;

    static void* take(void* context, std::size_t bytes, std::size_t alignment) {
        auto& self = *static_cast<counted_memory*>(context);
        self.taken.push_back(bytes);
        if (self.is_out) {
            return nullptr;
        }
        self.last = std::aligned_alloc(alignment, (bytes / alignment + 2) * alignment);
        std::memset(self.last, 0xa5, bytes);
        return static_cast<char*>(self.last) + self.off_by;
    }
    static void give(void* context, void* memory, std::size_t bytes) {
        auto& self = *static_cast<counted_memory*>(context);
        self.given.push_back(bytes);
        std::free(static_cast<char*>(memory) - self.off_by);
    }
    template <class Options>
    void lend_to(Options& options) {
        options.memory_take = take;
        options.memory_give = give;
        options.memory_context = this;
    }
};

}  // namespace reprise::filter::c::test
