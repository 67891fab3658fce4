#pragma once
// How much of the heap is in use, at any moment and without asking it.
//
// To know what could be given back to the system, one must know what is free. glibc tells that
// (mallinfo2) by a walk over all free chunks, under the lock that everybody who allocates needs: for
// 0.5 ms in a heap of 1 GiB with 3,000 of them, 87 ms in one of 3 GiB with 130,000. So what the
// program allocates is counted: by operator new (program_heap.cpp) and in OpenSSL, which main() gives
// these functions. Each thread adds to a place of its own, for some 5 ns.
//
// Not counted is what libraries in C take beside OpenSSL, and what is aligned (a filter's array): as
// good as free, for whoever subtracts. It hardly changes.

#include <cstddef>
#include <cstdint>

namespace reprise::proxy::heap {

// As malloc, realloc and free, and of the same heap. Any thread.
[[nodiscard]] void* take(std::size_t bytes) noexcept;
[[nodiscard]] void* resize(void* block, std::size_t bytes) noexcept;
void give(void* block) noexcept;

/// Bytes in blocks that were taken and not given yet, with what each costs the heap. Any thread; by a
/// few blocks that others take meanwhile it may be off.
[[nodiscard]] std::uint64_t in_use() noexcept;

}  // namespace reprise::proxy::heap
