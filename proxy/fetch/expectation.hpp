#pragma once
// That a fetch will probably be stored, said to siblings before its head is there: who is asked for the
// same object meanwhile joins it (serve/under_way_reply), and the origin is spared the time to its head.
//
// Expected is what admission admits, in a directory whose last responses were stored
// (cache/kept_lately). Only a fetch that asks the origin itself, and no sibling, home or parent from then
// on, or those might wait for one another (proxy/peer/README.md, "What is on its way").
//
// Threads   its fetch's.

#include "proxy/cache/admission/admission_gate.hpp"
#include "proxy/fetch/order.hpp"
#include "proxy/thread/worker.hpp"

#include <optional>

namespace reprise::proxy::fetch {

class expectation {
public:
    /// Both outlive it.
    expectation(thread::worker& w, const fetch_order& order) noexcept : w_{w}, order_{order} {}

    /// The origin itself is about to be asked, and nobody else meanwhile or after: siblings hear of it,
    /// if all that is known before the head says that it will be stored.
    void begin();
    /// What admission said to the first sight: nobody asks it a second time. None: it was not asked.
    [[nodiscard]] const std::optional<cache::admission_ruling>& ruling() const noexcept {
        return ruling_;
    }
    /// Siblings were told of it before its head.
    [[nodiscard]] bool was_said() const noexcept { return said_; }
    /// The origin's own head is there, and says whether it is kept, and fresh until then (resident time): so
    /// will the next of its directory be.
    void learn(bool is_kept, wall_time until);
    /// No head came. Siblings that were told of it waited in vain: the next is not told of so.
    void failed() noexcept;

private:
    thread::worker& w_;
    const fetch_order& order_;
    std::optional<cache::admission_ruling> ruling_;
    bool said_ = false;
};

}  // namespace reprise::proxy::fetch
