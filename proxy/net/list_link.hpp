#pragma once
// A place in a circular, doubly linked, intrusive list: entering and leaving cost four stores and
// no allocation, and an object leaves when it dies, whichever list it is in.

namespace reprise::proxy::net {

/// Alone when it points at itself. A list's head is one of these too, and holds no object.
struct list_link {
    list_link* next = this;
    list_link* previous = this;

    list_link() = default;
    ~list_link() { unlink(); }
    list_link(const list_link&) = delete;
    list_link& operator=(const list_link&) = delete;

    [[nodiscard]] bool alone() const noexcept { return next == this; }

    void unlink() noexcept {
        next->previous = previous;
        previous->next = next;
        next = previous = this;
    }

    /// Before the head is the list's end. @pre alone()
    void insert_before(list_link& place) noexcept {
        next = &place;
        previous = place.previous;
        previous->next = this;
        place.previous = this;
    }

    /// All that is in `other`'s list, this one being a head too. @pre alone()
    void take_all(list_link& other) noexcept {
        if (!other.alone()) {
            insert_before(other);
            other.unlink();
        }
    }
};

}  // namespace reprise::proxy::net
