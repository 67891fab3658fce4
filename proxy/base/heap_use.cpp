#include "proxy/base/heap_use.hpp"

#include "proxy/base/relaxed.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <malloc.h>

// Here operator new is at work: nothing in this file may allocate by it.

namespace reprise::proxy::heap {

namespace {

// A thread has a place for as long as the process lives, for there are few; those that come when all
// are taken share the last.
struct alignas(64) place {
    std::atomic<std::int64_t> bytes{0};
};
constinit std::array<place, 64> places{};
constinit std::atomic<std::size_t> taken{0};
constinit thread_local place* mine = nullptr;

constexpr std::int64_t before_each = sizeof(std::size_t);

std::int64_t size_of(void* block) noexcept {
    return static_cast<std::int64_t>(::malloc_usable_size(block)) + before_each;
}

place& find_place() noexcept {
    const auto next = taken.fetch_add(1, relaxed);
    mine = &places[next < places.size() ? next : places.size() - 1];
    return *mine;
}

void add(std::int64_t bytes) noexcept {
    auto& to = mine != nullptr ? *mine : find_place();
    if (&to == &places.back()) {
        to.bytes.fetch_add(bytes, relaxed);
    } else {
        to.bytes.store(to.bytes.load(relaxed) + bytes, relaxed);
    }
}

}  // namespace

void* take(std::size_t bytes) noexcept {
    void* const block = std::malloc(bytes);  // NOLINT: what this is
    if (block != nullptr) {
        add(size_of(block));
    }
    return block;
}

void* resize(void* block, std::size_t bytes) noexcept {
    const auto before = block != nullptr ? size_of(block) : 0;
    void* const moved = std::realloc(block, bytes);  // NOLINT
    if (moved != nullptr) {
        add(size_of(moved) - before);
    } else if (bytes == 0) {
        add(-before);
    }
    return moved;
}

void give(void* block) noexcept {
    if (block != nullptr) {
        add(-size_of(block));
        std::free(block);  // NOLINT
    }
}

std::uint64_t in_use() noexcept {
    std::int64_t sum =
        0;  // of one place it may be negative: what is given elsewhere than it was taken
    for (const auto& one : places) {
        sum += one.bytes.load(relaxed);
    }
    return sum > 0 ? static_cast<std::uint64_t>(sum) : 0;
}

}  // namespace reprise::proxy::heap
