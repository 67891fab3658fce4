#pragma once
// What a log's clients would get, from one question: of Reprise as it comes, of plain LRU, of the
// best that is found over policies, admission, probation and a disk; and how much room is enough.
//
// In two steps, for trying everything at every size takes too long. First how hits grow with room,
// by a few configurations each; from that the room that is enough. Then the sweep: at the memory
// that was named, alone, and with the disk that is enough or was named.

#include "tools/replay/results.hpp"
#include "tools/replay/run.hpp"
#include "tools/replay/setup.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace reprise::replay {

/// What things cost, in any currency. All zero: nobody asks.
struct prices {
    double memory = 0;          ///< of a GB (10^9 bytes) for a month of 30 days
    double disk = 0;            ///< likewise
    double origin = 0;          ///< of a GB asked of origins
    double second = 0;          ///< that a client waits
    double miss_seconds = 0.1;  ///< that a miss takes longer than a hit
    [[nodiscard]] bool any() const noexcept {
        return memory > 0 || disk > 0 || origin > 0 || second > 0;
    }
};

struct question {
    std::optional<std::uint64_t> memory, disk;  ///< bytes; disk 0: there is to be none
    objective wanted = objective::requests;
    prices costs;
};

/// The best that was found at one size of all tiers, and plain LRU there.
struct room_step {
    std::uint64_t bytes = 0;   ///< of both tiers
    std::uint64_t memory = 0;  ///< of that
    result best, lru;
    double cost = 0;  ///< of the best, a month; 0 where nobody asks
};

struct answer {
    std::uint64_t memory = 0;  ///< bytes, as named or by default
    std::uint64_t disk = 0;    ///< as named, or what is enough; 0: none is worth it
    bool disk_was_named = false;
    result as_it_comes;  ///< the defaults, with that memory alone
    result plain_lru;
    result best_in_memory;
    std::optional<result> disk_as_it_comes, lru_of_both, best_with_disk;
    std::vector<room_step> rooms;  ///< ascending
    std::uint64_t enough = 0;      ///< all further room together brings less than a point
    std::uint64_t cheapest = 0;    ///< of `rooms`; 0 where nobody asks what it costs
    result recommended;
    std::string settings;         ///< JSON, of `recommended`
    std::vector<result> results;  ///< all that was played
    double sample = 1;            ///< of the keys
};

/// `asked.unit` of the scale: as recorded. Figures are those of the whole trace, where it is a
/// sample corrected by how many more or fewer requests than their share the sampled keys had
/// (SHARDS-adj). @throws std::bad_alloc
[[nodiscard]] answer find_answer(const question& asked,
                                 const recorded_trace& requests,
                                 const trace_summary& of,
                                 std::uint64_t unit,
                                 unsigned threads,
                                 const std::function<void(double)>& progress = {});

/// What a month costs, as the trace's days go: room, traffic and waiting.
[[nodiscard]] double monthly_cost(const prices& costs,
                                  std::uint64_t memory,
                                  std::uint64_t disk,
                                  const tally& counted,
                                  double trace_seconds);

}  // namespace reprise::replay
