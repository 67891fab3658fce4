#pragma once
// Which records were dropped before the writer came to them: ids of tasks that may wait in its queue, and are not to be
// written when their turn comes.
//
// A record's id is known to others only once its task was offered. So what is dropped either waits by then or has been
// written, and need be known no longer than until all that waits then is done with.
//
// Threads   the writer's.
// Memory    some 60 bytes for each record that was dropped while one turn of the queue lasted.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_set>

namespace reprise::proxy::cache::disk {

class dropped_ids {
public:
    /// So many tasks were offered so far, since the beginning. @throws std::bad_alloc: to be added again
    void add(std::uint64_t id, std::uint64_t offered) {
        if (offered <= done_ || contains(id)) {
            return;
        }
        in_turn_.push_back({id, offered});
        try {
            ids_.insert(id);
        } catch (...) {
            in_turn_.pop_back();
            throw;
        }
    }
    [[nodiscard]] bool contains(std::uint64_t id) const { return ids_.contains(id); }
    /// One more task is done with.
    void one_is_done() noexcept {
        ++done_;
        while (!in_turn_.empty() && in_turn_.front().offered <= done_) {
            ids_.erase(in_turn_.front().id);
            in_turn_.pop_front();
        }
    }
    [[nodiscard]] std::size_t size() const noexcept { return ids_.size(); }

private:
    struct dropped {
        std::uint64_t id = 0;
        std::uint64_t offered = 0;
    };
    std::unordered_set<std::uint64_t> ids_;
    std::deque<dropped> in_turn_;
    std::uint64_t done_ = 0;
};

}  // namespace reprise::proxy::cache::disk
