#pragma once
// A queue of entries, linked through themselves: what most eviction policies are made of.
// Header only, since every member is a few loads and stores on the path of a hit.

#include "proxy/cache/policy/eviction.hpp"

#include <cstddef>
#include <cstdint>

namespace reprise::proxy::cache {

/// Cost    every member O(1).
/// Memory  nothing beside the entries' own links. Owns nothing.
class entry_queue {
public:
    [[nodiscard]] evictable* newest() const noexcept { return newest_; }
    [[nodiscard]] evictable* oldest() const noexcept { return oldest_; }
    [[nodiscard]] bool empty() const noexcept { return newest_ == nullptr; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// The sum of the entries' charges.
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

    /// @pre entry is in no queue
    void push(evictable& entry) noexcept {
        entry.next_to = {nullptr, newest_};
        (newest_ != nullptr ? newest_->next_to.newer : oldest_) = &entry;
        newest_ = &entry;
        bytes_ += entry.charge;
        ++size_;
    }

    /// @pre entry is in this queue
    void remove(evictable& entry) noexcept {
        (entry.next_to.newer != nullptr ? entry.next_to.newer->next_to.older
                                        : newest_) = entry.next_to.older;
        (entry.next_to.older != nullptr ? entry.next_to.older->next_to.newer
                                        : oldest_) = entry.next_to.newer;
        bytes_ -= entry.charge;
        --size_;
    }

    /// @pre entry is in this queue
    void make_newest(evictable& entry) noexcept {
        if (newest_ != &entry) {
            remove(entry);
            push(entry);
        }
    }

private:
    evictable* newest_ = nullptr;
    evictable* oldest_ = nullptr;
    std::uint64_t bytes_ = 0;
    std::size_t size_ = 0;
};

}  // namespace reprise::proxy::cache
