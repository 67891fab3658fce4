#pragma once
// Which objects have a newer response on its way to the disk.
//
// A response that memory has let go of while its record still waits for the writer is nowhere to be
// found, but an older one may be: in the index, or ahead in the queue. Whoever looks in between
// would see the older come back. So while a key is under way nothing of it is found on disk; the
// request goes to the origin. What the queue has no room for outdates what is ahead in it.
//
// Threads   any; one short mutex, which nobody takes while nothing is under way.
// Memory    about 48 bytes for each object that waits in the writer's queue, which is bounded.

#include "filter/key_hash.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace reprise::proxy::cache::disk {

class under_way {
public:
    /// A task about this object is queued. Returns its number: later ones have larger.
    std::uint64_t begin(const filter::key_hash& object) {
        const std::lock_guard lock{guard_};
        ++waiting_[object].tasks;
        many_.store(waiting_.size(), std::memory_order_release);
        return ++last_;
    }
    /// That task has been carried out, and what it wrote can be found; or it never will be.
    void end(const filter::key_hash& object) noexcept {
        const std::lock_guard lock{guard_};
        const auto at = waiting_.find(object);
        if (at != waiting_.end() && --at->second.tasks == 0) {
            waiting_.erase(at);
            many_.store(waiting_.size(), std::memory_order_release);
        }
    }
    /// What is queued of this object by now is not to be written any more.
    void outdate(const filter::key_hash& object) noexcept {
        const std::lock_guard lock{guard_};
        if (const auto at = waiting_.find(object); at != waiting_.end()) {
            at->second.outdated = last_;
        }
    }
    /// Whether that was said of the task with this number, which has not ended.
    [[nodiscard]] bool is_outdated(const filter::key_hash& object, std::uint64_t number) const {
        const std::lock_guard lock{guard_};
        const auto at = waiting_.find(object);
        return at != waiting_.end() && number <= at->second.outdated;
    }
    [[nodiscard]] bool has(const filter::key_hash& object) const {
        if (many_.load(std::memory_order_acquire) == 0) {
            return false;
        }
        const std::lock_guard lock{guard_};
        return waiting_.contains(object);
    }

private:
    struct tasks_of {
        std::uint32_t tasks = 0;
        std::uint64_t outdated = 0;  // up to this number
    };
    mutable std::mutex guard_;
    std::unordered_map<filter::key_hash, tasks_of> waiting_;
    std::uint64_t last_ = 0;
    std::atomic<std::size_t> many_{0};
};

}  // namespace reprise::proxy::cache::disk
