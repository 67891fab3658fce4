#pragma once
// The first question answered: is it well, and what does it save me?
// A few figures out of the many, with sentences for a person. /stats begins with them, and the
// dashboard.

#include "proxy/admin/stats.hpp"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reprise::proxy::admin {

/// One of the four that are shown large.
struct large_figure {
    std::string label, value;
    std::string more;  ///< with the time that it is of
    std::string kind;  ///< "spared", "costs", or "nothing" where there is none yet
};

struct summary {
    std::string headline;  ///< "All is well."
    /// What is not well, a sentence each; empty: all is.
    std::vector<std::string> not_well;
    /// What is worth knowing, and no reason to call it unwell: a sentence each.
    std::vector<std::string> notes;
    std::string text;  ///< what it does for whom, in a few sentences
    std::array<large_figure, 4> figures;

    wall_time since{};  ///< it serves
    std::chrono::seconds uptime{0};
    std::uint64_t requests = 0;  ///< answered_requests
    std::optional<double> hit_ratio, byte_hit_ratio;

    // What origins were spared, in all, and by whom.
    std::uint64_t requests_spared = 0, bytes_spared = 0;
    double seconds_spared = 0;  ///< clients, by the store: what the fetches took, 10 each at most
    std::uint64_t hits = 0, store_bytes = 0;                   ///< of that, by the store
    std::uint64_t sibling_hits = 0, sibling_bytes = 0;         ///< by siblings
    std::uint64_t shared_fetches = 0, shared_fetch_bytes = 0;  ///< by one fetch for many

    // What the store was spared, by admission: first requests, less those that another request
    // admitted while they waited on probation, and those that a disk with room took all the same.
    std::uint64_t writes_spared = 0, written_bytes_spared = 0;
    bool on_disk = false;  ///< else it was memory's room alone

    // What it costs.
    std::uint64_t resident_bytes = 0, disk_bytes = 0;
    std::optional<double> cpu_seconds_per_1000_requests;
    std::uint64_t hits_lost = 0, hit_bytes_lost = 0;  ///< to admission

    std::string
        day;  ///< what last_day is of: "in the last day", "in the last 3 hours, since the start"
};

[[nodiscard]] summary make_summary(const stats_inputs& inputs);
[[nodiscard]] nlohmann::ordered_json summary_json(const stats_inputs& inputs);

/// "12,345".
[[nodiscard]] std::string grouped(std::uint64_t number);
/// "4.2 GiB", "17 bytes".
[[nodiscard]] std::string bytes_in_words(std::uint64_t bytes);
/// "3 days", "90 minutes", "1 second": in the largest unit of which there are at least two, else seconds.
[[nodiscard]] std::string time_in_words(std::chrono::seconds time);
/// "12 of 50 GiB", "900 MiB of 1.0 GiB".
[[nodiscard]] std::string part_in_words(std::uint64_t bytes, std::uint64_t of);
/// "12 ms", "1.6 s", "20 s"; with a minus where it is below zero.
[[nodiscard]] std::string short_time_in_words(double seconds);
/// "61 %", "0.4 %"; "none yet" where there is none.
[[nodiscard]] std::string percent(std::optional<double> share);
/// "2026-11-24T22:41:07Z"
[[nodiscard]] std::string utc(wall_time at);

}  // namespace reprise::proxy::admin
