#pragma once
// Asks siblings for the fleet's figures, one a second (FLEET.md), and puts what they say into the table.
//
// One coroutine on one event loop does what fleet_rounds says: a GET on a connection of the loop's
// origin pool, signed as one for a digest. What comes is bounded, and so read on the loop (FLEET.md,
// "Who asks whom", has what that takes).

#include "proxy/peer/digest_fetch.hpp"
#include "proxy/peer/fleet_table.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

namespace reprise::proxy::peer {

/// Threads   the loop's, but counted(): any.
class fleet_fetcher {
public:
    static constexpr std::chrono::seconds pace{1};
    /// For one whole exchange, or the sibling's own timeout where that is shorter.
    static constexpr std::chrono::seconds longest_exchange{5};

    /// Begins at once. Only io, timer, pool, secret, node and random are used of `context`.
    /// @pre `table`, and all that `context` refers to, outlive the loop's run
    fleet_fetcher(follow_context context, fleet_table& table);
    ~fleet_fetcher();  ///< @pre stop() was called and the loop has run out since, or runs no more
    fleet_fetcher(const fleet_fetcher&) = delete;
    fleet_fetcher& operator=(const fleet_fetcher&) = delete;

    /// From now on these, Squids left out. The loop's thread.
    void follow(const std::vector<followed>& siblings);
    void stop();

    struct tally {
        std::uint64_t good = 0, failed = 0;  ///< answers, by what they were
        std::uint64_t bytes = 0;             ///< bodies of the good ones
    };
    [[nodiscard]] tally counted() const noexcept;

private:
    struct shared;
    static awaitable<void> run(std::shared_ptr<shared> all);

    std::shared_ptr<shared> shared_;
};

}  // namespace reprise::proxy::peer
