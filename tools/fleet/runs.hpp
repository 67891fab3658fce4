#pragma once
// Many fleets over one trace: what each is called, which node gets which request, and the running
// of them side by side.

#include "tools/fleet/fleet.hpp"
#include "tools/replay/run.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::fleet {

/// What is in a node, in the user's words: "lru", "gdsf:0.4", "sieve+second-hit"; "ours" is what a
/// proxy without settings is.
struct cache_choice {
    std::string name;
    replay::policy_choice policy;
    bool strict = false;
};
[[nodiscard]] std::optional<cache_choice> cache_choice_of(std::string_view text);

enum class splitting : std::uint8_t {
    random,  ///< each request for itself, by its number and the seed
    turns,   ///< one after the other
    client,  ///< all of a client's to one node; in logs that name clients
};
[[nodiscard]] std::optional<splitting> splitting_of(std::string_view name) noexcept;

struct fleet_run {
    fleet_plan plan;
    std::string cache;  ///< as cache_choice names it
    std::string size;   ///< as asked
    bool big = false;   ///< one node with everybody's room, whatever plan.nodes says of the rest
    splitting split = splitting::random;
    bool spread = false;       ///< requests of one second come one after the other, evenly
    node_number of_nodes = 0;  ///< the fleet that `big` is beside; else plan.nodes
};

struct run_result {
    fleet_run what;
    fleet_tally counted;
    double seconds = 0;
};

/// @pre clients has one for each request, or is empty and nothing is split by client
[[nodiscard]] std::vector<run_result> run_all(const replay::recorded_trace& requests,
                                              std::span<const std::uint32_t> clients,
                                              std::span<const fleet_run> runs,
                                              unsigned threads,
                                              const std::function<void(std::size_t)>& done = {});

/// Which node gets request `number`. @pre nodes > 0
[[nodiscard]] node_number node_for(splitting how,
                                   std::uint64_t number,
                                   std::uint32_t client,
                                   std::uint64_t seed,
                                   node_number nodes) noexcept;

}  // namespace reprise::fleet
