#pragma once
// An array that grows and shrinks at its end, in pieces of 2 KiB (of pointers): whoever appends
// never waits until all that is there has been copied, under its stripe's lock as often as not, and
// what a large store needed is given back when the store has become small. The price is one more
// look-up.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace reprise::proxy::cache {

/// Threads   none: the owner locks.
/// Memory    what is in it, at most two pieces more, and a pointer for each piece that there ever was
///           at once. A single piece is no larger than it ever had to be, and has no pointer.
/// Errors    std::bad_alloc from push_back, and nothing changes.
template <class T>
class segments {
public:
    static constexpr std::size_t in_one = 256;

    segments() = default;
    segments(const segments&) = delete;
    segments& operator=(const segments&) = delete;
    ~segments() {
        for (std::size_t piece = 0; piece < pieces(); ++piece) {
            delete[] where_[piece];
        }
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    /// @pre at < size()
    [[nodiscard]] T& operator[](std::size_t at) noexcept {
        return where_[at / in_one][at % in_one];
    }
    [[nodiscard]] const T& operator[](std::size_t at) const noexcept {
        return where_[at / in_one][at % in_one];
    }

    void push_back(T value) {
        if (size_ < in_one) {
            if (size_ == first_) {
                grow_first();
            }
        } else if (size_ == pieces() * in_one) {
            add_piece();
        }
        (*this)[size_++] = value;
    }
    /// @pre !empty()
    void pop_back() noexcept {
        --size_;
        // The last piece goes when half of the one before it is empty too: whoever appends and
        // takes away by turns does not allocate each time.
        if (all_.size() > 1 && size_ + in_one / 2 <= (all_.size() - 1) * in_one) {
            delete[] all_.back();
            all_.pop_back();
        }
    }

    /// Bytes from the heap.
    [[nodiscard]] std::size_t memory() const noexcept {
        const auto others = pieces() > 1 ? pieces() - 1 : 0;
        return (first_ + others * in_one) * sizeof(T) + all_.capacity() * sizeof(T*);
    }

private:
    [[nodiscard]] std::size_t pieces() const noexcept {
        return !all_.empty() ? all_.size() : only_ != nullptr ? 1 : 0;
    }
    void grow_first() {
        const auto size = std::min(in_one, first_ + 4);
        auto* const larger = new T[size]{};
        std::copy_n(where_[0], size_, larger);
        delete[] std::exchange(where_[0], larger);
        first_ = size;
    }
    void add_piece() {
        auto made = std::make_unique<T[]>(in_one);
        if (all_.empty()) {
            all_.reserve(2);
            all_.push_back(only_);
        }
        all_.push_back(made.get());
        static_cast<void>(made.release());
        where_ = all_.data();
    }

    T* only_ = nullptr;      // the first piece, until there is a second
    std::vector<T*> all_;    // from then on
    T** where_ = &only_;     // the pieces
    std::size_t first_ = 0;  // places in the first piece
    std::size_t size_ = 0;
};

}  // namespace reprise::proxy::cache
