#pragma once
// An allocator for what each request makes one of: the memory that one request gives back is there
// for the next, on the same thread.
//
//     std::allocate_shared<fetch>(recycled<fetch>{}, limits)
//
// A list of free blocks for each type and thread, so a block fits whoever asks for one. What is made
// on one thread may end on another, whose list it then joins. Objects are constructed and destroyed
// as ever: only their memory stays. Beside glibc's malloc, which keeps seven free blocks of a size
// for a thread, this spares what is done for the eighth: the 33rd request that is under way at once
// costs what the first one does.
//
// Threads   any.
// Memory    at most most_spare blocks of each type on each thread stay free.
// Under AddressSanitizer nothing is kept, so that it sees who uses what has ended.

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace reprise::proxy {

/// Blocks of memory that are free, all of one size; one thread's.
class spare_blocks {
public:
    static constexpr std::size_t most_spare = 128;

    spare_blocks() = default;
    ~spare_blocks();
    spare_blocks(const spare_blocks&) = delete;
    spare_blocks& operator=(const spare_blocks&) = delete;

    /// Null: there is none.
    [[nodiscard]] void* take() noexcept {
        auto* const one = first_;
        if (one != nullptr) {
            first_ = one->next;
            --count_;
        }
        return one;
    }
    /// False: there are `most` already, and the caller frees it.
    /// @pre from operator new, and at least a pointer's size
    [[nodiscard]] bool keep(void* block, std::size_t most = most_spare) noexcept {
        if (count_ >= most) {
            return false;
        }
        first_ = new (block) link{first_};
        ++count_;
        return true;
    }

private:
    struct link {
        link* next;
    };
    link* first_ = nullptr;
#ifdef __SANITIZE_ADDRESS__
    std::size_t count_ = static_cast<std::size_t>(-1);
#else
    std::size_t count_ = 0;
#endif
};

template <class T>
class recycled {
public:
    using value_type = T;

    recycled() = default;
    template <class Other>
    recycled(const recycled<Other>& /*unused*/) noexcept {}  // NOLINT: as allocators are

    /// @throws std::bad_alloc
    [[nodiscard]] T* allocate(std::size_t count) {
        if (count == 1) {
            if (void* const spare = blocks().take()) {
                return static_cast<T*>(spare);
            }
        }
        return std::allocator<T>{}.allocate(count);
    }
    void deallocate(T* at, std::size_t count) noexcept {
        if (count != 1 || !blocks().keep(at)) {
            std::allocator<T>{}.deallocate(at, count);
        }
    }

    friend bool operator==(const recycled&, const recycled&) = default;

private:
    static_assert(sizeof(T) >= sizeof(void*) && alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

    static spare_blocks& blocks() noexcept {
        static thread_local spare_blocks of_this_thread;
        return of_this_thread;
    }
};

/// A text that each request makes one of: its memory is there for the next one's, as an object's is.
/// What the heap sees of requests is then mostly what stays of them, and lies without gaps.
///
///     recycled_text wire;
///     wire->reserve(...);
///
/// Memory    at most most_spare texts of most_kept bytes stay free on each thread.
class recycled_text {
public:
    static constexpr std::size_t most_spare = 64, most_kept = 4096;

    recycled_text() noexcept;
    /// Gives that one's memory back.
    explicit recycled_text(std::string&& text) noexcept : text_{std::move(text)} {}
    ~recycled_text();
    recycled_text(recycled_text&& other) noexcept : text_{std::move(other.text_)} {}
    recycled_text& operator=(recycled_text&& other) noexcept {
        text_.swap(other.text_);
        return *this;
    }

    [[nodiscard]] std::string& operator*() noexcept { return text_; }
    [[nodiscard]] const std::string& operator*() const noexcept { return text_; }
    [[nodiscard]] std::string* operator->() noexcept { return &text_; }
    [[nodiscard]] const std::string* operator->() const noexcept { return &text_; }

private:
    std::string text_;
};

}  // namespace reprise::proxy
