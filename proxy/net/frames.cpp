#include "proxy/net/frames.hpp"

#include "proxy/base/recycled.hpp"

#include <array>
#include <new>

namespace reprise::proxy::net {

namespace {

constexpr std::size_t step = 64;
constexpr std::size_t sizes = 16;  // up to 1 KiB: the largest of a request is 560 bytes
// A thread keeps so many bytes of each size: 2 MiB if it had as many of all. Half of a request's
// frames are of one size; this is enough for 50 requests that are under way at once.
constexpr std::size_t most_bytes = 128u << 10;

constexpr std::size_t rounded(std::size_t size) noexcept {
    return (size + step - 1) / step * step;
}

spare_blocks& blocks_of(std::size_t size) noexcept {
    static thread_local std::array<spare_blocks, sizes> all;
    return all[(size - 1) / step];
}

}  // namespace

void* take_frame(std::size_t size) {
    if (size > sizes * step) {
        return ::operator new(size);
    }
    if (void* const spare = blocks_of(size).take()) {
        return spare;
    }
    return ::operator new(rounded(size));
}

void give_frame_back(void* frame, std::size_t size) noexcept {
    if (size > sizes * step || !blocks_of(size).keep(frame, most_bytes / rounded(size))) {
        ::operator delete(frame);
    }
}

}  // namespace reprise::proxy::net
