// See big_array.hpp.

#include "filter/big_array.hpp"

#include "filter/line_words.hpp"

#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace reprise::filter {

namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

}  // namespace

void big_array_free::operator()(std::byte* memory) const noexcept {
    std::free(memory);  // NOLINT: what aligned_alloc gave
}

std::unique_ptr<std::byte, big_array_free> allocate_zeroes(std::size_t bytes) {
    const bool is_big = bytes >= 2 * huge_page_bytes;
    const auto unit = is_big ? huge_page_bytes : line_bytes;
    const auto whole = rounded_up(bytes == 0 ? 1 : bytes, unit);
    std::unique_ptr<std::byte, big_array_free> memory{
        static_cast<std::byte*>(std::aligned_alloc(unit, whole))};
    if (!memory) {
        throw std::bad_alloc{};
    }
#if defined(__linux__)
    if (is_big) {
        // Before the first touch, or the system has already given small pages. Advice: a refusal
        // leaves what there was.
        (void)::madvise(memory.get(), whole, MADV_HUGEPAGE);
    }
#endif
    std::memset(memory.get(), 0, whole);
    return memory;
}

}  // namespace reprise::filter
