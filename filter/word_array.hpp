#pragma once
// A filter's row of 64-bit words: its own, from a memory resource, or some that lie elsewhere, as those do that
// several processes share.

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <utility>

namespace reprise::filter {

/// Copies have memory of their own, from the default resource. What is assigned one of equal size
/// keeps its memory and allocates nothing; one that lies elsewhere is assigned no other.
class word_array {
public:
    /// Zeroes. `memory` outlives this. @throws std::bad_alloc
    word_array(std::size_t size, std::pmr::memory_resource* memory)
        : memory_{memory},
          words_{allocate(size, memory)} {
        std::fill(begin(), end(), 0);
    }
    /// Those that are there, as they are; they outlive this.
    explicit word_array(std::span<std::uint64_t> there) noexcept : words_{there} {}

    word_array(const word_array& other)
        : word_array{other.size(), std::pmr::get_default_resource()} {
        std::copy(other.begin(), other.end(), begin());
    }
    word_array(word_array&& other) noexcept
        : memory_{std::exchange(other.memory_, nullptr)},
          words_{std::exchange(other.words_, {})} {}
    word_array& operator=(const word_array& other) {
        if (size() != other.size()) {
            return *this = word_array{other};
        }
        if (this != &other) {
            std::copy(other.begin(), other.end(), begin());
        }
        return *this;
    }
    word_array& operator=(word_array&& other) {
        const bool keeps_its_own = memory_ == nullptr || memory_ != other.memory_;
        if (keeps_its_own && size() == other.size()) {
            std::copy(other.begin(), other.end(), begin());
            return *this;
        }
        assert(memory_ != nullptr || size() == 0);
        std::swap(memory_, other.memory_);
        std::swap(words_, other.words_);
        return *this;
    }
    ~word_array() {
        if (memory_ != nullptr) {
            memory_->deallocate(words_.data(), words_.size_bytes(), alignof(std::uint64_t));
        }
    }

    [[nodiscard]] std::size_t size() const noexcept { return words_.size(); }
    [[nodiscard]] std::uint64_t* begin() noexcept { return words_.data(); }
    [[nodiscard]] std::uint64_t* end() noexcept { return begin() + size(); }
    [[nodiscard]] const std::uint64_t* begin() const noexcept { return words_.data(); }
    [[nodiscard]] const std::uint64_t* end() const noexcept { return begin() + size(); }

    /// @pre i < size()
    [[nodiscard]] std::uint64_t& operator[](std::size_t i) noexcept { return words_[i]; }
    [[nodiscard]] const std::uint64_t& operator[](std::size_t i) const noexcept {
        return words_[i];
    }

    bool operator==(const word_array& other) const noexcept {
        return std::equal(begin(), end(), other.begin(), other.end());
    }

private:
    static std::span<std::uint64_t> allocate(std::size_t size, std::pmr::memory_resource* memory) {
        if (size > SIZE_MAX / 2 / sizeof(std::uint64_t)) {
            throw std::bad_alloc{};
        }
        auto* const first = memory->allocate(size * sizeof(std::uint64_t), alignof(std::uint64_t));
        return {static_cast<std::uint64_t*>(first), size};
    }

    std::pmr::memory_resource* memory_ = nullptr;  // none: they lie elsewhere
    std::span<std::uint64_t> words_;
};

}  // namespace reprise::filter
