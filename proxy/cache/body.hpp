#pragma once
// The bytes of a response body in reference-counted blocks.
// A block is written once, by the fetch that fills it, and shared from then on: the clients that
// wait for the fetch, the store and every later hit send the same memory. Nobody copies a body to
// keep it, but for a small one (stored_response.hpp).

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy {
class spare_blocks;
}  // namespace reprise::proxy

namespace reprise::proxy::cache {

/// What an allocation of `bytes` takes from the heap: a word of glibc's before it, in steps of 16
/// bytes, 32 at least. With small objects that is a tenth of all memory, so the budget counts it.
[[nodiscard]] constexpr std::size_t heap_cost(std::size_t bytes) noexcept {
    const auto rounded = (bytes + sizeof(std::size_t) + 15) / 16 * 16;
    return rounded < 32 ? 32 : rounded;
}

/// What a shared_ptr's control block adds to an object made together with it.
inline constexpr std::size_t control_block = 2 * sizeof(void*);

/// Header and bytes in one allocation. Bytes below a length that was published (by whoever owns the
/// writing side) never change, so readers on other threads need no lock for them.
class block {
public:
    /// @throws std::bad_alloc
    [[nodiscard]] static boost::intrusive_ptr<block> make(std::size_t capacity);
    /// One that is soon given back, to be the next one's on this thread: the heap never sees it. What
    /// is freed beside what stays is a gap that the next thing to stay fills but for a rest, and the
    /// rests are a tenth of what small objects take.
    /// @pre capacity <= most_passing  @throws std::bad_alloc
    [[nodiscard]] static boost::intrusive_ptr<block> make_passing(std::size_t capacity);
    static constexpr std::size_t most_passing = 4096;

    block(const block&) = delete;
    block& operator=(const block&) = delete;

    [[nodiscard]] char* data() noexcept { return reinterpret_cast<char*>(this + 1); }
    [[nodiscard]] const char* data() const noexcept {
        return reinterpret_cast<const char*>(this + 1);
    }
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    /// What the allocation costs, in bytes.
    [[nodiscard]] std::size_t footprint() const noexcept {
        return heap_cost(passes_ ? passing_size(capacity_) : sizeof(block) + capacity_);
    }

private:
    block(std::size_t capacity, bool passes) noexcept : passes_{passes}, capacity_{capacity} {}
    // Few sizes, so that what one answer gives back fits the next.
    static constexpr std::size_t passing_step = 512;
    [[nodiscard]] static constexpr std::size_t passing_size(std::size_t capacity) noexcept {
        return (sizeof(block) + capacity + passing_step - 1) / passing_step * passing_step;
    }
    ~block() = default;

    [[nodiscard]] static spare_blocks& spare_of(std::size_t size) noexcept;

    friend void intrusive_ptr_add_ref(block* b) noexcept {
        b->references_.fetch_add(1, std::memory_order_relaxed);
    }
    friend void intrusive_ptr_release(block* b) noexcept;

    std::atomic<std::uint32_t> references_{0};
    bool passes_;
    std::size_t capacity_;
};

using block_ptr = boost::intrusive_ptr<block>;

/// A run of bytes inside a block, and a share of it.
struct slice {
    block_ptr memory;
    std::size_t begin = 0;
    std::size_t size = 0;

    [[nodiscard]] std::string_view view() const noexcept { return {memory->data() + begin, size}; }
};

/// A whole body, immutable.
struct body {
    std::vector<slice> slices;
    std::uint64_t size = 0;

    /// Bytes of memory held, unused ends of blocks included.
    [[nodiscard]] std::size_t footprint() const noexcept;
};
using body_ptr = std::shared_ptr<const body>;

}  // namespace reprise::proxy::cache
