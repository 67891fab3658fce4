#pragma once
// Memory that is there already for an operation of Asio's, such as a timer's wait: what has to go on is begun anew in it
// where there is no other, and what may not fail at all (to wake somebody, wakeup.hpp) takes none but this.

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace reprise::proxy::net {

/// Room for one operation at a time. Asio frees what an operation took before it calls the handler, so the next one finds
/// it empty; where it does not (one that was cancelled is yet to be told), that takes memory as any other.
///
/// Threads   one, that of the operations' loop. An operation may be begun on another if its handler is what lets the next
///           one begin: that handler sees the room given back, and so does whoever it lets go on.
/// Owner     shared: a handler holds it by its allocator, however long the loop keeps that.
template <std::size_t Size>
class room_of {
public:
    static constexpr std::size_t size = Size;

    room_of() = default;
    room_of(const room_of&) = delete;
    room_of& operator=(const room_of&) = delete;

    /// @pre bytes <= size
    /// @throws std::bad_alloc where the room is taken, and the heap has none either
    [[nodiscard]] void* take(std::size_t bytes) {
        if (is_taken_) {
            return ::operator new(bytes);
        }
        is_taken_ = true;
        return bytes_.data();
    }
    void give_back(void* what) noexcept {
        if (what == bytes_.data()) {
            is_taken_ = false;
        } else {
            ::operator delete(what);
        }
    }

private:
    alignas(std::max_align_t) std::array<std::byte, size> bytes_;
    bool is_taken_ = false;
};

using operation_room = room_of<192>;

/// What a handler says its memory comes from (Asio: associated allocators).
template <class T, class Room = operation_room>
class in_room {
public:
    using value_type = T;

    explicit in_room(std::shared_ptr<Room> room) noexcept : room_{std::move(room)} {}
    template <class Other>
    // NOLINTNEXTLINE: as allocators are
    in_room(const in_room<Other, Room>& other) noexcept : room_{other.room()} {}
    // Never moved from: Asio asks a handler for it also when the rest of that has gone on.
    in_room(const in_room&) noexcept = default;
    in_room& operator=(const in_room&) noexcept = default;
    ~in_room() = default;

    [[nodiscard]] T* allocate(std::size_t /*one*/) {
        static_assert(sizeof(T) <= Room::size && alignof(T) <= alignof(std::max_align_t));
        return static_cast<T*>(room_->take(sizeof(T)));
    }
    void deallocate(T* at, std::size_t /*count*/) noexcept { room_->give_back(at); }
    [[nodiscard]] const std::shared_ptr<Room>& room() const noexcept { return room_; }

    friend bool operator==(const in_room&, const in_room&) = default;

private:
    std::shared_ptr<Room> room_;
};

}  // namespace reprise::proxy::net
