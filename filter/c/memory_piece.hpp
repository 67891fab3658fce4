#pragma once
// Memory that the caller of a C face lends: one piece, taken and given back by his functions.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <utility>

namespace reprise::filter::c {

/// One piece of memory, given back by whom it was taken from.
struct memory_piece {
    void* memory = nullptr;
    std::size_t bytes = 0;
    void (*give)(void*, void*, std::size_t) = nullptr;
    void* context = nullptr;

    memory_piece() = default;
    memory_piece(const memory_piece&) = delete;
    memory_piece& operator=(const memory_piece&) = delete;
    memory_piece(memory_piece&& other) noexcept { swap(other); }
    memory_piece& operator=(memory_piece&& other) noexcept {
        swap(other);
        return *this;
    }
    ~memory_piece() {
        if (memory != nullptr && give != nullptr) {
            give(context, memory, bytes);
        }
    }
    void swap(memory_piece& other) noexcept {
        std::swap(memory, other.memory);
        std::swap(bytes, other.bytes);
        std::swap(give, other.give);
        std::swap(context, other.context);
    }

    [[nodiscard]] bool is_on(std::size_t boundary) const noexcept {
        return reinterpret_cast<std::uintptr_t>(memory) % boundary == 0;
    }

    /// As the options say, which have functions: memory_take, memory_give, memory_context.
    /// @throws std::bad_alloc where there is none
    template <class Options>
    [[nodiscard]] static memory_piece lent(const Options& options,
                                           std::uint64_t bytes,
                                           std::size_t alignment) {
        if (bytes > PTRDIFF_MAX) {
            throw std::bad_alloc{};
        }
        memory_piece taken;
        taken.bytes = static_cast<std::size_t>(bytes);
        taken.memory = options.memory_take(options.memory_context, taken.bytes, alignment);
        if (taken.memory == nullptr) {
            throw std::bad_alloc{};
        }
        taken.give = options.memory_give;
        taken.context = options.memory_context;
        return taken;
    }
};

/// Hands out one piece in the order in which it is asked, each from the next cache line on, and takes
/// nothing back: for what is allocated once and lives as long as the piece.
class piece_resource final : public std::pmr::memory_resource {
public:
    static constexpr std::size_t line = 64;
    /// What a request for so many bytes takes.
    [[nodiscard]] static constexpr std::uint64_t lines_of(std::uint64_t bytes) noexcept {
        return (bytes + line - 1) / line * line;
    }

    /// @pre the piece is on a boundary of `line`
    explicit piece_resource(memory_piece piece) noexcept : piece_{std::move(piece)} {}

private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        if (alignment > line || bytes > piece_.bytes - handed_out_) {
            throw std::bad_alloc{};
        }
        auto* const given = static_cast<std::byte*>(piece_.memory) + handed_out_;
        handed_out_ += std::min<std::size_t>(lines_of(bytes), piece_.bytes - handed_out_);
        return given;
    }
    void do_deallocate(void*, std::size_t, std::size_t) override {}
    [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        return this == &other;
    }

    memory_piece piece_;
    std::size_t handed_out_ = 0;
};

}  // namespace reprise::filter::c
