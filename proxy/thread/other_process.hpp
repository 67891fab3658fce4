#pragma once
// This proxy's other process while the next program takes over (server/UPGRADE.md): what is purged in
// the one is purged in the other.

#include "proxy/thread/purge_order.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

namespace reprise::proxy::thread {

/// Threads: any. Nothing here waits.
class other_process {
public:
    other_process() = default;
    other_process(const other_process&) = delete;
    other_process& operator=(const other_process&) = delete;
    virtual ~other_process() = default;

    virtual void tell(const purge_order& order) = 0;
    /// Calls `carried_out` when the other has carried out, and kept, all that it was told so far; at
    /// once when it has, or when there is nobody any more. On any thread.
    virtual void when_carried_out(std::function<void()> carried_out) = 0;
};

/// Where the other process is found, if there is one. Threads: any; a short lock, taken by purges
/// alone.
class neighbour {
public:
    void set(std::shared_ptr<other_process> one) {
        const std::lock_guard lock{guard_};
        now_ = std::move(one);
    }
    [[nodiscard]] std::shared_ptr<other_process> get() const {
        const std::lock_guard lock{guard_};
        return now_;
    }
    /// Told of what was purged here. To be called after it was: then either the journal has it, or
    /// somebody hears of it (tier::lend).
    void tell(const purge_order& order) const {
        if (const auto other = get()) {
            other->tell(order);
        }
    }
    /// The same of a URL that was purged hard, by its primary key's text.
    void tell_invalidated(std::string_view url) const {
        if (const auto other = get()) {
            purge_order order;
            order.keys.emplace_back(url);
            other->tell(order);
        }
    }

private:
    mutable std::mutex guard_;
    std::shared_ptr<other_process> now_;
};

}  // namespace reprise::proxy::thread
