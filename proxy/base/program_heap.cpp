// The program's operator new, which counts (heap_use.hpp). It is the program's alone: tests have
// their own, or none, and sanitizers theirs. The other forms of new and delete are the library's,
// and call these.

#include "proxy/base/heap_use.hpp"

#include <new>

namespace reprise::proxy {
namespace {

void* take_or_throw(std::size_t bytes) {
    for (;;) {
        if (void* const block = heap::take(bytes)) {
            return block;
        }
        const auto make_room = std::get_new_handler();
        if (make_room == nullptr) {
            throw std::bad_alloc{};
        }
        make_room();
    }
}

}  // namespace
}  // namespace reprise::proxy

void* operator new(std::size_t bytes) {
    return reprise::proxy::take_or_throw(bytes);
}

void operator delete(void* block) noexcept {
    reprise::proxy::heap::give(block);
}

void operator delete(void* block, std::size_t /*bytes*/) noexcept {
    reprise::proxy::heap::give(block);
}
