#pragma once
// Asking the store: memory, then the disk, which may have to be waited for.

#include "proxy/cache/disk/tier.hpp"
#include "proxy/serve/exchange_state.hpp"

#include <memory>

namespace reprise::proxy::serve {

/// What memory has, and what becomes of the request by that. Counts a request; what waited on
/// probation is admitted by it.
[[nodiscard]] answer look_up_in_memory(exchange_state& x, wall_time now);

/// The same as if nothing were stored.
[[nodiscard]] answer judge_without_store(exchange_state& x);

/// The disk, where memory has nothing for this request.
class disk_look_up {
public:
    /// Null: the disk need not be asked.
    [[nodiscard]] static std::unique_ptr<disk_look_up> begin(exchange_state& x);

    /// Goes on without waiting. False: there is nothing yet.
    [[nodiscard]] bool step();
    /// Judges the request by what was found, in place of what memory had.
    /// @pre step() said true
    [[nodiscard]] answer adopt();

    explicit disk_look_up(exchange_state& x, cache::disk::tier& disk);

private:
    exchange_state& x_;
    cache::disk::disk_lookup lookup_;
};

}  // namespace reprise::proxy::serve
