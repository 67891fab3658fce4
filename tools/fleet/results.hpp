#pragma once
// What fleets did, as a table for a page, as CSV, and as plots.

#include "tools/fleet/runs.hpp"
#include "tools/fleet/second_request.hpp"

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace reprise::fleet {

/// What a digest's row is judged by: Summary Cache's claims.
struct claim {
    static constexpr double points_lost = 0.5;     ///< of hit ratio to exact knowledge, at most
    static constexpr double times_fewer = 25;      ///< messages than ICP, at least
    static constexpr double share_of_bytes = 0.5;  ///< of ICP's, at most
};

struct judgement {
    double points_lost = 0;  ///< below zero: won
    double times_fewer = 0;  ///< ICP's messages over ours
    double share_of_bytes = 0, share_of_bytes_of_paper = 0;
    [[nodiscard]] bool holds() const noexcept {
        return points_lost <= claim::points_lost && times_fewer >= claim::times_fewer &&
               share_of_bytes <= claim::share_of_bytes;
    }
};

/// Beside the oracle's row of the same fleet, whose local misses are what ICP would ask for; none
/// where that was not run, or `one` exchanges nothing.
[[nodiscard]] std::optional<judgement> judge(const run_result& one,
                                             const std::vector<run_result>& all);

[[nodiscard]] double hit_percent(const fleet_tally& of) noexcept;

/// How tables and CSV say it.
[[nodiscard]] double percent(std::uint64_t part, std::uint64_t of) noexcept;
[[nodiscard]] std::string fixed(double value, int digits);
[[nodiscard]] std::string name_of(const fleet_run& what);
[[nodiscard]] std::string seconds_of(const fleet_run& what);
/// But for how its nodes find out what others have.
[[nodiscard]] bool same_fleet(const fleet_run& a, const fleet_run& b) noexcept;

void print_table(std::ostream& out, const std::vector<run_result>& results);
/// For the nodes that exchange digests: what crosses between sites, and beside a fleet in which
/// each node is followed by each, if there is that row.
void print_sites(std::ostream& out, const std::vector<run_result>& results);
void print_csv(std::ostream& out, const std::string& trace, const std::vector<run_result>& results);
void print_table(std::ostream& out, const std::vector<second_request_row>& rows);

/// Writes PREFIX-hits.svg, PREFIX-messages.svg (both over the period, where there are several) and
/// PREFIX-threshold.svg (over the share of change, where there are several). Returns their names.
/// @throws std::runtime_error when one can't be written
std::vector<std::string> write_plots(const std::string& prefix,
                                     const std::string& trace,
                                     const std::vector<run_result>& results);

}  // namespace reprise::fleet
